#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/tensors/tensor.h"

namespace miniqat {

/// One variable in one step.
struct VariableUpdate {
  std::string_view name;
  /// float32; read and overwritten.
  Tensor* value = nullptr;
  const Tensor* gradient = nullptr;
  /// One per slot_names(), the variable's shape, zeros before the first step; read and overwritten.
  std::span<Tensor* const> slots;
  /// 1 in the first training step.
  std::int64_t step = 1;
};

/// How gradients change variables. Holds settings only: the state (slots) lives in the session, named after its
/// variable, so that it survives rewrites and goes into checkpoints. Implementations are in optim/.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// State tensors per variable, for example {"momentum"}. Static.
  virtual std::span<const std::string_view> slot_names() const = 0;
  virtual void apply(const VariableUpdate& update) const = 0;
  /// The learning rate used in step `step` (1 is the first).
  virtual double learning_rate(std::int64_t step) const = 0;
  /// What changes variables whose update is kMultiplicative (core/graph/source_ops.h). Null: such variables cannot be
  /// trained. Lives as long as this.
  virtual const Optimizer* multiplicative() const { return nullptr; }
};

}  // namespace miniqat
