#include "optim/sgd.h"

#include <array>

#include "core/kernels/instruction_set.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "optim/option_checks.h"

namespace miniqat::optim {
namespace {

/// The settings of one pass over one variable, in the arithmetic of its elements.
struct Step {
  float rate;
  float momentum;
  float decay;
};

#define MINIQAT_LOOPS "optim/sgd_loops.h"
#include "core/kernels/per_instruction_set.h"

}  // namespace

Sgd::Sgd(const SgdOptions& options) : options_(options), ranges_(options.ranges, options.schedule) {
  require_rate(options.learning_rate, "learning_rate");
  require_memory(options.momentum, "momentum");
  require_rate(options.weight_decay, "weight_decay");
  if (options.nesterov && options.momentum == 0) fail("nesterov needs momentum above 0, is 0");
}

std::span<const std::string_view> Sgd::slot_names() const {
  static constexpr std::array<std::string_view, 1> kNames = {"momentum"};
  return std::span(kNames).first(options_.momentum == 0 ? 0 : 1);
}

void Sgd::apply(const VariableUpdate& update) const {
  const bool decays = options_.decay_all || update.value->shape().rank() >= 2;
  const Step step = {static_cast<float>(learning_rate(update.step)), static_cast<float>(options_.momentum),
                     decays ? static_cast<float>(options_.weight_decay) : 0.0f};
  float* w = update.value->data<float>();
  const float* g = update.gradient->data<float>();
  float* v = options_.momentum == 0 ? nullptr : update.slots[0]->data<float>();
  if (v == nullptr) {
    const auto loop = MINIQAT_PICK(descend);
    parallel_for(update.value->elements(), kPointwiseGrain,
                 [&](std::int64_t begin, std::int64_t end) { loop(step, w + begin, g + begin, end - begin); });
    return;
  }
  const auto loop = options_.nesterov ? MINIQAT_PICK(descend_nesterov) : MINIQAT_PICK(descend_heavy_ball);
  parallel_for(update.value->elements(), kPointwiseGrain,
               [&](std::int64_t begin, std::int64_t end) { loop(step, w + begin, v + begin, g + begin, end - begin); });
}

double Sgd::learning_rate(std::int64_t step) const { return options_.learning_rate * options_.schedule.factor(step); }

}  // namespace miniqat::optim
