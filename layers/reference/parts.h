#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

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
