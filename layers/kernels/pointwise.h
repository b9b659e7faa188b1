#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensors/tensor.h"
#include "core/threads/parallel.h"

namespace miniqat::layers {

// The loops behind every op that treats elements one by one. Outputs may be the same memory as an input (not overlap it
// otherwise), so that ops can run in place.

/// The number of a tensor's rows along the last axis.
inline std::int64_t rows_of(const Tensor& x) { return x.elements() / std::max<std::int64_t>(x.shape().channels(), 1); }

/// The grain for a loop over rows of that length.
inline std::int64_t row_grain(std::int64_t length) {
  return std::max<std::int64_t>(1, kPointwiseGrain / std::max<std::int64_t>(length, 1));
}

/// y[i] = f(x[i]), over threads.
template <class F>
void pointwise(const Tensor& x, Tensor& y, const F& f) {
  const float* from = x.data<float>();
  float* to = y.data<float>();
  parallel_for(y.elements(), kPointwiseGrain, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) to[i] = f(from[i]);
  });
}

/// y[i] = f(a[i], b[i]), over threads.
template <class F>
void pointwise(const Tensor& a, const Tensor& b, Tensor& y, const F& f) {
  const float* left = a.data<float>();
  const float* right = b.data<float>();
  float* to = y.data<float>();
  parallel_for(y.elements(), kPointwiseGrain, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) to[i] = f(left[i], right[i]);
  });
}

/// Copies the elements, of any dtype, unless both tensors are the same memory. The shapes may differ.
inline void copy_elements(const Tensor& from, Tensor& to) {
  if (from.raw() == to.raw()) return;
  const auto* source = static_cast<const char*>(from.raw());
  auto* target = static_cast<char*>(to.raw());
  parallel_for(static_cast<std::int64_t>(to.bytes()), kPointwiseGrain * 4,
               [=](std::int64_t begin, std::int64_t end) { std::copy(source + begin, source + end, target + begin); });
}

}  // namespace miniqat::layers
