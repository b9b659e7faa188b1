#pragma once

#include <cstdint>
#include <span>

#include "core/kernels/scratch.h"
#include "core/tensors/packed.h"

namespace miniqat::layers {

/// An input of a layer: its form, and bytes of form.spec().
struct PackedFactor {
  const PackedForm& form;
  const Tensor& bytes;
};

/// Whether sums of `terms` products of a packed x and a packed filter are exact in oneDNN's kernels and fit into 32
/// bits, less the zero point's share; x has one grid, the filter one or one for each of its `columns`.
bool multiplies_exactly(std::span<const PackedForm> forms, std::int64_t terms, std::int64_t columns);

/// A layer's forward on the integers of its inputs:
///
///   y[row, c] = scale_x * scale_filter[c] * (sum of q_x * w - zero_point_x * sum of w)
///   w = q_filter - zero_point_filter[c]
///
/// with q_x as they are, 0..255. The filter is a matrix here, whose last axis, or last two, are its columns.
class PackedProduct {
 public:
  /// `columns` of the filter. What it makes lives in `scope`.
  PackedProduct(const PackedFactor& x, const PackedFactor& filter, std::int64_t columns, ScratchScope& scope);

  const std::uint8_t* x() const { return x_.codes; }
  const std::int8_t* filter() const { return filter_.data(); }
  /// The byte of x that stands for 0.
  std::uint8_t zero_point() const { return zero_point_; }
  /// In place of `n` sums, row by row, their y.
  void finish(float* sums, std::int64_t n);

 private:
  ScratchScope& scope_;
  const std::int64_t columns_;
  PackedTensor x_, packed_filter_;
  std::span<std::int8_t> filter_;
  std::uint8_t zero_point_ = 0;
};

}  // namespace miniqat::layers
