#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "integer/kernels/packed_weights.h"

namespace miniqat::integer {

/// Rows of bytes to multiply with packed weights. Row i is not contiguous: its group g of four bytes lies at
/// source + rows[i] + groups[g], so that windows over images need not be copied together.
struct ProductRows {
  const std::uint8_t* source = nullptr;
  const std::int32_t* rows = nullptr;
  const std::int32_t* groups = nullptr;
  std::int64_t count = 0;
  /// The sum of every row's bytes, where the weights are corrected().
  const std::int32_t* sums = nullptr;
  /// Every four rows following each other give only their largest outputs, one row (MaxPool); count is a multiple of
  /// four.
  bool pooled = false;
  /// Row-major, as many columns as the weights have.
  std::uint8_t* output = nullptr;
};

/// A window over an image, for the sums of what it sees.
struct SumWindow {
  std::int64_t channels = 1;
  /// The image's extents in pixels: rows and columns that windows see.
  std::int64_t image_rows = 1, image_columns = 1;
  std::int64_t row_bytes = 1;
  std::int64_t rows = 1, columns = 1;
  std::int64_t row_stride = 1, column_stride = 1;
  std::int64_t row_dilation = 1, column_dilation = 1;
  std::int64_t output_rows = 1, output_columns = 1;
};

/// The loops for one kind of CPU. All give the same integers.
struct ProductKernel {
  std::string_view name;
  PanelShape shape;
  /// The columns of panels [begin, end), requantized.
  void (*multiply)(const PackedWeights::View& weights, const ProductRows& rows, std::int64_t begin, std::int64_t end);
  /// sums[output_rows][output_columns] of all that a window sees; `scratch` holds image_rows * (image_columns +
  /// output_columns) elements.
  void (*sum_windows)(const SumWindow& window, const std::uint8_t* image, std::int32_t* scratch, std::int32_t* sums);
};

/// All that this CPU can run (as far as MINIQAT_MAX_ISA allows), the best first.
std::span<const ProductKernel> product_kernels();

}  // namespace miniqat::integer
