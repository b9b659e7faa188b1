#pragma once

#include <cstdint>

#include "core/engine/optimizer.h"
#include "optim/log_adam.h"
#include "optim/schedule.h"

namespace miniqat::optim {

struct SgdOptions {
  double learning_rate = 0.01;
  /// In [0, 1).
  double momentum = 0;
  /// Looks one momentum step ahead; needs momentum.
  bool nesterov = false;
  /// Added to the gradient as weight_decay * w, for variables of rank 2 and above.
  double weight_decay = 0;
  /// Decay biases and batch-norm parameters (rank 0 and 1), too.
  bool decay_all = false;
  /// Multiplies learning_rate, and that of `ranges`.
  Schedule schedule = {};
  /// For variables with multiplicative updates: the learned ranges of quantizers.
  LogAdamOptions ranges = {};
};

/// Stochastic gradient descent with momentum (Polyak 1964; Sutskever et al. 2013). The rate is outside the velocity, as
/// in PyTorch: a change of rate acts on the whole velocity at once.
///   g' = g + weight_decay * w,  v = momentum * v + g',  w -= rate * v   (Nesterov: w -= rate * (g' + momentum * v))
class Sgd final : public Optimizer {
 public:
  /// Throws Error naming the option that is out of range.
  explicit Sgd(const SgdOptions& options);

  /// {"momentum"}: the velocity v; none when momentum is 0.
  std::span<const std::string_view> slot_names() const override;
  void apply(const VariableUpdate& update) const override;
  double learning_rate(std::int64_t step) const override;
  const Optimizer* multiplicative() const override { return &ranges_; }

 private:
  SgdOptions options_;
  LogAdam ranges_;
};

}  // namespace miniqat::optim
