#include "optim/adam.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/parallel.h"
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

void descend(const Step& step, float* __restrict w, float* __restrict m, float* __restrict v, const float* __restrict g,
             std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float decayed = g[i] + step.decay * w[i];
    m[i] = step.beta1 * m[i] + step.one_minus_beta1 * decayed;
    v[i] = step.beta2 * v[i] + step.one_minus_beta2 * decayed * decayed;
    w[i] -= step.corrected_rate * m[i] / (std::sqrt(v[i]) * step.root_correction + step.epsilon);
  }
}

}  // namespace

Adam::Adam(const AdamOptions& options) : options_(options) {
  require_rate(options.learning_rate, "learning_rate");
  require_memory(options.beta1, "beta1");
  require_memory(options.beta2, "beta2");
  require_rate(options.weight_decay, "weight_decay");
  require_rate(options.epsilon, "epsilon");
  // A gradient that was always 0 would give 0 / 0; and denormals count as 0 here.
  if (options.epsilon < std::numeric_limits<float>::min())
    fail("epsilon must be at least ", std::numeric_limits<float>::min(), ", is ", options.epsilon);
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
  parallel_for(update.value->elements(), kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    descend(step, w + begin, m + begin, v + begin, g + begin, end - begin);
  });
}

double Adam::learning_rate(std::int64_t step) const { return options_.learning_rate * options_.schedule.factor(step); }

}  // namespace miniqat::optim
