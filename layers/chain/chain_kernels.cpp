#include "layers/chain/chain_kernels.h"

#include <numeric>
#include <optional>

#include "core/kernels/instruction_set.h"
#include "core/threads/parallel.h"

namespace miniqat::layers {
namespace {

constexpr int kRoundingLanes = 32;
/// float32 sums run over a piece, then go on in float64.
static_assert(kRoundingPiece == 64 * kRoundingLanes);

#define MINIQAT_LOOPS "layers/chain/chain_loops.h"
#include "core/kernels/per_instruction_set.h"

/// Elements begin..end.
RangeSums sums_of(const float* d_y, const RoundingCodes& codes, std::int64_t begin, std::int64_t end) {
  const auto loop = MINIQAT_PICK(add_up);
  alignas(64) std::int16_t room[kRoundingPiece];
  RangeSums sums;
  for (std::int64_t at = begin; at < end; at += kRoundingPiece) {
    const std::int64_t n = std::min(kRoundingPiece, end - at);
    float below[kRoundingLanes] = {}, above[kRoundingLanes] = {}, inside[kRoundingLanes] = {};
    loop(d_y + at, codes(at, n, room), n, below, above, inside);
    for (int lane = 0; lane < kRoundingLanes; ++lane) {
      sums.below += below[lane];
      sums.above += above[lane];
      sums.inside += inside[lane];
    }
  }
  return sums;
}

}  // namespace

std::int64_t ChannelRow::width(std::int64_t channels) { return std::lcm(channels, std::int64_t{kMaskLanes}); }

ChannelRow::ChannelRow(ScratchScope& scope, std::span<const float> values) {
  const std::int64_t channels = std::ssize(values), columns = width(channels);
  float* row = scope.take<float>(columns).data();
  for (std::int64_t start = 0; start < columns; start += channels) std::copy_n(values.data(), channels, row + start);
  data_ = row;
}

float ChainMap::at(std::int64_t column, float x) const {
  float v = x;
  if (scale != nullptr) v = (v - shift[column]) * scale[column];
  if (offset != nullptr) v += offset[column];
  v = v < low ? low : v;
  return v > high ? high : v;
}

void chain_forward(const ChainForward& work, std::int64_t first, std::int64_t last) {
  static const auto loops = MINIQAT_PICK(forward);
  loops(work, first, last);
}

void chain_forward(const ChainForward& work) {
  parallel_for(mask_blocks(work.n), kPointwiseGrain / kMaskBlock,
               [&](std::int64_t begin, std::int64_t end) { chain_forward(work, begin, end); });
}

ChainTotals chain_backward(const ChainBackward& work, std::int64_t channels, bool sums, bool products,
                           ScratchScope& scope) {
  static const auto loops = MINIQAT_PICK(backward);
  const ChainTotals totals = {scope.filled<float>(channels, 0.0f), scope.filled<float>(channels, 0.0f)};
  const std::int64_t blocks = mask_blocks(work.n);
  const int parts = parallel_parts(blocks, kPointwiseGrain / kMaskBlock);
  ScratchScope own;
  std::optional<ChannelSums> of_sums, of_products;
  if (sums) of_sums.emplace(own, channels, parts);
  if (products) of_products.emplace(own, channels, parts);
  const std::int64_t chunk = std::max<std::int64_t>(1, ChannelSums::kFlushRows * work.width / kMaskBlock);
  parallel_shares(blocks, parts, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    ScratchScope of_part;
    float* sum = sums ? of_part.filled<float>(work.width, 0.0f).data() : nullptr;
    float* product = products ? of_part.filled<float>(work.width, 0.0f).data() : nullptr;
    for (std::int64_t block = begin; block < end; block += chunk) {
      loops(work, sum, product, block, std::min(end, block + chunk));
      if (sums) of_sums->flush(part, sum);
      if (products) of_products->flush(part, product);
    }
  });
  if (sums) of_sums->store(totals.sums.data());
  if (products) of_products->store(totals.products.data());
  return totals;
}

void pool_window_row(const ChainPool& pool, const float* taps, const float* values, float pass_low, float pass_high,
                     float* y, std::uint8_t* winners, float* of_winners) {
  static const auto loop = MINIQAT_PICK(pool_windows);
  loop(pool, taps, values, pass_low, pass_high, y, winners, of_winners);
}

void unpool_window_row(const ChainPool& pool, const float* d_y, const std::uint8_t* winners, float* d_x) {
  static const auto loop = MINIQAT_PICK(unpool_windows);
  loop(pool, d_y, winners, d_x);
}

void add_passing(const float* d_y, const std::uint8_t* winners, std::int64_t width, std::int64_t first,
                 std::int64_t last, float* sums) {
  static const auto loop = MINIQAT_PICK(add_where_passing);
  loop(d_y, winners, width, first, last, sums);
}

void rounding_codes(const float* v, const float* y, std::int64_t n, const Affine<float>& grid, std::int16_t* codes) {
  static const auto loop = MINIQAT_PICK(encode);
  // Finite, so that no rounding at all stays 0 in the smallest ranges, too.
  const float codes_a_unit = std::min(kRoundingCodes / grid.scale, std::numeric_limits<float>::max());
  loop(v, y, n, codes_a_unit, grid.nudged_min, grid.nudged_max, codes);
}

RangeSums rounding_sums(const float* d_y, std::int64_t n, const RoundingCodes& codes) {
  const int parts = parallel_parts(n, kPointwiseGrain);
  ScratchScope scope;
  const std::span<RangeSums> of_part = scope.filled<RangeSums>(static_cast<std::size_t>(parts), {});
  parallel_shares(n, parts, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    of_part[static_cast<std::size_t>(part)] = sums_of(d_y, codes, begin, end);
  });
  RangeSums total;
  for (const RangeSums& sums : of_part) {
    total.below += sums.below;
    total.above += sums.above;
    total.inside += sums.inside;
  }
  total.inside /= kRoundingCodes;
  return total;
}

}  // namespace miniqat::layers
