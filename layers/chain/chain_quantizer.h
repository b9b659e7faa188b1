#pragma once

#include <cstdint>
#include <optional>

#include "core/graph/op.h"
#include "core/tensors/affine.h"
#include "core/tensors/packed.h"
#include "core/tensors/range.h"

namespace miniqat::layers {

/// What an op with inputs x, min and max does that rounds every element of x to one grid, as a chain's last part but
/// pooling.
class ChainQuantizer {
 public:
  virtual ~ChainQuantizer() = default;

  /// A training run takes the range from x and stages it: min and max are updated inputs and have no gradient.
  virtual bool observes_range() const = 0;
  /// Min and max are trained: backward asks for their gradients.
  virtual bool trains_range() const = 0;
  /// Whether it rounds; where it does not, y is x.
  virtual bool quantizes(const Phase& phase) const = 0;
  /// The form of the rounded tensor, but for its number of elements; none where the integers do not fit into bytes.
  virtual std::optional<PackedForm> packed_form() const = 0;

  /// Makes this step's range of the observed one, in its place, and stages it as the updates of min, which is input
  /// `range_input`, and max, the next one.
  virtual void stage_range(const ForwardContext& context, int range_input, Observation<float>& observed) const = 0;
  /// The grid of such a range.
  virtual Affine<float> grid(Range<float> range) const = 0;
  /// y = x on the grid, n elements, in the calling thread. y may be x.
  virtual void quantize_piece(const Affine<float>& grid, const float* x, float* y, std::int64_t n) const = 0;
  /// d_min and d_max, each of which may be null.
  virtual void range_gradients(Range<float> range, const RangeSums& sums, float* d_min, float* d_max) const = 0;
};

}  // namespace miniqat::layers
