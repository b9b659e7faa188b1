#include "layers/kernels/bfloat16_factors.h"

#include "core/kernels/instruction_set.h"
#include "core/kernels/repeated_row.h"
#include "core/threads/parallel.h"

namespace miniqat::layers {
namespace {

#define MINIQAT_LOOPS "layers/kernels/bfloat16_factors_loops.h"
#include "core/kernels/per_instruction_set.h"

}  // namespace

const Bfloat16* rounded_to_bfloat16(const float* numbers, std::int64_t n, ScratchScope& scope) {
  static const auto loop = MINIQAT_PICK(round_row);
  Bfloat16* rounded = scope.take<Bfloat16>(static_cast<std::size_t>(n)).data();
  parallel_for(n, kPointwiseGrain,
               [&](std::int64_t begin, std::int64_t end) { loop(numbers + begin, end - begin, rounded + begin); });
  return rounded;
}

PackedGradientFactors::PackedGradientFactors(const PackedFactor& x, const PackedFactor& filter, const float* d_y,
                                             std::int64_t n, std::int64_t columns, ScratchScope& scope)
    : x_(x), filter_(filter), columns_(columns), scope_(scope) {
  static const auto loop = MINIQAT_PICK(scale_and_round_row);
  Bfloat16* d_output = scope.take<Bfloat16>(static_cast<std::size_t>(n)).data();
  ScratchScope own;
  const auto scales = repeated_row<float>(own, columns, [&](std::int64_t c) { return filter_grid(c).scale; });
  for_repeated_rows(n, columns, [&](std::int64_t first, std::int64_t count) {
    loop(d_y + first, count, scales.data(), d_output + first);
  });
  d_output_ = d_output;
}

const CodeGrid& PackedGradientFactors::filter_grid(std::int64_t column) const {
  const std::span<const CodeGrid> grids = packed_tensor(filter_.form, filter_.bytes).grids;
  return grids[static_cast<std::size_t>(column) % grids.size()];
}

const Bfloat16* PackedGradientFactors::integers(const PackedFactor& factor, std::int64_t columns) const {
  static const auto loop = MINIQAT_PICK(integers_row);
  const PackedTensor packed = packed_tensor(factor.form, factor.bytes);
  const std::int64_t n = factor.form.elements;
  Bfloat16* integers = scope_.take<Bfloat16>(static_cast<std::size_t>(n)).data();
  ScratchScope own;
  const auto zeros = repeated_row<float>(own, columns, [&](std::int64_t c) {
    return packed.grids[static_cast<std::size_t>(c) % packed.grids.size()].zero_point;
  });
  for_repeated_rows(n, columns, [&](std::int64_t first, std::int64_t count) {
    loop(packed.codes + first, count, zeros.data(), integers + first);
  });
  return integers;
}

void PackedGradientFactors::scale(float* d_filter) const {
  static const auto loop = MINIQAT_PICK(multiply_row);
  const float of_x = packed_tensor(x_.form, x_.bytes).grids[0].scale;
  ScratchScope own;
  const auto factors = repeated_row<float>(own, columns_, [&](std::int64_t c) { return of_x / filter_grid(c).scale; });
  for_repeated_rows(filter_.form.elements, columns_,
                    [&](std::int64_t first, std::int64_t count) { loop(d_filter + first, count, factors.data()); });
}

}  // namespace miniqat::layers
