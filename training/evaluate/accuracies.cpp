#include "training/evaluate/accuracies.h"

#include <cmath>
#include <tuple>
#include <utility>

#include "core/text/error.h"
#include "core/text/json.h"
#include "training/percent.h"

namespace miniqat::training {
namespace {

std::string accuracy_text(const char* part, const Evaluation& result) {
  return concat(part, " accuracy ", percent(result.accuracy()), " (", result.correct, " of ", result.examples, ")",
                balanced_text(result));
}

void put(const std::string& part, const Evaluation& result, nlohmann::ordered_json& summary) {
  summary[part + "_accuracy"] = result.accuracy();
  if (result.balanced_accuracy) summary[part + "_balanced_accuracy"] = *result.balanced_accuracy;
  summary[part + "_loss"] = result.loss;
}

std::optional<Evaluation> evaluation_in(const nlohmann::ordered_json& summary, const std::string& part,
                                        std::int64_t examples) {
  double accuracy = 0;
  Evaluation result;
  for (const auto& [key, value] : {std::pair(part + "_accuracy", &accuracy), {part + "_loss", &result.loss}}) {
    const auto found = summary.find(key);
    if (found == summary.end() || !found->is_number()) return {};
    *value = *found;
  }
  const auto balanced = summary.find(part + "_balanced_accuracy");
  if (balanced != summary.end() && balanced->is_number()) result.balanced_accuracy = *balanced;
  result.examples = examples;
  result.correct = std::llround(accuracy * static_cast<double>(examples));
  return result;
}

}  // namespace

std::string balanced_text(const Evaluation& result) {
  if (!result.has_uneven_classes() || !result.balanced_accuracy) return "";
  return concat(", balanced ", percent(*result.balanced_accuracy));
}

bool is_better(const Evaluation& a, const Evaluation& b, bool balanced) {
  if (balanced) return std::tuple(a.balanced_accuracy, -a.loss) > std::tuple(b.balanced_accuracy, -b.loss);
  return std::tuple(a.correct, -a.loss) > std::tuple(b.correct, -b.loss);
}

std::string Accuracies::text() const {
  std::string text;
  if (validation) text = accuracy_text("validation", *validation);
  if (validation && test) text += ", ";
  return test ? text + accuracy_text("test", *test) : text;
}

void Accuracies::put_into(nlohmann::ordered_json& summary) const {
  if (validation) put("validation", *validation, summary);
  summary["test_accuracy"] = nullptr;
  summary["test_loss"] = nullptr;
  summary.erase("test_balanced_accuracy");
  if (test) put("test", *test, summary);
}

std::optional<Accuracies> Accuracies::from(const nlohmann::ordered_json& summary, std::int64_t validation,
                                           std::int64_t test) {
  const Accuracies found{.validation = evaluation_in(summary, "validation", validation),
                         .test = evaluation_in(summary, "test", test)};
  return found.validation && found.test ? std::optional(found) : std::nullopt;
}

}  // namespace miniqat::training
