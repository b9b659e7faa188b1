#pragma once

#include <cstdint>

#include "core/kernels/scratch.h"
#include "core/tensors/bfloat16.h"
#include "layers/kernels/packed_product.h"

namespace miniqat::layers {

/// n numbers rounded to bfloat16, in parallel. They live in `scope`.
const Bfloat16* rounded_to_bfloat16(const float* numbers, std::int64_t n, ScratchScope& scope);

/// The factors of a layer's gradients, from the integers that its forward multiplied (PackedProduct):
///
///   g = d_y * scale_filter[c], rounded to bfloat16
///   d_x = sum of g * (q_filter - zero_point_filter[c])
///   d_filter = scale_x / scale_filter[c] * sum of (q_x - zero_point_x) * g
///
/// The integers have at most 8 bits and a sign, and so are exact.
class PackedGradientFactors {
 public:
  /// The filter has `columns`, d_y has n elements. What it makes lives in `scope`.
  PackedGradientFactors(const PackedFactor& x, const PackedFactor& filter, const float* d_y, std::int64_t n,
                        std::int64_t columns, ScratchScope& scope);

  const Bfloat16* d_output() const { return d_output_; }
  /// q_filter - zero_point_filter[c], made by each call.
  const Bfloat16* filter() const { return integers(filter_, columns_); }
  /// q_x - zero_point_x, made by each call.
  const Bfloat16* x() const { return integers(x_, 1); }
  /// The sums in `d_filter` become the gradient.
  void scale(float* d_filter) const;

 private:
  const CodeGrid& filter_grid(std::int64_t column) const;
  const Bfloat16* integers(const PackedFactor& factor, std::int64_t columns) const;

  const PackedFactor x_, filter_;
  const std::int64_t columns_;
  ScratchScope& scope_;
  const Bfloat16* d_output_ = nullptr;
};

}  // namespace miniqat::layers
