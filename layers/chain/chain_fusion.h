#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "core/graph/op_interfaces.h"
#include "layers/batch_norm.h"
#include "layers/chain/chain_quantizer.h"
#include "layers/pool.h"

namespace miniqat::layers {

/// The parts that an op can be in a chain (chain.h), each with what the chain has to know of the op. Unless said
/// otherwise the chain's tensor is the op's input 0.
namespace chain_role {

/// * vector. Either input may be the vector.
struct Scale {};
/// + vector, which is input 1.
struct Bias {};
/// + vector or + a tensor of the same shape. Either input may be that.
struct Sum {};
/// Inputs and outputs as BatchNorm has them.
struct Normalization {
  BatchNormAttributes attributes;
};
/// Everything below 0 becomes 0, everything above `high` becomes `high`.
struct Clamp {
  float high;
};
/// A range for the whole tensor, in inputs 1 and 2.
struct Rounding {
  std::shared_ptr<const ChainQuantizer> quantizer;
};
struct MaxPooling {
  PoolAttributes attributes;
};

}  // namespace chain_role

using ChainRole = std::variant<chain_role::Scale, chain_role::Bias, chain_role::Sum, chain_role::Normalization,
                               chain_role::Clamp, chain_role::Rounding, chain_role::MaxPooling>;

/// An op that can be part of a chain.
class ChainMember : public FusesWithNext {
 public:
  /// None for an op that its attributes exclude.
  virtual std::optional<ChainRole> chain_role() const = 0;
  /// The longest chain that begins with `self`, of at least two ops or of one that gains by it.
  std::optional<Fusion> fuse(const Node& self, const FusionScope& scope) const final;

 protected:
  ~ChainMember() = default;
};

}  // namespace miniqat::layers
