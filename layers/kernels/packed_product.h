#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/kernels/onednn.h"
#include "core/kernels/scratch.h"
#include "core/tensors/packed.h"

namespace miniqat::layers {

/// An input of a layer: its form, and bytes of form.spec().
struct PackedFactor {
  const PackedForm& form;
  const Tensor& bytes;
};

/// Why sums of `terms` products of a packed x and a packed filter are not exact in oneDNN's kernels or do not fit into
/// 32 bits, less the zero point's share; "" if they are and do. x must have one grid, the filter one or one for each of
/// its `columns`.
std::string why_inexact(std::span<const PackedForm> forms, std::int64_t terms, std::int64_t columns);

/// A layer's forward on the integers of its inputs:
///
///   y[row, c] = scale_x * scale_filter[c] * (sum of q_x * w + middle[c] * sum of q_x - zero_point_x * sum of w')
///   w = w' - middle[c], w' = q_filter - zero_point_filter[c]
///
/// with q_x as they are, 0..255. The middle is 0 where w' fits into the signed bytes that oneDNN takes; else it moves
/// all codes of the filter to the middle of them. The filter is a matrix here, whose last axis, or last two, are its
/// columns.
class PackedProduct {
 public:
  /// `columns` of the filter. What it makes lives in `scope`.
  PackedProduct(const PackedFactor& x, const PackedFactor& filter, std::int64_t columns, ScratchScope& scope);

  const std::uint8_t* x() const { return x_.codes; }
  const std::int8_t* filter() const { return filter_.data(); }
  /// The byte of x that stands for 0.
  std::uint8_t zero_point() const { return zero_point_; }
  /// Whether a middle is not 0.
  bool needs_sums_of_x() const { return middle_of_codes_ != 0; }
  /// w' - w of a column.
  std::int32_t middle(std::int64_t column) const;
  float x_scale() const { return x_.grids[0].scale; }
  float filter_scale(std::int64_t column) const { return filter_grid(column).scale; }
  /// Whether all w' of the column are 0.
  bool has_only_zeros(std::int64_t column) const;
  /// In place of `n` sums, row by row, their y. `sums_of_x`: of q_x, one a row, where they are needed.
  void finish(float* sums, std::int64_t n, std::span<const std::int32_t> sums_of_x);

 private:
  const CodeGrid& filter_grid(std::int64_t column) const;

  ScratchScope& scope_;
  const std::int64_t columns_;
  const std::int32_t middle_of_codes_;
  PackedTensor x_, packed_filter_;
  std::span<std::int8_t> filter_;
  std::uint8_t zero_point_ = 0;
};

/// factor * the sum of each pixel's channels.
void weigh_pixels(const std::int8_t* bytes, std::int64_t pixels, std::int64_t channels, std::int32_t factor,
                  std::int32_t* sums);

/// The sum of the bytes that each window of a convolution without padding covers, one for each pixel of its output.
/// Lives in `scope`.
std::span<const std::int32_t> sums_of_windows(const onednn::Convolution& convolution, const std::uint8_t* x,
                                              ScratchScope& scope);

}  // namespace miniqat::layers
