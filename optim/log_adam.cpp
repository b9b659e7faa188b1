#include "optim/log_adam.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "optim/option_checks.h"

namespace miniqat::optim {
namespace {

/// Far below any gradient that means something, far above what float32 cannot hold.
constexpr double kEpsilon = 1e-12;
/// No slope counts as steeper: float32 holds its square.
constexpr double kSteepest = 1e18;

/// `old` itself where its product is too small or too large.
float times(float old, double factor) {
  const double product = old * factor, size = std::abs(product);
  const bool shrinks = size < std::abs(double{old});
  const bool fits = size <= std::numeric_limits<float>::max() && (!shrinks || size >= LogAdam::kLeast);
  return fits ? static_cast<float>(product) : old;
}

}  // namespace

LogAdam::LogAdam(const LogAdamOptions& options, const Schedule& schedule) : options_(options), schedule_(schedule) {
  require_rate(options.learning_rate, "range_learning_rate");
  require_memory(options.beta1, "beta1");
  require_memory(options.beta2, "beta2");
}

std::span<const std::string_view> LogAdam::slot_names() const {
  static constexpr std::array<std::string_view, 3> kNames = {"log_m", "log_v", "log_before"};
  return kNames;
}

/// In double and one after the other: there are a handful for each quantizer.
void LogAdam::apply(const VariableUpdate& update) const {
  const double rate = learning_rate(update.step);
  // Computed anew where an element differs from the one before it, which hardly any does.
  double t = 0, corrected_rate = 0, correction = 0;
  float* w = update.value->data<float>();
  float* m = update.slots[0]->data<float>();
  float* v = update.slots[1]->data<float>();
  float* before = update.slots[2]->data<float>();
  const float* g = update.gradient->data<float>();
  for (std::int64_t i = 0; i < update.value->elements(); ++i) {
    if (m[i] == 0 && v[i] == 0) before[i] = static_cast<float>(update.step - 1);
    // From 2^24 steps on `before` is rounded.
    if (const double passed = std::max(1.0, static_cast<double>(update.step) - before[i]); passed != t) {
      t = passed;
      corrected_rate = rate / (1 - std::pow(options_.beta1, t));
      correction = 1 / (1 - std::pow(options_.beta2, t));
    }
    const double slope = std::clamp(double{g[i]} * w[i], -kSteepest, kSteepest);
    m[i] = static_cast<float>(options_.beta1 * m[i] + (1 - options_.beta1) * slope);
    v[i] = static_cast<float>(options_.beta2 * v[i] + (1 - options_.beta2) * slope * slope);
    w[i] = times(w[i], std::exp(-corrected_rate * m[i] / (std::sqrt(correction * v[i]) + kEpsilon)));
  }
}

double LogAdam::learning_rate(std::int64_t step) const { return options_.learning_rate * schedule_.factor(step); }

}  // namespace miniqat::optim
