#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/engine/optimizer.h"
#include "optim/schedule.h"

namespace miniqat::optim {

struct LogAdamOptions {
  /// The relative change of an element in a step whose gradient is like those before it: 0.003 is 0.3%.
  double learning_rate = 0.003;
  /// The rates of Adam's averages; in [0, 1).
  double beta1 = 0.9;
  double beta2 = 0.999;
};

/// Adam on the logarithms of a variable's absolute values, u = log |w|: for scales and ends of ranges. No step turns
/// the sign of an element or makes it 0, and an element that is 0 stays 0: a step that would shrink it below kLeast, or
/// beyond float32, is not done. Neither the unit of w nor the size of its gradient matters, so one rate serves all
/// bits, and all optimizers of the weights. (Jain et al. 2020, "Trained Quantization Thresholds", section 4.2, train
/// thresholds so; with their base-2 logarithm the rate is 1.44 times ours.) In step t, counted from an element's first
/// gradient that is not 0 (ranges may have none before a delay, or come in the middle of a training):
///   g' = g * w  (= dL/du),  m = beta1 * m + (1 - beta1) * g',  v = beta2 * v + (1 - beta2) * g'^2,
///   w *= exp(-rate * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon))
class LogAdam final : public Optimizer {
 public:
  /// 2^16 times float32's least normal number: a range as small as that has a normal number for a scale with up to 16
  /// bits.
  static constexpr float kLeast = 0x1p-110f;

  /// `schedule` multiplies the rate. Throws Error naming the option that is out of range.
  explicit LogAdam(const LogAdamOptions& options, const Schedule& schedule = {});

  /// {"log_m", "log_v", "log_before"}: the averages of g' and of its square, the steps before t = 1, which are 0 in
  /// checkpoints without the last.
  std::span<const std::string_view> slot_names() const override;
  void apply(const VariableUpdate& update) const override;
  double learning_rate(std::int64_t step) const override;
  const Optimizer* multiplicative() const override { return this; }

 private:
  LogAdamOptions options_;
  Schedule schedule_;
};

}  // namespace miniqat::optim
