#include "training/report/float_origin.h"

#include <cmath>

#include "core/text/error.h"
#include "core/text/json.h"
#include "quantize/quantizers.h"
#include "training/run/run_source.h"

namespace miniqat::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// What a run's files say of the run before it.
struct NamedOrigin {
  /// "" without one.
  std::string path = {};
  /// On the test pictures, if it was measured then.
  std::optional<double> accuracy = {};
};

Json json_at(const Json& json, const char* key) { return json.is_object() ? json.value(key, Json()) : Json(); }

std::string text_at_key(const Json& json, const char* key) {
  const Json found = json_at(json, key);
  return found.is_string() ? found.get<std::string>() : "";
}

std::optional<double> accuracy_at(const Json& json, const char* key) {
  const Json found = json_at(json, key);
  return found.is_number() ? std::optional(found.get<double>()) : std::nullopt;
}

Json json_of_file(const fs::path& file) {
  std::error_code failure;
  return fs::exists(file, failure) ? read_json(file) : Json();
}

NamedOrigin named_origin(const RunDirectory& run) {
  if (const Json plan = json_of_file(run.quantization()); plan.is_object()) {
    NamedOrigin origin{.path = text_at_key(plan, "run")};
    for (const Json& row : json_at(plan, "rows"))
      if (text_at_key(row, "name") == "float") origin.accuracy = accuracy_at(row, "test_accuracy");
    return origin;
  }
  const Json summary = json_of_file(run.summary()), calibration = json_at(summary, "calibration");
  if (calibration.is_object())
    return {.path = text_at_key(calibration, "run"), .accuracy = accuracy_at(summary, "float_test_accuracy")};
  return {.path = text_at_key(read_json(run.config()), "init_checkpoint")};
}

/// Whether a directory holds a run that has, as far as both are known, the accuracy that was measured then.
bool may_be(const fs::path& path, const NamedOrigin& origin) {
  constexpr double kRounding = 1e-3;
  std::error_code failure;
  if (!fs::exists(path / "config.json", failure)) return false;
  const auto now = accuracy_at(json_of_file(path / "summary.json"), "test_accuracy");
  return !origin.accuracy || !now || std::abs(*now - *origin.accuracy) < kRounding;
}

/// From here, or else beside the run; "" if it is at neither place.
fs::path found_path(const RunDirectory& run, const NamedOrigin& origin) {
  if (may_be(origin.path, origin)) return origin.path;
  std::error_code failure;
  const fs::path whole = fs::absolute(run.path(), failure).lexically_normal();
  const fs::path folder = whole.has_filename() ? whole.parent_path() : whole.parent_path().parent_path();
  const fs::path beside = folder / fs::path(origin.path).filename();
  return may_be(beside, origin) ? beside : fs::path();
}

std::optional<FloatRun> origin_of(const RunDirectory& run, int steps) {
  const NamedOrigin origin = named_origin(run);
  if (origin.path.empty() || steps == 0) return {};
  const fs::path path = found_path(run, origin);
  if (path.empty()) return {};
  const RunDirectory before = RunDirectory::open(path);
  if (!quantization_of(before).is_float()) return origin_of(before, steps - 1);
  return read_float_run(path.string());
}

}  // namespace

std::optional<FloatRun> float_origin(const RunDirectory& run) {
  constexpr int kMostSteps = 8;
  try {
    return origin_of(run, kMostSteps);
  } catch (const Error&) {
    // Whatever lies at that place now is not that run.
    return {};
  }
}

}  // namespace miniqat::training
