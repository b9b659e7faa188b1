#include "training/evaluate/accuracies.h"

#include "core/error.h"
#include "core/text/json.h"
#include "training/percent.h"

namespace miniqat::training {
namespace {

std::string accuracy_text(const char* part, const Evaluation& result) {
  return concat(part, " accuracy ", percent(result.accuracy()), " (", result.correct, " of ", result.examples, ")");
}

}  // namespace

std::string Accuracies::text() const {
  std::string text;
  if (validation) text = accuracy_text("validation", *validation);
  if (validation && test) text += ", ";
  return test ? text + accuracy_text("test", *test) : text;
}

void Accuracies::put_into(nlohmann::ordered_json& summary) const {
  if (validation) {
    summary["validation_accuracy"] = validation->accuracy();
    summary["validation_loss"] = validation->loss;
  }
  summary["test_accuracy"] = nullptr;
  summary["test_loss"] = nullptr;
  if (!test) return;
  summary["test_accuracy"] = test->accuracy();
  summary["test_loss"] = test->loss;
}

}  // namespace miniqat::training
