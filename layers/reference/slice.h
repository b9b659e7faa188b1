#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensors/shape.h"

namespace miniqat::layers::reference {

/// The place in x of element i of y. `cuts` has start and step of each axis.
std::int64_t cut_index(std::int64_t i, const Shape& x, const Shape& y, const auto& cuts) {
  std::int64_t index = 0, stride = 1;
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    const auto& cut = cuts[static_cast<std::size_t>(axis)];
    index += (cut.start + i % y[axis] * cut.step) * stride;
    i /= y[axis];
    stride *= x[axis];
  }
  return index;
}

template <class T>
void slice(const Shape& x_shape, const Shape& y_shape, const auto& cuts, const T* x, T* y) {
  for (std::int64_t i = 0; i < y_shape.elements(); ++i) y[i] = x[cut_index(i, x_shape, y_shape, cuts)];
}

/// Nothing but 0 for what is left out. (Pad is this, and its gradient is slice: its input is a part of its output.)
template <class T>
void slice_d_x(const Shape& x_shape, const Shape& y_shape, const auto& cuts, const T* d_y, T* d_x) {
  std::fill(d_x, d_x + x_shape.elements(), T(0));
  for (std::int64_t i = 0; i < y_shape.elements(); ++i) d_x[cut_index(i, x_shape, y_shape, cuts)] = d_y[i];
}

}  // namespace miniqat::layers::reference
