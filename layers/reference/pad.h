#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "core/tensors/shape.h"

namespace miniqat::layers::reference {

/// The place of element i of the unpadded shape x in the padded shape y.
inline std::int64_t padded_index(std::int64_t i, const Shape& x, const Shape& y,
                                 std::span<const std::array<std::int64_t, 2>> paddings) {
  std::int64_t index = 0, stride = 1;
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    index += (i % x[axis] + paddings[axis][0]) * stride;
    i /= x[axis];
    stride *= y[axis];
  }
  return index;
}

template <class T>
void pad(const Shape& x_shape, const Shape& y_shape, std::span<const std::array<std::int64_t, 2>> paddings, const T* x,
         T* y) {
  std::fill(y, y + y_shape.elements(), T(0));
  for (std::int64_t i = 0; i < x_shape.elements(); ++i) y[padded_index(i, x_shape, y_shape, paddings)] = x[i];
}

template <class T>
void pad_d_x(const Shape& x_shape, const Shape& y_shape, std::span<const std::array<std::int64_t, 2>> paddings,
             const T* d_y, T* d_x) {
  for (std::int64_t i = 0; i < x_shape.elements(); ++i) d_x[i] = d_y[padded_index(i, x_shape, y_shape, paddings)];
}

}  // namespace miniqat::layers::reference
