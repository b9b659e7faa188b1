#include "training/report/report.h"

#include <filesystem>
#include <set>

#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "training/quantize/quantization_plan.h"
#include "training/report/run_examination.h"
#include "training/run/json_shape.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

bool holds_file(const fs::path& file) {
  std::error_code failure;
  return fs::exists(file, failure);
}

/// The run to look at: of a `quantize` that has not chosen a network yet, the run of its last stage.
std::string run_at(const std::string& path) {
  if (holds_file(fs::path(path) / "config.json") || !holds_file(fs::path(path) / "quantize.json")) return path;
  for (const char* stage : {"trained", "calibrated"})
    if (const fs::path folder = fs::path(path) / stage; holds_file(folder / "config.json")) return folder.string();
  return path;
}

/// With a number behind each name that comes more than once: "run (2)".
std::vector<std::string> numbered(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  std::multiset<std::string> given(names.begin(), names.end()), used = given;
  for (const std::string& name : names) {
    std::string own = name;
    if (given.count(name) > 1)
      for (int i = 1; used.contains(own); ++i) own = concat(name, " (", i, ")");
    used.insert(own);
    all.push_back(own);
  }
  return all;
}

/// The last part of each path, or the paths where these are not different.
std::vector<std::string> names_of(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  std::set<std::string> different;
  for (const std::string& path : paths) {
    std::error_code failure;
    const fs::path whole = fs::weakly_canonical(path, failure);
    names.push_back(failure || whole.filename().empty() ? path : whole.filename().string());
    different.insert(names.back());
  }
  return different.size() == paths.size() ? names : paths;
}

Json read_sensitivity(const std::string& path) {
  if (path.empty()) return {};
  std::error_code failure;
  const fs::path file = fs::is_directory(path, failure) ? fs::path(path) / "sensitivity.json" : fs::path(path);
  Json json = read_json(file);
  if (!json.is_object() || !json.contains("quantizers"))
    fail(file.string(), " is not a file of `miniqat sensitivity`: \"quantizers\" is missing");
  require_shape(json, shape_of_sensitivity(), file.string());
  return json;
}

}  // namespace

Report gather_report(const ReportRequest& request, const ReportProgress& progress) {
  if (request.runs.empty()) throw UsageError("give at least one run");
  Report report{.runs = {}, .sensitivity = read_sensitivity(request.sensitivity)};
  set_thread_count(request.threads == 0 ? default_thread_count() : request.threads);
  std::vector<std::string> paths;
  for (const std::string& path : request.runs) paths.push_back(run_at(path));
  // What is no run is found before minutes of evaluations.
  for (const std::string& path : paths) RunDirectory::open(path);
  const std::vector<std::string> names = numbered(names_of(request.runs));
  for (std::size_t i = 0; i < paths.size(); ++i)
    report.runs.push_back(examine_run(paths[i], names[i], request, progress));
  return report;
}

}  // namespace miniqat::training
