#include "training/report/outputs_report.h"

#include <algorithm>
#include <cmath>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/suggest.h"
#include "training/report/example_drawing.h"
#include "training/task/metrics.h"

namespace miniqat::training {
namespace {

using Json = nlohmann::ordered_json;

constexpr float kHalf = 0.5;

/// The first network and the last: float and the integers, where there are both.
using Compared = std::vector<const AnswersOf*>;

Json number_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

/// In the units of the data.
double in_units(const datasets::Dataset& examples, std::size_t k, double value) {
  return examples.target_standard ? examples.target_standard->restored(k, value) : value;
}

/// Number k of each of the examples, of [examples, each].
std::vector<double> column(std::span<const float> rows, std::size_t each, std::size_t k,
                           const datasets::Dataset& examples) {
  std::vector<double> values;
  for (std::size_t i = k; i < rows.size(); i += each) values.push_back(in_units(examples, k, rows[i]));
  return values;
}

Json thinned(const std::vector<double>& values) {
  constexpr std::size_t kMost = 800;
  const std::size_t shown = std::min(values.size(), kMost);
  Json json = Json::array();
  for (std::size_t i = 0; i < shown; ++i) json.push_back(rounded_json(values[i * values.size() / shown]));
  return json;
}

Json numbers_to_json(const Compared& compared, const datasets::Dataset& examples) {
  constexpr std::size_t kMostOutputs = 4;
  const auto each = static_cast<std::size_t>(examples.targets.shape()[1]);
  Json list = Json::array();
  for (std::size_t k = 0; k < std::min(each, kMostOutputs); ++k) {
    const std::vector<double> targets = column(examples.targets.values<float>(), each, k, examples);
    Json output = {{"name", target_name(examples, k)}, {"targets", thinned(targets)}, {"networks", Json::array()}};
    for (const AnswersOf* one : compared) {
      const std::vector<double> predictions = column(one->answers.given, each, k, examples);
      const bool has_nan = std::ranges::any_of(predictions, [](double p) { return std::isnan(p); });
      output["networks"].push_back({{"name", one->name},
                                    {"r2", has_nan ? Json(nullptr) : number_or_null(r_squared(predictions, targets))},
                                    {"predictions", thinned(predictions)}});
    }
    list.push_back(std::move(output));
  }
  return list;
}

/// Whether there are positives and negatives, with scores that can be ordered.
bool has_curve(const Finding& finding) {
  return finding.has_both() && std::ranges::none_of(finding.scores, [](double score) { return std::isnan(score); });
}

Json curve_points(const Finding& finding) {
  constexpr std::size_t kMost = 400;
  const std::vector<RocPoint> curve = roc_curve(finding.ranks(), finding.labels);
  Json points = Json::array();
  const std::size_t shown = std::min(curve.size(), kMost);
  for (std::size_t i = 0; i < shown; ++i) {
    const RocPoint& point = curve[shown < 2 ? 0 : i * (curve.size() - 1) / (shown - 1)];
    points.push_back({point.false_positive_rate, point.true_positive_rate});
  }
  return points;
}

Json curves_to_json(const Compared& compared) {
  Json list = Json::array();
  for (const AnswersOf* one : compared) {
    const Evaluation& evaluation = one->answers.evaluation;
    for (const Finding& finding : evaluation.findings)
      if (has_curve(finding))
        list.push_back({{"name", one->name},
                        {"auc", number_or_null(evaluation.find("auc"))},
                        {"partial_auc", number_or_null(evaluation.find("partial_auc"))},
                        {"points", curve_points(finding)}});
  }
  return list;
}

Json labels_to_json(const Compared& compared, const datasets::Dataset& examples) {
  Json list = Json::array();
  for (std::size_t k = 0; k < static_cast<std::size_t>(examples.targets.shape()[1]); ++k) {
    Json label = {{"name", target_name(examples, k)}, {"examples", 0}, {"networks", Json::array()}};
    for (const AnswersOf* one : compared) {
      const Finding& finding = one->answers.evaluation.findings.at(k);
      label["examples"] = std::ranges::count(finding.labels, 1);
      Json network = {
          {"name", one->name}, {"precision", nullptr}, {"recall", nullptr}, {"f1", nullptr}, {"auc", nullptr}};
      if (std::ranges::none_of(finding.scores, [](double score) { return std::isnan(score); })) {
        const Detections found = detections_at(kHalf, finding.scores, finding.labels);
        network["precision"] = number_or_null(found.precision());
        network["recall"] = number_or_null(found.recall());
        network["f1"] = number_or_null(found.f1());
      }
      if (has_curve(finding)) network["auc"] = roc_auc(finding.ranks(), finding.labels);
      label["networks"].push_back(std::move(network));
    }
    list.push_back(std::move(label));
  }
  return list;
}

/// The first few numbers.
std::string numbers_text(const datasets::Dataset& examples, std::span<const float> row) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t k = 0; k < std::min(row.size(), kShown); ++k)
    text += formatted(k == 0 ? "%.4g" : ", %.4g", in_units(examples, k, row[k]));
  return row.size() > kShown ? text + ", ..." : text;
}

