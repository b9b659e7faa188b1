#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/tensors/shape.h"

namespace miniqat::layers::reference {

/// An element of one of the inputs.
struct ConcatSource {
  std::size_t input;
  std::int64_t element;
};

/// The one that element i of the output is. `axis` counts from the end when negative.
inline ConcatSource concat_source(std::int64_t i, std::span<const Shape> x, const Shape& y, std::int64_t axis) {
  const int joined = static_cast<int>(axis < 0 ? axis + y.rank() : axis);
  std::array<std::int64_t, Shape::kMaxRank> at{};
  for (int k = y.rank() - 1; k >= 0; --k) {
    at[k] = i % y[k];
    i /= y[k];
  }
  std::size_t input = 0;
  while (at[joined] >= x[input][joined]) at[joined] -= x[input++][joined];
  std::int64_t element = 0;
  for (int k = 0; k < y.rank(); ++k) element = element * x[input][k] + at[k];
  return {input, element};
}

template <class T>
void concat(std::span<const Shape> x_shapes, const Shape& y_shape, std::int64_t axis, std::span<const T* const> x,
            T* y) {
  for (std::int64_t i = 0; i < y_shape.elements(); ++i) {
    const auto [input, element] = concat_source(i, x_shapes, y_shape, axis);
    y[i] = x[input][element];
  }
}

/// d_x of an input is null if nobody asks for its gradient.
template <class T>
void concat_d_x(std::span<const Shape> x_shapes, const Shape& y_shape, std::int64_t axis, const T* d_y,
                std::span<T* const> d_x) {
  for (std::int64_t i = 0; i < y_shape.elements(); ++i) {
    const auto [input, element] = concat_source(i, x_shapes, y_shape, axis);
    if (d_x[input] != nullptr) d_x[input][element] = d_y[i];
  }
}

}  // namespace miniqat::layers::reference
