#include "training/report/results.h"

#include <algorithm>
#include <filesystem>

#include "training/quantize/quantization_plan.h"

namespace miniqat::training {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOrder[] = {"float", "calibrated", "trained", "re-estimated", "integers"};

template <class Number = double>
std::optional<Number> number(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end() || !found->is_number()) return {};
  return found->get<Number>();
}

Json json_if_there(const std::filesystem::path& file) {
  std::error_code failure;
  return std::filesystem::exists(file, failure) ? read_json(file) : Json();
}

std::optional<NetworkCost> cost_in(const Json& row) {
  const auto bytes = number<std::int64_t>(row, "parameter_bytes"), work = number<std::int64_t>(row, "bit_operations");
  if (!bytes || !work) return {};
  return NetworkCost{.parameter_bytes = *bytes, .bit_operations = *work};
}

void take_accuracies(const Json& json, ResultRow& row, const std::string& before = "") {
  const auto take = [&](const char* key, std::optional<double>& field) {
    if (const auto value = number(json, (before + key).c_str())) field = value;
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
    if (const auto seconds = number(json_if_there(stage / "summary.json"), "seconds")) rows.at(name).seconds = seconds;
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
  row.seconds = number(summary, "seconds");
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
  if (!own.seconds) own.seconds = number(run.summary, "seconds");
  if (run.summary.is_object() && run.summary.contains("calibration"))
    take_accuracies(run.summary, rows.at("float"), "float_");
  for (const AnswersOf& one : run.answers) {
    ResultRow& row = rows.at(one.name);
    take_answers(run, one.answers.evaluation, row);
    if (one.name == "integers") row.cost = costs.own;
    if (one.name == "float" && !row.cost) row.cost = costs.in_float;
    if (one.name == "float" && !run.float_run.empty())
      row.seconds = number(json_if_there(std::filesystem::path(run.float_run) / "summary.json"), "seconds");
  }
  return std::move(rows).in_order();
}

}  // namespace miniqat::training
