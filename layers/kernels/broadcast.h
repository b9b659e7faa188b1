#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/kernels/scratch.h"
#include "core/tensors/shape.h"
#include "core/threads/parallel.h"

namespace miniqat::layers {

/// The shape of a and b combined by NumPy's rule: axes are aligned at the last one, missing ones count as 1, and an
/// extent of 1 stretches to the other's. Throws Error with both shapes when two extents differ and neither is 1.
Shape broadcast_shapes(const Shape& a, const Shape& b);

/// Walks over all elements of broadcast_shapes(a, b) together with the elements of a and b that belong to them.
/// Neighbouring axes on which the operands behave alike are merged and axes of extent 1 dropped, so that the usual
/// cases (same shape, scalar, vector along the last axis) have long inner loops without a special path.
class BroadcastLoop {
 public:
  BroadcastLoop(const Shape& a, const Shape& b);

  std::int64_t elements() const { return elements_; }

  /// Calls body(i, a, b, length) for stretches that cover [begin, end) in order: output elements i, i+1, ... belong to
  /// elements a, a + a_step, ... and b, b + b_step, ... of the operands (steps as with_steps has them).
  template <class Body>
  void stretches(std::int64_t begin, std::int64_t end, const Body& body) const;

  /// Calls body(a_step, b_step) with integral constants of 0 or 1, not both 0.
  template <class Body>
  void with_steps(const Body& body) const {
    using Zero = std::integral_constant<std::int64_t, 0>;
    using One = std::integral_constant<std::int64_t, 1>;
    const Axis& inner = axes_[rank_ - 1];
    if (inner.a_stride == 0)
      body(Zero{}, One{});
    else if (inner.b_stride == 0)
      body(One{}, Zero{});
    else
      body(One{}, One{});
  }

 private:
  /// A stride of 0 means that the operand is stretched along the axis.
  struct Axis {
    std::int64_t extent = 1;
    std::int64_t a_stride = 1;
    std::int64_t b_stride = 1;
  };

  std::array<Axis, Shape::kMaxRank> axes_;
  int rank_ = 0;
  std::int64_t elements_ = 0;
};

/// Reduces n items to `size` sums. Cuts [0, n) into one range a thread and calls add(begin, end, sums) on each with
/// sums of its own (double, zeros at first). Then adds these up in order and hands each total to store(j, total). The
/// result depends on the thread count, never on timing. Needs size <= n.
template <class Add, class Store>
void sum_in_parts(std::int64_t n, std::int64_t grain, std::int64_t size, const Add& add, const Store& store) {
  if (size <= 0) return;
  // Sums almost as many as the items would make every further part cost as much memory as the whole input.
  const std::int64_t parts = std::min<std::int64_t>(parallel_parts(n, grain), std::max<std::int64_t>(n / size, 1));
  // Threads that write into one cache line slow each other down several times: keep a line between their sums.
  constexpr std::int64_t kLine = 64 / sizeof(double);
  const std::int64_t stride = (size + 2 * kLine - 1) / kLine * kLine;
  ScratchScope scope;
  const std::span<double> sums = scope.filled<double>(parts * stride, 0.0);
  parallel_for(parts, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t part = first; part < last; ++part)
      add(n * part / parts, n * (part + 1) / parts, sums.data() + part * stride);
  });
  for (std::int64_t j = 0; j < size; ++j) {
    double total = 0;
    for (std::int64_t part = 0; part < parts; ++part) total += sums[part * stride + j];
    store(j, total);
  }
}

template <class Body>
void BroadcastLoop::stretches(std::int64_t begin, std::int64_t end, const Body& body) const {
  if (begin >= end) return;
  std::array<std::int64_t, Shape::kMaxRank> index{};
  std::int64_t a = 0, b = 0;
  for (std::int64_t axis = rank_ - 1, rest = begin; axis >= 0; --axis) {
    index[axis] = rest % axes_[axis].extent;
    rest /= axes_[axis].extent;
    a += index[axis] * axes_[axis].a_stride;
    b += index[axis] * axes_[axis].b_stride;
  }
  const Axis& inner = axes_[rank_ - 1];
  for (std::int64_t i = begin, column = index[rank_ - 1];;) {
    const std::int64_t length = std::min(inner.extent - column, end - i);
    body(i, a, b, length);
    i += length;
    if (i >= end) return;
    a -= column * inner.a_stride;
    b -= column * inner.b_stride;
    column = 0;
    for (int axis = rank_ - 2; axis >= 0; --axis) {
      a += axes_[axis].a_stride;
      b += axes_[axis].b_stride;
      if (++index[axis] < axes_[axis].extent) break;
      a -= axes_[axis].extent * axes_[axis].a_stride;
      b -= axes_[axis].extent * axes_[axis].b_stride;
      index[axis] = 0;
    }
  }
}

}  // namespace miniqat::layers
