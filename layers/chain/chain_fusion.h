#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "core/graph/op_interfaces.h"
#include "core/tensors/affine.h"
#include "layers/batch_norm.h"
#include "layers/chain/chain_kernels.h"
#include "layers/pool.h"

namespace miniqat::layers {

/// A tensor's data about the range of a quantizer that observes it.
struct ObservedRange {
  float least = 0;
  float largest = 0;
  bool has_nan = false;
};

/// A quantizer's grid for one tensor in one run. Only `lowest` and `highest` mean something to others: the bounds
/// of what it leaves unclamped, so that the straight-through estimator lets gradients pass there (both NaN: nowhere).
struct ChainGrid {
  float lowest = 0;
  float highest = 0;
  Affine<float> affine = {};
};

/// Where a quantizer's range is stored.
struct ChainRange {
  float min = 0;
  float max = 0;
  /// The staged new range, and the op's own state; null where there is nothing to learn or to keep.
  float* new_min = nullptr;
  float* new_max = nullptr;
  float* state = nullptr;
};

/// What an op with inputs x, min and max does that rounds every element of x to a grid, as a chain's last part but
/// pooling.
class ChainQuantizer {
 public:
  virtual ~ChainQuantizer() = default;

  /// A training run takes the range from x and stages it: min and max are updated inputs and have no gradient.
  virtual bool observes_range() const = 0;
  /// Whether it rounds; where it does not, y is x.
  virtual bool quantizes(const Phase& phase) const = 0;
  /// Min and max are trained: backward asks for their gradients.
  virtual bool trains_range() const = 0;
  /// d_min and d_max.
  virtual std::pair<float, float> gradients_of_range(const ChainRange& range, const RoundingSums& sums) const = 0;
  /// The grid of this run. `observed` is null where the stored range is to be used.
  virtual ChainGrid grid(const ChainRange& range, const ObservedRange* observed) const = 0;
  /// y = x on the grid, n elements, in the calling thread. y may be x.
  virtual void quantize_piece(const ChainGrid& grid, const float* x, float* y, std::int64_t n) const = 0;
  /// Whether the integers of a grid fit into bytes.
  virtual bool fits_bytes() const = 0;
  /// A tensor's on a grid that fits, but for its elements.
  virtual PackedForm packed_form() const = 0;
};

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
