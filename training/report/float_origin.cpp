#include "training/report/float_origin.h"

#include "core/error.h"
#include "core/json.h"
#include "quantize/quantization.h"
#include "training/run/run_source.h"

namespace miniqat::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// As the run's files name it; "" without one.
std::string named_origin(const RunDirectory& run) {
  std::error_code failure;
  const auto text = [](const Json& json, const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return json.is_object() && found != json.end() && found->is_string() ? found->get<std::string>() : "";
  };
  if (fs::exists(run.quantization(), failure)) return text(read_json(run.quantization()), "run");
  if (fs::exists(run.summary(), failure)) {
    const Json summary = read_json(run.summary());
    if (const auto calibration = summary.find("calibration"); calibration != summary.end())
      return text(*calibration, "run");
  }
  return text(read_json(run.config()), "init_checkpoint");
}

/// "" where it is not.
fs::path found_path(const RunDirectory& run, const std::string& name) {
  std::error_code failure;
  if (fs::is_directory(name, failure)) return name;
  const fs::path whole = fs::absolute(run.path(), failure).lexically_normal();
  const fs::path folder = whole.has_filename() ? whole.parent_path() : whole.parent_path().parent_path();
  const fs::path beside = folder / fs::path(name).filename();
  return fs::is_directory(beside, failure) ? beside : fs::path();
}

std::optional<FloatRun> origin(const RunDirectory& run, int steps) {
  const std::string name = named_origin(run);
  if (name.empty() || steps == 0) return {};
  const fs::path path = found_path(run, name);
  if (path.empty()) return {};
  const RunDirectory before = RunDirectory::open(path);
  if (!quantization_of(before).is_float()) return origin(before, steps - 1);
  return read_float_run(path.string());
}

}  // namespace

std::optional<FloatRun> float_origin(const RunDirectory& run) {
  constexpr int kMostSteps = 8;
  try {
    return origin(run, kMostSteps);
  } catch (const Error&) {
    // Whatever lies at that place now is not that run.
    return {};
  }
}

}  // namespace miniqat::training
