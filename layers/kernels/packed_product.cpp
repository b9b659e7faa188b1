#include "layers/kernels/packed_product.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/kernels/instruction_set.h"
#include "core/kernels/onednn_bytes.h"
#include "core/kernels/repeated_row.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"

namespace miniqat::layers {
namespace {

#define MINIQAT_LOOPS "layers/kernels/packed_product_loops.h"
#include "core/kernels/per_instruction_set.h"

constexpr int kByteMax = 255;

/// Anything of a NaN grid, whose scale says so.
std::int32_t zero_point_of(const CodeGrid& grid) {
  return grid.zero_point == grid.zero_point ? static_cast<std::int32_t>(grid.zero_point) : 0;
}

/// The code that becomes 0 where w' = code - zero point may leave the bytes that oneDNN takes; 0 if it never does.
std::int32_t middle_of_codes(const PackedForm& filter) {
  const bool fits = filter.lowest >= std::numeric_limits<std::int8_t>::min() &&
                    filter.highest <= std::numeric_limits<std::int8_t>::max() &&
                    std::max(-filter.lowest, filter.highest) <= onednn::exact_byte();
  return fits ? 0 : filter.middle;
}

}  // namespace

std::string why_inexact(std::span<const PackedForm> forms, std::int64_t terms, std::int64_t columns) {
  const PackedForm &x = forms[0], &filter = forms[1];
  if (x.grids != 1 || (filter.grids != 1 && filter.grids != columns)) return "several ranges where sums need one";
  if (middle_of_codes(filter) > onednn::exact_byte())
    return miniqat::concat("weights beyond +-", onednn::exact_byte(), ": no exact sums here");
  const int largest = std::max({-filter.lowest, filter.highest, 2 * middle_of_codes(filter)});
  // Twice: what the zero point and the middles add is as large.
  const bool fits = 2 * terms * kByteMax * largest <= std::numeric_limits<std::int32_t>::max();
  return fits ? "" : "its sums may need more than 32 bits";
}

PackedProduct::PackedProduct(const PackedFactor& x, const PackedFactor& filter, std::int64_t columns,
                             ScratchScope& scope)
    : scope_(scope),
      columns_(columns),
      middle_of_codes_(middle_of_codes(filter.form)),
      x_(packed_tensor(x.form, x.bytes)),
      packed_filter_(packed_tensor(filter.form, filter.bytes)),
      filter_(scope.take<std::int8_t>(static_cast<std::size_t>(filter.form.elements))),
      zero_point_(static_cast<std::uint8_t>(zero_point_of(x_.grids[0]))) {
  static const auto loop = MINIQAT_PICK(signed_row);
  ScratchScope own;
  const auto zeros = repeated_row<std::int32_t>(own, columns, [&](std::int64_t c) {
    return needs_sums_of_x() ? middle_of_codes_ : zero_point_of(filter_grid(c));
  });
  for_repeated_rows(std::ssize(filter_), columns, [&](std::int64_t first, std::int64_t n) {
    loop(packed_filter_.codes + first, n, zeros.data(), filter_.data() + first);
  });
}

void PackedProduct::finish(float* sums, std::int64_t n, std::span<const std::int32_t> sums_of_x) {
  static const auto scale = MINIQAT_PICK(scale_row);
  static const auto add_and_scale = MINIQAT_PICK(add_and_scale_rows);
  // The sum of w' is that of w with as many middles.
  const auto middle = repeated_row<std::int32_t>(scope_, columns_, [&](std::int64_t c) { return this->middle(c); });
  const std::span<std::int32_t> of_weights = scope_.filled<std::int32_t>(static_cast<std::size_t>(columns_), 0);
  if (zero_point_ != 0)
    for (std::int64_t i = 0; i < std::ssize(filter_); i += columns_)
      for (std::int64_t c = 0; c < columns_; ++c) of_weights[c] += filter_[i + c] + middle[c];
  const auto less =
      repeated_row<std::int32_t>(scope_, columns_, [&](std::int64_t c) { return zero_point_ * of_weights[c]; });
  const auto scales =
      repeated_row<float>(scope_, columns_, [&](std::int64_t c) { return x_.grids[0].scale * filter_grid(c).scale; });
  if (!needs_sums_of_x()) {
    for_repeated_rows(n, columns_, [&](std::int64_t first, std::int64_t count) {
      scale(sums + first, count, less.data(), scales.data());
    });
    return;
  }
  parallel_for(n / columns_, std::max<std::int64_t>(1, kPointwiseGrain / columns_),
               [&](std::int64_t begin, std::int64_t end) {
                 add_and_scale(sums + begin * columns_, end - begin, columns_, sums_of_x.data() + begin, middle.data(),
                               less.data(), scales.data());
               });
}

std::int32_t PackedProduct::middle(std::int64_t column) const {
  return needs_sums_of_x() ? middle_of_codes_ - zero_point_of(filter_grid(column)) : 0;
}

bool PackedProduct::has_only_zeros(std::int64_t column) const {
  for (std::int64_t i = column; i < std::ssize(filter_); i += columns_)
    if (filter_[static_cast<std::size_t>(i)] + middle(column) != 0) return false;
  return true;
}

const CodeGrid& PackedProduct::filter_grid(std::int64_t column) const {
  return packed_filter_.grids[static_cast<std::size_t>(column) % packed_filter_.grids.size()];
}

void weigh_pixels(const std::int8_t* bytes, std::int64_t pixels, std::int64_t channels, std::int32_t factor,
                  std::int32_t* sums) {
  static const auto sum = MINIQAT_PICK(sum_pixels);
  static const auto weigh = MINIQAT_PICK(weigh_sums);
  // A signed byte with the highest bit flipped is 128 more, unsigned.
  constexpr std::uint8_t kMiddle = 128;
  sum(reinterpret_cast<const std::uint8_t*>(bytes), pixels, channels, kMiddle, sums);
  weigh(sums, pixels, static_cast<std::int32_t>(kMiddle * channels), factor);
}

std::span<const std::int32_t> sums_of_windows(const onednn::Convolution& c, const std::uint8_t* x,
                                              ScratchScope& scope) {
  static const auto loop = MINIQAT_PICK(sum_pixels);
  static const auto add = MINIQAT_PICK(add_row);
  const std::int64_t rows = c.input[1], columns = c.input[2], channels = c.input[3];
  const std::int64_t pixels = c.input[0] * rows * columns, per_image = c.output[1] * c.output[2];
  const std::span<std::int32_t> sums = scope.take<std::int32_t>(static_cast<std::size_t>(c.output[0] * per_image));
  ScratchScope own;
  const std::span<std::int32_t> of_pixels = own.take<std::int32_t>(static_cast<std::size_t>(pixels));
  parallel_for(pixels, std::max<std::int64_t>(1, kPointwiseGrain / channels),
               [&](std::int64_t begin, std::int64_t end) {
                 loop(x + begin * channels, end - begin, channels, 0, of_pixels.data() + begin);
               });
  parallel_for(c.output[0] * c.output[1], 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t top = i / c.output[1] * rows + i % c.output[1] * c.strides[0];
      std::int32_t* to = sums.data() + i * c.output[2];
      std::fill_n(to, c.output[2], 0);
      for (std::int64_t ky = 0; ky < c.filter[0]; ++ky)
        for (std::int64_t kx = 0; kx < c.filter[1]; ++kx) {
          const std::int32_t* from = of_pixels.data() + (top + ky * c.dilations[0]) * columns + kx * c.dilations[1];
          add(from, c.strides[1], c.output[2], to);
        }
    }
  });
  return sums;
}

}  // namespace miniqat::layers
