#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/tensors/shape.h"

namespace miniqat::layers::reference {

/// Which element of an operand of shape `from` belongs to element i of the shape `to` that it is stretched to.
inline std::int64_t stretched_index(std::int64_t i, const Shape& to, const Shape& from) {
  const std::span<const std::int64_t> extents = from.extents();
  const std::span<const std::int64_t> aligned = to.extents().last(extents.size());
  std::int64_t index = 0, stride = 1;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    if (extents[axis] != 1) index += i % aligned[axis] * stride;
    i /= aligned[axis];
    stride *= extents[axis];
  }
  return index;
}

/// The elements of operand x at which an output of shape `to` looks, one for each output element.
template <class T>
std::vector<T> stretched(const T* x, const Shape& from, const Shape& to) {
  std::vector<T> result(to.elements());
  for (std::int64_t i = 0; i < to.elements(); ++i) result[i] = x[stretched_index(i, to, from)];
  return result;
}

/// The gradient of `stretched`: every element collects from all places at which it was looked at.
template <class T>
void collect(const std::vector<T>& d_stretched, const Shape& from, const Shape& to, T* d_x) {
  std::fill(d_x, d_x + from.elements(), T(0));
  for (std::int64_t i = 0; i < to.elements(); ++i) d_x[stretched_index(i, to, from)] += d_stretched[i];
}

// Each rule is the value and its derivatives times d, the gradient that arrives, for float and for double.

struct AddRule {
  static auto value(auto a, auto b) { return a + b; }
  static auto d_a(auto d, auto, auto) { return d; }
  static auto d_b(auto d, auto, auto) { return d; }
};

struct SubRule {
  static auto value(auto a, auto b) { return a - b; }
  static auto d_a(auto d, auto, auto) { return d; }
  static auto d_b(auto d, auto, auto) { return -d; }
};

struct MulRule {
  static auto value(auto a, auto b) { return a * b; }
  static auto d_a(auto d, auto, auto b) { return d * b; }
  static auto d_b(auto d, auto a, auto) { return d * a; }
};

struct DivRule {
  static auto value(auto a, auto b) { return a / b; }
  static auto d_a(auto d, auto, auto b) { return d / b; }
  static auto d_b(auto d, auto a, auto b) { return -d * a / (b * b); }
};

struct RsqrtRule {
  static auto value(auto x) { return 1 / std::sqrt(x); }
  static auto d_x(auto d, auto x) { return -d / (2 * x * std::sqrt(x)); }
};

struct ReciprocalRule {
  static auto value(auto x) { return 1 / x; }
  static auto d_x(auto d, auto x) { return -d / (x * x); }
};

struct SquareRule {
  static auto value(auto x) { return x * x; }
  static auto d_x(auto d, auto x) { return 2 * d * x; }
};

template <class T>
void bias_add(std::int64_t rows, std::int64_t channels, const T* x, const T* bias, T* y) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < channels; ++c) y[r * channels + c] = x[r * channels + c] + bias[c];
}

/// d_bias[c] = sum over r of d_y[r, c].
template <class T>
void bias_add_d_bias(std::int64_t rows, std::int64_t channels, const T* d_y, T* d_bias) {
  for (std::int64_t c = 0; c < channels; ++c) {
    d_bias[c] = 0;
    for (std::int64_t r = 0; r < rows; ++r) d_bias[c] += d_y[r * channels + c];
  }
}

}  // namespace miniqat::layers::reference
