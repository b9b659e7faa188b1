#include "layers/chain/chain_kernels.h"

#include <algorithm>
#include <numeric>

#include "core/kernels/instruction_set.h"

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

void chain_backward(const ChainBackward& work, float* sums, float* products, std::int64_t first, std::int64_t last) {
  static const auto loops = MINIQAT_PICK(backward);
  loops(work, sums, products, first, last);
}

}  // namespace miniqat::layers
