#include "training/report/results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "quantize/quantizers.h"
#include "training/quantize/quantization_plan.h"
#include "training/run/data_of_run.h"
#include "training/run/run_source.h"
#include "training/settings/settings.h"

namespace miniqat::training {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOrder[] = {"float", "calibrated", "trained", "re-estimated", "integers"};

/// The keys of a summary.json: "test_accuracy", "validation_loss".
std::vector<std::string> measured_keys(const RunReport& run) {
  std::vector<std::string> keys;
  for (const char* part : {"validation_", "test_"}) {
    for (const MeasureKind& kind : measures_of(run)) keys.push_back(std::string(part) + kind.key);
    keys.push_back(std::string(part) + "loss");
  }
  return keys;
}

void set_cost(const std::optional<NetworkCost>& cost, Json& row) {
  row["parameter_bytes"] = cost ? Json(cost->parameter_bytes) : Json(nullptr);
  row["bit_operations"] = cost ? Json(cost->bit_operations) : Json(nullptr);
}

class Rows {
 public:
  explicit Rows(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  Json& at(const std::string& name) {
    for (Json& row : rows_)
      if (row["name"] == name) return row;
    Json row = {{"name", name}, {"is_run", false}};
    for (const std::string& key : keys_) row[key] = nullptr;
    for (const char* key : {"parameter_bytes", "bit_operations", "seconds", "first_examples"}) row[key] = nullptr;
    return rows_.emplace_back(std::move(row));
  }

  /// `before`: with this prefix in `json`.
  void take(const Json& json, const std::string& name, const std::string& before = "") {
    Json& row = at(name);
    for (const std::string& key : keys_)
      if (const auto value = number_at(json, (before + key).c_str())) row[key] = *value;
  }

  Json in_order() {
    std::ranges::stable_sort(rows_, {},
                             [](const Json& row) { return std::ranges::find(kOrder, row["name"].get<std::string>()); });
    return rows_;
  }

 private:
  std::vector<std::string> keys_;
  std::vector<Json> rows_;
};

void add_stages(const RunDirectory& directory, Rows& rows) {
  const Json plan = json_if_there(directory.quantization());
  if (!plan.is_object()) return;
  for (const Json& json : plan.value("rows", Json::array())) {
    rows.take(json, json.value("name", ""));
    Json& row = rows.at(json.value("name", ""));
    if (number_at(json, "parameter_bytes") && number_at(json, "bit_operations"))
      for (const char* key : {"parameter_bytes", "bit_operations"}) row[key] = json[key];
  }
  const auto add_time = [&](const char* name, const std::filesystem::path& stage) {
    if (const auto seconds = number_at(json_if_there(stage / "summary.json"), "seconds"))
      rows.at(name)["seconds"] = *seconds;
  };
  add_time("calibrated", calibrated_in(directory));
  add_time("trained", trained_in(directory));
}

/// Adds the calibration before the training of a `quantize` that has not come to its end.
void add_calibration_before(const RunDirectory& directory, const RunCosts& costs, Rows& rows) {
  const std::optional<std::filesystem::path> whole = quantization_of_trained(directory);
  if (!whole) return;
  const Json summary = json_if_there(*whole / "calibrated/summary.json");
  if (!summary.is_object()) return;
  rows.take(summary, "float", "float_");
  rows.take(summary, "calibrated");
  Json& row = rows.at("calibrated");
  set_cost(costs.own, row);
  row["seconds"] = field_to_json(number_at(summary, "seconds"));
}

/// A recorded figure, which is of all examples, stays where these are fewer.
void take_answers(const RunReport& run, const Evaluation& evaluation, Json& row) {
  const bool is_part = evaluation.examples < run.part_examples;
  const std::string part = run.part + "_";
  if (evaluation.measures.empty() || (is_part && !row[part + evaluation.main().kind->key].is_null())) return;
  for (const Measure& one : evaluation.measures) row[part + one.kind->key] = one.value;
  row[part + "loss"] = evaluation.loss;
  if (is_part) row["first_examples"] = evaluation.examples;
}

namespace fs = std::filesystem;

/// What a run's files say of the run before it.
struct NamedOrigin {
  const Task& task;
  /// "" without one.
  std::string path = {};
  /// What its task measures first of the test part, if it was measured then.
  std::optional<double> figure = {};
};

Json json_at(const Json& json, const char* key) { return json.is_object() ? json.value(key, Json()) : Json(); }

/// In a summary, or what is written like one, with `before` in front of the keys.
std::optional<double> test_figure(const Json& json, const Task& task, const std::string& before = "") {
  for (const MeasureKind& kind : task.measures)
    if (const auto value = number_at(json, (before + "test_" + kind.key).c_str())) return value;
  return {};
}

NamedOrigin named_origin(const RunDirectory& run) {
  const Json config = read_json(run.config());
  NamedOrigin origin{.task = task_of(recorded_settings(config, run.config().string()))};
  if (const Json plan = json_if_there(run.quantization()); plan.is_object()) {
    origin.path = text_at(plan, "run");
    for (const Json& row : json_at(plan, "rows"))
      if (text_at(row, "name") == "float") origin.figure = test_figure(row, origin.task);
    return origin;
  }
  const Json summary = json_if_there(run.summary()), calibration = json_at(summary, "calibration");
  origin.path = calibration.is_object() ? text_at(calibration, "run") : text_at(config, "init_checkpoint");
  if (calibration.is_object()) origin.figure = test_figure(summary, origin.task, "float_");
  return origin;
}

/// Whether a directory holds a run that has, as far as both are known, the figure that was measured then.
bool may_be(const fs::path& path, const NamedOrigin& origin) {
  constexpr double kRounding = 1e-3;
  if (!is_there(path / "config.json")) return false;
  const auto now = test_figure(json_if_there(path / "summary.json"), origin.task);
  return !origin.figure || !now || std::abs(*now - *origin.figure) < kRounding;
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

std::string own_stage(const RunDirectory& directory, const RunReport& run) {
  const bool has_summary = run.summary.is_object();
  if (has_summary && run.summary.contains("reestimation")) return "re-estimated";
  const Json plan = json_if_there(directory.quantization());
  if (plan.is_object() && plan.contains("chosen") && plan["chosen"].is_string())
    return plan["chosen"].get<std::string>();
  return has_summary && run.summary.contains("calibration") ? "calibrated" : "trained";
}

std::vector<MeasureKind> measures_of(const RunReport& run) {
  std::vector<MeasureKind> found;
  const auto is_there = [&](const MeasureKind& kind) {
    if (!run.answers.empty()) return run.answers.back().answers.evaluation.find(kind.key).has_value();
    return number_at(run.summary, concat("test_", kind.key).c_str()).has_value();
  };
  for (const MeasureKind& kind : run.task->measures)
    if (is_there(kind)) found.push_back(kind);
  if (found.empty()) found.assign(run.task->measures.begin(), run.task->measures.end());
  return found;
}

Json result_rows(const RunDirectory& directory, const RunReport& run, const RunCosts& costs) {
  Rows rows(measured_keys(run));
  add_stages(directory, rows);
  add_calibration_before(directory, costs, rows);
  const bool is_float = !run.listed.value("bits", Json()).is_object();
  const std::string own_name = is_float ? "float" : own_stage(directory, run);
  rows.take(run.summary, own_name);
  Json& own = rows.at(own_name);
  own["is_run"] = true;
  set_cost(costs.own, own);
  if (own["seconds"].is_null()) own["seconds"] = field_to_json(number_at(run.summary, "seconds"));
  if (run.summary.is_object() && run.summary.contains("calibration")) rows.take(run.summary, "float", "float_");
  for (const AnswersOf& one : run.answers) {
    Json& row = rows.at(one.name);
    take_answers(run, one.answers.evaluation, row);
    if (one.name == "integers") set_cost(costs.own, row);
    if (one.name == "float" && row["parameter_bytes"].is_null()) set_cost(costs.in_float, row);
    if (one.name == "float" && !run.float_run.empty())
      row["seconds"] =
          field_to_json(number_at(json_if_there(std::filesystem::path(run.float_run) / "summary.json"), "seconds"));
  }
  return rows.in_order();
}

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
