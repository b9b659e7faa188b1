#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensors/shape.h"
#include "layers/reference/elementwise.h"

namespace miniqat::layers::reference {

/// `kept` is x's shape with extent 1 in the axes that are averaged over.
template <class T>
void mean(const Shape& x_shape, const Shape& kept, const T* x, T* y) {
  const T count = static_cast<T>(x_shape.elements() / kept.elements());
  std::fill(y, y + kept.elements(), T(0));
  for (std::int64_t i = 0; i < x_shape.elements(); ++i) y[stretched_index(i, x_shape, kept)] += x[i] / count;
}

template <class T>
void mean_d_x(const Shape& x_shape, const Shape& kept, const T* d_y, T* d_x) {
  const T count = static_cast<T>(x_shape.elements() / kept.elements());
  for (std::int64_t i = 0; i < x_shape.elements(); ++i) d_x[i] = d_y[stretched_index(i, x_shape, kept)] / count;
}

}  // namespace miniqat::layers::reference
