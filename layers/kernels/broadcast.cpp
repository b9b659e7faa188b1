#include "layers/kernels/broadcast.h"

#include <algorithm>

#include "core/text/error.h"

namespace miniqat::layers {
namespace {

/// The extent of the axis that is `from_last` places before the last one; 1 where the shape has none.
std::int64_t extent_from_last(const Shape& shape, int from_last) {
  return from_last < shape.rank() ? shape[shape.rank() - 1 - from_last] : 1;
}

}  // namespace

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  for (int i = 0; i < rank; ++i) {
    const std::int64_t left = extent_from_last(a, i), right = extent_from_last(b, i);
    if (left != right && left != 1 && right != 1)
      fail("shapes don't broadcast: axis ", rank - 1 - i, " is ", left, " in one and ", right, " in the other; inputs ",
           a, ", ", b);
    extents[rank - 1 - i] = left == 1 ? right : left;
  }
  return Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(rank)));
}

BroadcastLoop::BroadcastLoop(const Shape& a, const Shape& b) {
  const Shape shape = broadcast_shapes(a, b);
  elements_ = shape.elements();
  std::int64_t a_stride = 1, b_stride = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    const std::int64_t extent = extent_from_last(shape, i);
    if (extent == 1) continue;
    const bool in_a = extent_from_last(a, i) != 1, in_b = extent_from_last(b, i) != 1;
    const bool merges =
        rank_ > 0 && in_a == (axes_[rank_ - 1].a_stride != 0) && in_b == (axes_[rank_ - 1].b_stride != 0);
    if (merges)
      axes_[rank_ - 1].extent *= extent;
    else
      axes_[rank_++] = {extent, in_a ? a_stride : 0, in_b ? b_stride : 0};
    if (in_a) a_stride *= extent;
    if (in_b) b_stride *= extent;
  }
  if (rank_ == 0) rank_ = 1;
  std::reverse(axes_.begin(), axes_.begin() + rank_);
}

}  // namespace miniqat::layers