std::string labels_text(const datasets::Dataset& examples, std::span<const float> row, float least) {
  std::vector<std::string> names;
  for (std::size_t k = 0; k < row.size(); ++k)
    if (row[k] >= least) names.push_back(target_name(examples, k));
  return names.empty() ? "none" : joined(names);
}

/// Row `index` of [examples, n].
std::span<const float> row_of(std::span<const float> rows, const datasets::Dataset& examples, std::int64_t index) {
  const std::size_t each = rows.size() / static_cast<std::size_t>(examples.size());
  return rows.subspan(static_cast<std::size_t>(index) * each, each);
}

std::string class_text(const datasets::Dataset& examples, std::int64_t index) {
  if (!examples.has_classes()) return "";
  return examples.class_name(examples.labels.values<std::int32_t>()[static_cast<std::size_t>(index)]);
}

/// What the page says of a task.
struct TaskPage {
  const Task& task;
  /// What all examples give, under a key; null for nothing.
  const char* key = nullptr;
  Json (*of_all)(const Compared& compared, const datasets::Dataset& examples) = nullptr;
  /// What an example should have given, under a name, and what a network gave, in words.
  const char* what = "true";
  std::string (*truth)(const datasets::Dataset& examples, std::int64_t index);
  std::string (*answer)(const datasets::Dataset& examples, const NetworkAnswers& answers, std::int64_t index);
};

const TaskPage& page_of(const Task& task) {
  using Data = datasets::Dataset;
  static const TaskPage kPages[] = {
      {.task = classification(),
       .truth = class_text,
       .answer =
           [](const Data& examples, const NetworkAnswers& answers, std::int64_t index) {
             const Choice& choice = answers.choices[static_cast<std::size_t>(index)];
             return choice.predicted < 0 ? "none"
                                         : concat(examples.class_name(choice.predicted), " ", percent(choice.score));
           }},
      {.task = regression(),
       .key = "outputs",
       .of_all = numbers_to_json,
       .truth =
           [](const Data& examples, std::int64_t index) {
             return numbers_text(examples, row_of(examples.targets.values<float>(), examples, index));
           },
       .answer = [](const Data& examples, const NetworkAnswers& answers,
                    std::int64_t index) { return numbers_text(examples, row_of(answers.given, examples, index)); }},
      {.task = reconstruction(),
       .key = "curves",
       .of_all = [](const Compared& compared, const Data&) { return curves_to_json(compared); },
       .what = "class",
       .truth = class_text,
       .answer =
           [](const Data&, const NetworkAnswers& answers, std::int64_t index) {
             return concat("error ", formatted("%.4g", answers.evaluation.losses[static_cast<std::size_t>(index)]));
           }},
      {.task = multilabel(),
       .key = "labels",
       .of_all = labels_to_json,
       .truth =
           [](const Data& examples, std::int64_t index) {
             return labels_text(examples, row_of(examples.targets.values<float>(), examples, index), kHalf);
           },
       .answer = [](const Data& examples, const NetworkAnswers& answers,
                    std::int64_t index) { return labels_text(examples, row_of(answers.given, examples, index), 0); }}};
  return *std::ranges::find(kPages, &task, [](const TaskPage& page) { return &page.task; });
}

Json worst_to_json(const TaskPage& page, const Compared& compared, const datasets::Dataset& examples) {
  const NetworkAnswers& last = compared.back()->answers;
  Json list = Json::array();
  for (std::size_t i = 0; i < last.worst.size(); ++i) {
    const std::int64_t index = last.worst[i];
    Json texts = Json::array();
    if (const std::string truth = page.truth(examples, index); !truth.empty()) texts.push_back({page.what, truth});
    for (const AnswersOf* one : compared) texts.push_back({one->name, page.answer(examples, one->answers, index)});
    const bool is_given = !last.given_for_worst.empty();
    list.push_back(
        {{"index", index},
         {"file", examples.file_of(index)},
         {"texts", std::move(texts)},
         {"drawing", draw_example(examples, index, is_given ? last.given_for_worst[i] : std::vector<float>())}});
  }
  return list;
}

}  // namespace

Json outputs_to_json(const std::vector<AnswersOf>& answers, const datasets::Dataset& examples, const Task& task) {
  if (answers.empty() || (&task == &classification() && examples.has_pictures())) return nullptr;
  const TaskPage& page = page_of(task);
  Compared compared = {&answers.front()};
  if (answers.size() > 1) compared.push_back(&answers.back());
  Json json = {{"worst", worst_to_json(page, compared, examples)}};
  if (page.key != nullptr) json[page.key] = page.of_all(compared, examples);
  return json;
}

}  // namespace miniqat::training
