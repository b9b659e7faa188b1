#include "optim/adam.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/kernels/instruction_set.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "optim/option_checks.h"

namespace miniqat::optim {
namespace {

/// The settings of one pass over one variable, in the arithmetic of its elements. Bias correction is folded into the
/// rate and into the factor on sqrt(v).
struct Step {
  float corrected_rate;
  float beta1;
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float root_correction;
  float epsilon;
  float decay;
};

#define MINIQAT_LOOPS "optim/adam_loops.h"
#include "core/kernels/per_instruction_set.h"

}  // namespace

Adam::Adam(const AdamOptions& options) : options_(options), ranges_(options.ranges, options.schedule) {
  require_rate(options.learning_rate, "learning_rate");
  require_memory(options.beta1, "beta1");
  require_memory(options.beta2, "beta2");
  require_rate(options.weight_decay, "weight_decay");
  // A gradient that was always 0 would give 0 / 0; and denormals count as 0 here.
  if (options.epsilon < std::numeric_limits<float>::min())
    fail("epsilon must be at least ", std::numeric_limits<float>::min(), ", is ", options.epsilon);
  require_rate(options.epsilon, "epsilon");
}

std::span<const std::string_view> Adam::slot_names() const {
  static constexpr std::array<std::string_view, 2> kNames = {"m", "v"};
  return kNames;
}

void Adam::apply(const VariableUpdate& update) const {
  const auto t = static_cast<double>(update.step);
  const bool decays = options_.decay_all || update.value->shape().rank() >= 2;
  const Step step = {
      .corrected_rate = static_cast<float>(learning_rate(update.step) / (1 - std::pow(options_.beta1, t))),
      .beta1 = static_cast<float>(options_.beta1),
      .beta2 = static_cast<float>(options_.beta2),
      .one_minus_beta1 = static_cast<float>(1 - options_.beta1),
      .one_minus_beta2 = static_cast<float>(1 - options_.beta2),
      .root_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, t))),
      .epsilon = static_cast<float>(options_.epsilon),
      .decay = decays ? static_cast<float>(options_.weight_decay) : 0.0f,
  };
  float* w = update.value->data<float>();
  float* m = update.slots[0]->data<float>();
  float* v = update.slots[1]->data<float>();
  const float* g = update.gradient->data<float>();
  const auto loop = MINIQAT_PICK(descend);
  parallel_for(update.value->elements(), kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    loop(step, w + begin, m + begin, v + begin, g + begin, end - begin);
  });
}

double Adam::learning_rate(std::int64_t step) const { return options_.learning_rate * options_.schedule.factor(step); }

}  // namespace miniqat::optim
