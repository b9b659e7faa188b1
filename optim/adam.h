#pragma once

#include <cstdint>

#include "core/engine/optimizer.h"
#include "optim/log_adam.h"
#include "optim/schedule.h"

namespace miniqat::optim {

struct AdamOptions {
  double learning_rate = 0.001;
  /// The share of the mean gradient, and of the mean squared gradient, that a step keeps. In [0, 1).
  double beta1 = 0.9;
  double beta2 = 0.999;
  /// Above 0.
  double epsilon = 1e-8;
  /// Added to the gradient as weight_decay * w, for variables of rank 2 and above.
  double weight_decay = 0;
  /// Decay biases and batch-norm parameters (rank 0 and 1), too.
  bool decay_all = false;
  /// Multiplies learning_rate, and that of `ranges`.
  Schedule schedule = {};
  /// For variables with multiplicative updates: the learned ranges of quantizers.
  LogAdamOptions ranges = {};
};

/// Adam (Kingma and Ba 2015, algorithm 1) with bias correction. Weight decay is L2 regularisation, added to the
/// gradient before the averages as in PyTorch's Adam, not the decoupled decay of AdamW. In step t:
///   g' = g + weight_decay * w,  m = beta1 * m + (1 - beta1) * g',  v = beta2 * v + (1 - beta2) * g'^2,
///   w -= rate * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
class Adam final : public Optimizer {
 public:
  /// Throws Error naming the option that is out of range.
  explicit Adam(const AdamOptions& options);

  /// {"m", "v"}: the averages of the gradient and of its square.
  std::span<const std::string_view> slot_names() const override;
  void apply(const VariableUpdate& update) const override;
  double learning_rate(std::int64_t step) const override;
  const Optimizer* multiplicative() const override { return &ranges_; }

 private:
  AdamOptions options_;
  LogAdam ranges_;
};

}  // namespace miniqat::optim
