#include "integer/kernels/product.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "core/kernels/instruction_set.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace miniqat::integer {
namespace {

constexpr std::int32_t kMiddle = 128;

std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

bool fits_signed_byte(std::int32_t value) { return value >= -128 && value <= 127; }

}  // namespace

std::vector<std::int32_t> weight_differences(const Layer& layer) {
  const std::size_t channels = layer.bias.size();
  const auto zero_points = by_channel(layer.weight_zero_points, static_cast<std::int64_t>(channels));
  const std::int32_t unit = std::max(1, 128 >> layer.weight_bits);
  std::vector<std::int32_t> differences;
  for (std::size_t i = 0; i < layer.weights.size(); ++i)
    differences.push_back((layer.weights[i] - zero_points[i % channels]) * unit);
  return differences;
}

PackedWeights::PackedWeights(const Layer& layer, const Grid& input, const Grid& output, const Clamp& clamp,
                             std::int64_t segment, const PanelShape& shape)
    : shape_(shape),
      columns_(layer.output_channels()),
      groups_(layer.filter.elements() / columns_ / segment * (round_up(segment, 4) / 4)),
      weights_(Shape{round_up(columns_, shape.lanes) * groups_ * 4}, DType::kInt8),
      bias_(Shape{round_up(columns_, shape.lanes)}, DType::kInt32),
      corrections_(bias_.shape(), DType::kInt32),
      requantization_(by_channel(layer.multipliers, columns_), bias_.elements(), output.zero_point, clamp) {
  const std::vector<std::int32_t> differences = weight_differences(layer);
  const auto zero_points = by_channel(layer.weight_zero_points, columns_);
  std::vector<std::int32_t> corrections(static_cast<std::size_t>(columns_));
  // Sums may leave 32 bits on the way; what they are in the end fits (Model::check), and they wrap.
  std::vector<std::uint32_t> sums(static_cast<std::size_t>(columns_));
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const std::size_t o = i % corrections.size();
    if (!fits_signed_byte(differences[i])) corrections[o] = kMiddle - zero_points[o];
    sums[o] += static_cast<std::uint32_t>(differences[i]);
  }
  for (std::int64_t o = 0; o < columns_; ++o) {
    const std::uint32_t constant = static_cast<std::uint32_t>(input.zero_point) * sums[o];
    bias_.data<std::int32_t>()[o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(layer.bias[o]) - constant);
    corrections_.data<std::int32_t>()[o] = corrections[o];
    corrected_ = corrected_ || corrections[o] != 0;
  }
  pack(differences, segment);
}

void PackedWeights::pack(std::span<const std::int32_t> differences, std::int64_t segment) {
  const auto* corrections = corrections_.data<std::int32_t>();
  auto* packed = weights_.data<std::int8_t>();
  const std::int64_t rows = std::ssize(differences) / columns_;
  const std::int64_t padded_segment = round_up(segment, 4);
  constexpr int kNarrow = 64;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t padded_row = row / segment * padded_segment + row % segment;
    for (std::int64_t o = 0; o < columns_; ++o) {
      const std::int64_t first = o / shape_.columns * shape_.columns;
      const std::int64_t width = std::min(shape_.columns, round_up(columns_ - first, shape_.lanes));
      const std::int64_t place = first * groups_ * 4 + padded_row / 4 * width * 4 + (o - first) * 4 + padded_row % 4;
      packed[place] = static_cast<std::int8_t>(differences[row * columns_ + o] - corrections[o]);
      narrow_ = narrow_ && std::abs(packed[place]) <= kNarrow;
    }
  }
}

PackedWeights::View PackedWeights::view() const {
  return {.weights = weights_.data<std::int8_t>(),
          .bias = bias_.data<std::int32_t>(),
          .corrections = corrected_ ? corrections_.data<std::int32_t>() : nullptr,
          .requantization = requantization_.view(),
          .columns = columns_,
          .groups = groups_,
          .narrow = narrow_};
}

namespace {

#define MINIQAT_WITH_VNNI
#define MINIQAT_LOOPS "integer/kernels/product_loops.h"
#include "core/kernels/per_instruction_set.h"

#define MINIQAT_PRODUCT_KERNEL(set)                                                                     \
  ProductKernel {                                                                                       \
    .name = #set, .shape = {set::kLanes, set::kLanes * set::kPanelVectors}, .multiply = &set::multiply, \
    .sum_windows = &set::sum_windows                                                                    \
  }

}  // namespace

std::span<const ProductKernel> product_kernels() {
  static const std::vector<ProductKernel> all = MINIQAT_KERNELS(MINIQAT_PRODUCT_KERNEL);
  return runnable_kernels(std::span(all));
}

}  // namespace miniqat::integer
