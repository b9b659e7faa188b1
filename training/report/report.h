#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "training/report/layer_figures.h"
#include "training/report/run_report.h"

namespace miniqat::training {

struct ReportRequest {
  /// Run directories.
  std::vector<std::string> runs;
  /// The runs' own when "".
  std::string dataset = {};
  std::string data_dir = {};
  /// Whether broken files of `dataset` are skipped, if a run did not ask for it.
  bool skip_broken = false;
  /// A sensitivity.json or its folder; "" without one.
  std::string sensitivity = {};
  /// Lost pictures, or worst examples, to show of each run.
  std::int64_t pictures = 12;
  static constexpr std::int64_t kExamples = 256;
  /// Pictures for the figures of layers. More than kExamples: also the fewest that networks of very many layers answer.
  std::int64_t examples = kExamples;
  /// 0: default_thread_count().
  int threads = 0;
};

struct Report {
  std::vector<RunReport> runs = {};
  /// sensitivity.json, null without one.
  nlohmann::ordered_json sensitivity = {};
};

/// Looks at the runs, whatever their state, and evaluates them on their data. Sets the number of threads. Throws
/// UsageError and Error for a path without a run, a data set or a sensitivity.json that was asked for and cannot be
/// read, and what `progress` throws. What a run cannot show becomes a note.
Report gather_report(const ReportRequest& request, const ReportProgress& progress);

/// The report of one run; gather_report() says what it throws. `name` is for the page.
RunReport examine_run(const std::string& path, const std::string& name, const ReportRequest& request,
                      const ReportProgress& progress);

}  // namespace miniqat::training
