#pragma once

#include <cstdint>
#include <utility>

#include "core/tensors/affine.h"
#include "layers/chain/chain_kernels.h"

namespace miniqat {

struct Phase;

}  // namespace miniqat

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
};

}  // namespace miniqat::layers
