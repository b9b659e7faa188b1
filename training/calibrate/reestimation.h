#pragma once

#include <cstdint>
#include <string>

#include "training/calibrate/batch_norm_statistics.h"
#include "training/evaluate/part_results.h"
#include "training/run/run_directory.h"
#include "training/run_observer.h"
#include "training/settings/settings.h"

namespace miniqat::training {

/// The settings behind the statistics; kept in summary.json.
struct ReestimateSettings {
  std::int64_t batches = kEstimateBatches;
  std::int64_t seed = 1;

  static const auto& table() {
    using S = ReestimateSettings;
    static const std::tuple kTable{
        Setting("batches", &S::batches, "batches of training pictures to look at, of the run's batch size",
                at_least(1)),
        Setting("seed", &S::seed, "chooses the pictures", not_negative())};
    return kTable;
  }
  template <class Visitor>
  static void visit(Visitor&& visitor) {
    visit_table(table(), visitor);
  }
};

struct ReestimationRequest {
  /// The directory of a run that is complete.
  std::string run;
  ReestimateSettings reestimate = {};
  /// The run's own when "".
  std::string data_dir = {};
  /// 0: default_thread_count().
  int threads = 0;
};

/// What came of it.
struct Reestimated {
  /// With the moving averages: on the validation part of a run that has one, otherwise on the test pictures.
  Evaluation before;
  /// On both, where there is a validation part.
  PartResults after;
  double seconds = 0;
};

/// Estimates the statistics of a run's batch norms from some batches of training pictures (batch_norm_statistics.h).
/// Stores them, with the ranges of its weights, in the checkpoint of `out`. That is a locked directory: the run's own,
/// or one that gets a whole run. A run whose statistics are estimates already begins from what training left. Sets the
/// number of threads. Throws Error for a run that has none to estimate or is not complete, and Stopped where the
/// observer wants it; the run is then as it was, and another `out` holds none.
Reestimated reestimate(const ReestimationRequest& request, const RunDirectory& out, RunObserver& observer);

}  // namespace miniqat::training
