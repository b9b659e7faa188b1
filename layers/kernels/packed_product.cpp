#include "layers/kernels/packed_product.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/kernels/instruction_set.h"
#include "core/kernels/onednn.h"
#include "core/kernels/repeated_row.h"

namespace miniqat::layers {
namespace {

#define MINIQAT_LOOPS "layers/kernels/packed_product_loops.h"
#include "core/kernels/per_instruction_set.h"

constexpr int kByteMax = 255;

/// Anything of a NaN grid, whose scale says so.
std::int32_t zero_point_of(const CodeGrid& grid) {
  return grid.zero_point == grid.zero_point ? static_cast<std::int32_t>(grid.zero_point) : 0;
}

}  // namespace

bool multiplies_exactly(std::span<const PackedForm> forms, std::int64_t terms, std::int64_t columns) {
  const PackedForm &x = forms[0], &filter = forms[1];
  if (x.grids != 1 || (filter.grids != 1 && filter.grids != columns)) return false;
  const int largest = std::max(-filter.lowest, filter.highest);
  if (filter.lowest < std::numeric_limits<std::int8_t>::min() ||
      filter.highest > std::numeric_limits<std::int8_t>::max())
    return false;
  if (largest > onednn::exact_byte()) return false;
  // Twice: the zero point's share is as large.
  return 2 * terms * kByteMax * largest <= std::numeric_limits<std::int32_t>::max();
}

PackedProduct::PackedProduct(const PackedFactor& x, const PackedFactor& filter, std::int64_t columns,
                             ScratchScope& scope)
    : scope_(scope),
      columns_(columns),
      x_(packed_tensor(x.form, x.bytes)),
      packed_filter_(packed_tensor(filter.form, filter.bytes)),
      filter_(scope.take<std::int8_t>(static_cast<std::size_t>(filter.form.elements))),
      zero_point_(static_cast<std::uint8_t>(zero_point_of(x_.grids[0]))) {
  static const auto loop = MINIQAT_PICK(signed_row);
  const std::span<const CodeGrid> grids = packed_filter_.grids;
  ScratchScope own;
  const auto zero_points = repeated_row<std::int32_t>(
      own, columns, [&](std::int64_t c) { return zero_point_of(grids[static_cast<std::size_t>(c) % grids.size()]); });
  for_repeated_rows(std::ssize(filter_), columns, [&](std::int64_t first, std::int64_t n) {
    loop(packed_filter_.codes + first, n, zero_points.data(), filter_.data() + first);
  });
}

void PackedProduct::finish(float* sums, std::int64_t n) {
  static const auto loop = MINIQAT_PICK(scale_row);
  const std::span<std::int32_t> of_weights = scope_.filled<std::int32_t>(static_cast<std::size_t>(columns_), 0);
  if (zero_point_ != 0)
    for (std::int64_t i = 0; i < std::ssize(filter_); i += columns_)
      for (std::int64_t c = 0; c < columns_; ++c) of_weights[c] += filter_[i + c];
  const auto less =
      repeated_row<std::int32_t>(scope_, columns_, [&](std::int64_t c) { return zero_point_ * of_weights[c]; });
  const std::span<const CodeGrid> grids = packed_filter_.grids;
  const auto scales = repeated_row<float>(scope_, columns_, [&](std::int64_t c) {
    return x_.grids[0].scale * grids[static_cast<std::size_t>(c) % grids.size()].scale;
  });
  for_repeated_rows(n, columns_, [&](std::int64_t first, std::int64_t count) {
    loop(sums + first, count, less.data(), scales.data());
  });
}

}  // namespace miniqat::layers
