#include "training/train/chance_watch.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/text/classic.h"
#include "quantize/fake_quant.h"

namespace miniqat::training {
namespace {

constexpr std::int64_t kFewestSteps = 20;
/// The share of ln(classes) that is above the loss of any network that has learned anything at all.
constexpr double kNothingLearned = 0.98;

std::string in_digits(double loss) {
  char text[32];
  classic_snprintf(text, sizeof text, "%.2f", loss);
  return text;
}

/// As the graph has it: a --bits-config has widths of its own, and known ranges (a Sigmoid's) neither move nor need to.
bool observes_few_bits(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node* node) {
    const auto* quantizer = node->as<quantize::FakeQuant>();
    return quantizer && quantizer->bits <= quantize::kFewBits && traits_of(quantizer->range).observes;
  });
}

/// The likeliest cause first.
std::string advice(const TrainingTask& task) {
  const TrainSettings& settings = task.settings;
  if (task.quantization.is_float()) return "try a lower --learning-rate, or --warmup-steps";
  if (observes_few_bits(task.training.graph)) return "with so few bits try --ranges learned (docs/low-bits.md)";
  if (settings.init_checkpoint.empty()) return "try a lower --learning-rate, or --init-checkpoint with a float run";
  return "try a lower --learning-rate";
}

}  // namespace

/// With one step less the second half would have too few.
ChanceWatch::ChanceWatch(const TrainingTask& task, RunObserver& observer)
    : task_(task),
      observer_(observer),
      epochs_((2 * kFewestSteps - 1 + task.steps_per_epoch - 1) / task.steps_per_epoch) {}

void ChanceWatch::after_step(const TrainedStep& step) {
  const std::int64_t length = epochs_ * task_.steps_per_epoch, place = (step.step - 1) % length;
  if (place >= length / 2) {
    sum_ += step.loss;
    ++steps_;
  }
  if (place + 1 < length) return;
  // Fewer where a run was resumed in the middle.
  if (!warned_ && steps_ >= kFewestSteps) judge(step.step / task_.steps_per_epoch);
  sum_ = 0;
  steps_ = 0;
}

void ChanceWatch::judge(std::int64_t last_epoch) {
  const Shape& logits = task_.training.logits.shape();
  const double classes = static_cast<double>(logits[logits.rank() - 1]), chance = std::log(classes);
  const double mean = sum_ / static_cast<double>(steps_);
  if (!(mean >= kNothingLearned * chance)) return;
  warned_ = true;
  const std::string epochs =
      epochs_ == 1 ? concat("epoch ", last_epoch) : concat("epochs ", last_epoch - epochs_ + 1, " to ", last_epoch);
  observer_.warn(concat("warning: the loss of ", epochs, ", ", in_digits(mean), ", is no better than guessing among ",
                        logits[logits.rank() - 1], " classes (", in_digits(chance), "); ", advice(task_)));
}

}  // namespace miniqat::training
