#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/tensors/tensor.h"
#include "integer/kernels/requantization.h"
#include "integer/model.h"

namespace miniqat::integer {

// A layer's weights as the matrix product wants them. It multiplies unsigned bytes x with signed ones: with an offset
// per column that makes w = q - offset fit, and z for zero points,
//
//   sum (x - z_x) (q - z_w)  =  sum x w  +  (offset - z_w) * sum x  -  z_x * sum (q - z_w)
//
// The last term is a constant, added to the bias. The offset is z_w, and the second term vanishes, wherever all q - z_w
// are signed bytes: always below 8 bits, and with a zero point in the middle. Otherwise it is 128, and the second term
// needs the sums of x.

/// Columns come in panels, a whole number of vectors each, and within a panel in groups of four rows: the four weights
/// of a column follow each other, those of a panel's columns are contiguous.
struct PanelShape {
  /// Columns of a vector.
  std::int64_t lanes = 16;
  /// Columns of every panel but the last, which may have fewer vectors.
  std::int64_t columns = 64;
};

class PackedWeights {
 public:
  /// The weights of a convolution [kh, kw, in, out] or fully connected layer [in, out], of a model that has passed
  /// Model::check(), over inputs of the grid `input`. The matrix has a column for each output and as many rows as the
  /// filter has weights for one. It is cut into segments of `segment` rows each, a divisor of their number, and rows of
  /// zeros fill each segment up to a multiple of four. shape.columns is a multiple of shape.lanes. Nothing is checked
  /// or kept by reference.
  PackedWeights(const Layer& layer, const Grid& input, const Grid& output, const Clamp& clamp, std::int64_t segment,
                const PanelShape& shape);

  /// The view for loops; valid as long as this. The arrays of one element a column go on to a whole number of vectors:
  /// what is beyond the last column is 0.
  struct View {
    /// [panel][group][column of the panel][4]: w.
    const std::int8_t* weights;
    /// bias - z_x * sum (q - z_w) of every column.
    const std::int32_t* bias;
    /// offset - z_w of every column, or null where all are 0.
    const std::int32_t* corrections;
    Requantization::View requantization;
    std::int64_t columns;
    /// The groups of four rows, padding included.
    std::int64_t groups;
    /// All weights are within +-64: 16 bits hold the sum of two products with unsigned bytes.
    bool narrow;
  };
  View view() const;

  /// The layer's outputs.
  std::int64_t columns() const { return columns_; }
  std::int64_t panels() const { return (columns_ + shape_.columns - 1) / shape_.columns; }
  /// The groups of four rows, padding included.
  std::int64_t groups() const { return groups_; }
  /// Sums of x are needed.
  bool corrected() const { return corrected_; }

 private:
  void pack(std::span<const std::int32_t> differences, std::int64_t segment);

  PanelShape shape_;
  std::int64_t columns_;
  std::int64_t groups_;
  Tensor weights_, bias_, corrections_;
  bool corrected_ = false;
  bool narrow_ = true;
  Requantization requantization_;
};

/// What a layer has once for all output channels or for each: for each.
template <class T>
std::vector<T> by_channel(std::vector<T> values, std::int64_t channels) {
  values.resize(static_cast<std::size_t>(channels), T(values[0]));
  return values;
}

/// q - z_w of a layer's weights, in the filter's order and the units of its sums: below 7 bits in steps of 2^(7 -
/// bits). (Layer::weight_units() says the same; it is the specification's.)
std::vector<std::int32_t> weight_differences(const Layer& layer);

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
