#include "training/evaluate/part_results.h"

#include <cmath>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "datasets/known_datasets.h"
#include "training/figures.h"

namespace miniqat::training {
namespace {

void put(const std::string& part, const Evaluation& result, nlohmann::ordered_json& summary) {
  for (const Measure& one : result.measures) summary[concat(part, "_", one.kind->key)] = one.value;
  summary[part + "_loss"] = result.loss;
}

std::optional<Evaluation> evaluation_in(const nlohmann::ordered_json& summary, const Task& task,
                                        const std::string& part, std::int64_t examples) {
  const std::optional<double> loss = number_at(summary, (part + "_loss").c_str());
  if (!loss) return {};
  Evaluation result{.examples = examples, .loss = *loss};
  for (const MeasureKind& kind : task.measures)
    if (const std::optional<double> value = number_at(summary, concat(part, "_", kind.key).c_str()))
      result.measures.push_back({.kind = &kind, .value = *value});
  if (result.measures.empty()) return {};
  return result;
}

constexpr double kAlmostAll = 0.9, kMostLabels = 0.75;
/// Fewer may well be of one class.
constexpr std::int64_t kFewestPictures = 50;
/// Far above guessing is a loss of so many times ln(classes): weights without training are seldom so far off.
constexpr double kFarAbove = 2;

/// What makes the pixels what they were in another program's training.
std::string how_to_give_values(const std::string& dataset) {
  if (datasets::is_path(dataset)) return "--mean and --std make pixels (byte / 255 - mean) / std";
  return "another mean and deviation belong into the network, or to your own files (--mean, --std)";
}

std::string shares(const OneAnswer& one, const datasets::Dataset& pictures, const std::string& subject) {
  return concat("warning: ", subject, " answers ", printable(pictures.class_name(one.number)), " for ",
                percent(one.of_answers), " of the ", pictures.noun(), "s, of which ", percent(one.of_labels),
                " are that");
}

}  // namespace

std::string PartResults::text() const {
  std::string text;
  if (validation) text = concat("validation ", validation->text(true));
  if (validation && test) text += ", ";
  return test ? concat(text, "test ", test->text(true)) : text;
}

void PartResults::put_into(nlohmann::ordered_json& summary, const Task& task) const {
  if (validation) put("validation", *validation, summary);
  // Nobody has measured those that are null.
  for (const MeasureKind& kind : task.measures) summary.erase(concat("test_", kind.key));
  summary[concat("test_", task.measures.front().key)] = nullptr;
  summary["test_loss"] = nullptr;
  if (test) put("test", *test, summary);
}

std::optional<PartResults> PartResults::from(const nlohmann::ordered_json& summary, const Task& task,
                                             std::int64_t validation, std::int64_t test) {
  const PartResults found{.validation = evaluation_in(summary, task, "validation", validation),
                          .test = evaluation_in(summary, task, "test", test)};
  return found.validation && found.test ? std::optional(found) : std::nullopt;
}

std::optional<OneAnswer> one_answer(const Evaluation& evaluation) {
  if (evaluation.examples < kFewestPictures) return {};
  const auto all = static_cast<double>(evaluation.examples);
  for (std::size_t k = 0; k < evaluation.by_class.size(); ++k) {
    const OneAnswer one{.number = static_cast<std::int64_t>(k),
                        .of_answers = static_cast<double>(evaluation.by_class[k].answers) / all,
                        .of_labels = static_cast<double>(evaluation.by_class[k].labels) / all};
    if (one.of_answers >= kAlmostAll && one.of_labels < kMostLabels) return one;
  }
  return {};
}

std::string warning_of_one_answer(const Evaluation& evaluation, const datasets::Dataset& pictures,
                                  const std::string& subject, const std::string& dataset) {
  const std::optional<OneAnswer> one = one_answer(evaluation);
  if (!one) return "";
  const std::string text =
      concat(shares(*one, pictures, subject), ": it tells nothing apart yet, or was trained on other ");
  if (!pictures.has_pictures()) return text + "numbers";
  return concat(text, "pixel values", datasets::is_path(dataset) ? " (--mean, --std)" : "");
}

std::string warning_before_training(const Evaluation& evaluation, const datasets::Dataset& pictures,
                                    const std::string& subject, const std::string& dataset) {
  const std::string if_trained =
      concat("; if it was trained before, it saw other pixel values then: ", how_to_give_values(dataset));
  if (const std::optional<OneAnswer> one = one_answer(evaluation))
    return concat(shares(*one, pictures, subject), if_trained);
  if (!pictures.has_classes()) return "";
  const double chance = std::log(static_cast<double>(pictures.classes));
  if (!(evaluation.loss > kFarAbove * chance)) return "";
  return concat("warning: ", subject, " has a loss of ", formatted("%.2f", evaluation.loss),
                " before training, guessing has ", formatted("%.2f", chance), if_trained);
}

}  // namespace miniqat::training
