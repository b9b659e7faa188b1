#include "layers/chain/chain_kernels.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/kernels/instruction_set.h"
#include "core/threads/parallel.h"
#include "layers/chain/channel_sums.h"

namespace miniqat::layers {
namespace {

#define MINIQAT_LOOPS "layers/chain/chain_loops.h"
#include "core/kernels/per_instruction_set.h"

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

void pack_bytes(const float* y, std::int64_t n, float scale, float zero_point, std::uint8_t* codes) {
  static const auto loop = MINIQAT_PICK(pack);
  loop(y, n, scale, zero_point, codes);
}

void unpack_bytes(const std::uint8_t* codes, std::int64_t n, float scale, float zero_point, float* y) {
  static const auto loop = MINIQAT_PICK(unpack);
  loop(codes, n, scale, zero_point, y);
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

}  // namespace miniqat::layers
