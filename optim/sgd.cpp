#include "optim/sgd.h"

#include "core/error.h"
#include "core/parallel.h"
#include "optim/option_checks.h"

namespace miniqat::optim {
namespace {

/// The settings of one pass over one variable, in the arithmetic of its elements.
struct Step {
  float rate;
  float momentum;
  float decay;
};

void descend(const Step& step, float* __restrict w, const float* __restrict g, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) w[i] -= step.rate * (g[i] + step.decay * w[i]);
}

template <bool kNesterov>
void descend_with_momentum(const Step& step, float* __restrict w, float* __restrict v, const float* __restrict g,
                           std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float decayed = g[i] + step.decay * w[i];
    v[i] = step.momentum * v[i] + decayed;
    w[i] -= step.rate * (kNesterov ? decayed + step.momentum * v[i] : v[i]);
  }
}

}  // namespace

Sgd::Sgd(const SgdOptions& options) : options_(options) {
  require_rate(options.learning_rate, "learning_rate");
  require_memory(options.momentum, "momentum");
  require_rate(options.weight_decay, "weight_decay");
  if (options.nesterov && options.momentum == 0) fail("nesterov needs momentum above 0, is 0");
}

std::vector<std::string> Sgd::slot_names() const {
  if (options_.momentum == 0) return {};
  return {"momentum"};
}

void Sgd::apply(const VariableUpdate& update) const {
  const bool decays = options_.decay_all || update.value->shape().rank() >= 2;
  const Step step = {static_cast<float>(learning_rate(update.step)), static_cast<float>(options_.momentum),
                     decays ? static_cast<float>(options_.weight_decay) : 0.0f};
  float* w = update.value->data<float>();
  const float* g = update.gradient->data<float>();
  float* v = options_.momentum == 0 ? nullptr : update.slots[0]->data<float>();
  parallel_for(update.value->elements(), kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t n = end - begin;
    if (v == nullptr)
      descend(step, w + begin, g + begin, n);
    else if (options_.nesterov)
      descend_with_momentum<true>(step, w + begin, v + begin, g + begin, n);
    else
      descend_with_momentum<false>(step, w + begin, v + begin, g + begin, n);
  });
}

double Sgd::learning_rate(std::int64_t step) const { return options_.learning_rate * options_.schedule.factor(step); }

}  // namespace miniqat::optim
