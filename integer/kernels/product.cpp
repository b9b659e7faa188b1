#include "integer/kernels/product.h"

#include <cstdlib>
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

std::vector<Multiplier> channel_multipliers(const Layer& layer) {
  std::vector<Multiplier> multipliers;
  for (std::int64_t o = 0; o < layer.output_channels(); ++o) multipliers.push_back(layer.multiplier(o));
  return multipliers;
}

PackedWeights::PackedWeights(const Layer& layer, const Grid& input, const Grid& output, const Clamp& clamp,
                             std::int64_t segment, const PanelShape& shape)
    : shape_(shape),
      columns_(layer.output_channels()),
      groups_(layer.filter.elements() / columns_ / segment * (round_up(segment, 4) / 4)),
      weights_(Shape{round_up(columns_, shape.lanes) * groups_ * 4}, DType::kInt8),
      bias_(Shape{round_up(columns_, shape.lanes)}, DType::kInt32),
      corrections_(bias_.shape(), DType::kInt32),
      requantization_(channel_multipliers(layer), bias_.elements(), output.zero_point, clamp) {
  const std::int64_t count = layer.filter.elements();
  std::vector<std::int32_t> corrections(static_cast<std::size_t>(columns_));
  // Sums may leave 32 bits on the way; what they are in the end fits (Model::check), and they wrap.
  std::vector<std::uint32_t> sums(static_cast<std::size_t>(columns_));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t o = i % columns_;
    if (!fits_signed_byte(layer.weight_units(i))) corrections[o] = kMiddle - layer.weight_zero_point(o);
    sums[o] += static_cast<std::uint32_t>(layer.weight_units(i));
  }
  for (std::int64_t o = 0; o < columns_; ++o) {
    const std::uint32_t constant = static_cast<std::uint32_t>(input.zero_point) * sums[o];
    bias_.data<std::int32_t>()[o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(layer.bias[o]) - constant);
    corrections_.data<std::int32_t>()[o] = corrections[o];
    corrected_ = corrected_ || corrections[o] != 0;
  }
  pack(layer, segment);
}

void PackedWeights::pack(const Layer& layer, std::int64_t segment) {
  const auto* corrections = corrections_.data<std::int32_t>();
  auto* packed = weights_.data<std::int8_t>();
  const std::int64_t rows = layer.filter.elements() / columns_;
  const std::int64_t padded_segment = round_up(segment, 4);
  constexpr int kNarrow = 64;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t padded_row = row / segment * padded_segment + row % segment;
    for (std::int64_t o = 0; o < columns_; ++o) {
      const std::int64_t first = o / shape_.columns * shape_.columns;
      const std::int64_t width = std::min(shape_.columns, round_up(columns_ - first, shape_.lanes));
      const std::int64_t place = first * groups_ * 4 + padded_row / 4 * width * 4 + (o - first) * 4 + padded_row % 4;
      packed[place] = static_cast<std::int8_t>(layer.weight_units(row * columns_ + o) - corrections[o]);
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
