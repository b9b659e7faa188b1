#include "training/report/results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "quantize/quantization.h"
#include "training/quantize/quantization_plan.h"
#include "training/run/run_source.h"

namespace miniqat::training {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOrder[] = {"float", "calibrated", "trained", "re-estimated", "integers"};

std::optional<NetworkCost> cost_in(const Json& row) {
  const auto bytes = number_at(row, "parameter_bytes"), work = number_at(row, "bit_operations");
  if (!bytes || !work) return {};
  return NetworkCost{.parameter_bytes = row["parameter_bytes"], .bit_operations = row["bit_operations"]};
}

void take_accuracies(const Json& json, ResultRow& row, const std::string& before = "") {
  const auto take = [&](const char* key, std::optional<double>& field) {
    if (const auto value = number_at(json, (before + key).c_str())) field = value;
  };
  take("validation_accuracy", row.validation_accuracy);
  take("validation_loss", row.validation_loss);
  take("test_accuracy", row.test_accuracy);
  take("test_loss", row.test_loss);
  take("validation_balanced_accuracy", row.validation_balanced_accuracy);
  take("test_balanced_accuracy", row.test_balanced_accuracy);
}

class Rows {
 public:
  ResultRow& at(const std::string& name) {
    const auto found = std::ranges::find(rows_, name, &ResultRow::name);
    return found != rows_.end() ? *found : rows_.emplace_back(ResultRow{.name = name});
  }

  std::vector<ResultRow> in_order() && {
    std::ranges::stable_sort(rows_, {}, [](const ResultRow& row) { return std::ranges::find(kOrder, row.name); });
    return std::move(rows_);
  }

 private:
  std::vector<ResultRow> rows_;
};

void add_stages(const RunDirectory& directory, Rows& rows) {
  const Json plan = json_if_there(directory.quantization());
  if (!plan.is_object()) return;
  for (const Json& json : plan.value("rows", Json::array())) {
    ResultRow& row = rows.at(json.value("name", ""));
    take_accuracies(json, row);
    row.cost = cost_in(json);
  }
  const auto add_time = [&](const char* name, const std::filesystem::path& stage) {
    if (const auto seconds = number_at(json_if_there(stage / "summary.json"), "seconds"))
      rows.at(name).seconds = seconds;
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
  take_accuracies(summary, rows.at("float"), "float_");
  ResultRow& row = rows.at("calibrated");
  take_accuracies(summary, row);
  row.cost = costs.own;
  row.seconds = number_at(summary, "seconds");
}

/// A recorded accuracy, which is of all pictures, stays where these are fewer.
void take_answers(const RunReport& run, const Evaluation& evaluation, ResultRow& row) {
  const bool is_validation = run.part == "validation", is_part = evaluation.examples < run.part_examples;
  std::optional<double>& accuracy = is_validation ? row.validation_accuracy : row.test_accuracy;
  if (is_part && accuracy) return;
  accuracy = evaluation.accuracy();
  (is_validation ? row.validation_loss : row.test_loss) = evaluation.loss;
  (is_validation ? row.validation_balanced_accuracy : row.test_balanced_accuracy) = evaluation.balanced_accuracy;
  if (is_part) row.first_examples = evaluation.examples;
}

namespace fs = std::filesystem;

/// What a run's files say of the run before it.
struct NamedOrigin {
  /// "" without one.
  std::string path = {};
  /// On the test pictures, if it was measured then.
  std::optional<double> accuracy = {};
};

Json json_at(const Json& json, const char* key) { return json.is_object() ? json.value(key, Json()) : Json(); }

NamedOrigin named_origin(const RunDirectory& run) {
  if (const Json plan = json_if_there(run.quantization()); plan.is_object()) {
    NamedOrigin origin{.path = text_at(plan, "run")};
    for (const Json& row : json_at(plan, "rows"))
      if (text_at(row, "name") == "float") origin.accuracy = number_at(row, "test_accuracy");
    return origin;
  }
  const Json summary = json_if_there(run.summary()), calibration = json_at(summary, "calibration");
  if (calibration.is_object())
    return {.path = text_at(calibration, "run"), .accuracy = number_at(summary, "float_test_accuracy")};
  return {.path = text_at(read_json(run.config()), "init_checkpoint")};
}

/// Whether a directory holds a run that has, as far as both are known, the accuracy that was measured then.
bool may_be(const fs::path& path, const NamedOrigin& origin) {
  constexpr double kRounding = 1e-3;
  if (!is_there(path / "config.json")) return false;
  const auto now = number_at(json_if_there(path / "summary.json"), "test_accuracy");
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

std::string own_stage(const RunDirectory& directory, const RunReport& run) {
  const bool has_summary = run.summary.is_object();
  if (has_summary && run.summary.contains("reestimation")) return "re-estimated";
  const Json plan = json_if_there(directory.quantization());
  if (plan.is_object() && plan.contains("chosen") && plan["chosen"].is_string())
    return plan["chosen"].get<std::string>();
  return has_summary && run.summary.contains("calibration") ? "calibrated" : "trained";
}

std::vector<ResultRow> result_rows(const RunDirectory& directory, const RunReport& run, const RunCosts& costs) {
  Rows rows;
  add_stages(directory, rows);
  add_calibration_before(directory, costs, rows);
  const bool is_float = !run.listed.value("bits", Json()).is_object();
  const std::string own_name = is_float ? "float" : own_stage(directory, run);
  ResultRow& own = rows.at(own_name);
  take_accuracies(run.summary, own);
  own.is_run = true;
  own.cost = costs.own;
  if (!own.seconds) own.seconds = number_at(run.summary, "seconds");
  if (run.summary.is_object() && run.summary.contains("calibration"))
    take_accuracies(run.summary, rows.at("float"), "float_");
  for (const AnswersOf& one : run.answers) {
    ResultRow& row = rows.at(one.name);
    take_answers(run, one.answers.evaluation, row);
    if (one.name == "integers") row.cost = costs.own;
    if (one.name == "float" && !row.cost) row.cost = costs.in_float;
    if (one.name == "float" && !run.float_run.empty())
      row.seconds = number_at(json_if_there(std::filesystem::path(run.float_run) / "summary.json"), "seconds");
  }
  return std::move(rows).in_order();
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
