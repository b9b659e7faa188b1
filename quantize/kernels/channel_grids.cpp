#include "quantize/kernels/channel_grids.h"

#include <algorithm>

#include "layers/kernels/column_parts.h"

namespace miniqat::quantize {
namespace {

/// Fills the rest of an array with its first `filled` elements, over and over.
void repeat(std::span<float> array, std::size_t filled) {
  while (filled < array.size()) {
    const std::size_t count = std::min(filled, array.size() - filled);
    std::copy_n(array.begin(), count, array.begin() + static_cast<std::ptrdiff_t>(filled));
    filled += count;
  }
}

}  // namespace

ChannelGrids channel_grids(std::span<const Affine<float>> grids, ScratchScope& scope) {
  if (grids.empty()) return {};
  const std::size_t channels = grids.size();
  const std::int64_t width = layers::row_width(static_cast<std::int64_t>(channels));
  const std::size_t length = static_cast<std::size_t>(width + ChannelGrids::kBeyond);
  const std::span<float> scale = scope.take<float>(length);
  const std::span<float> offset = scope.take<float>(length);
  const std::span<float> nudged_max = scope.take<float>(length);
  for (std::size_t c = 0; c < channels; ++c) {
    scale[c] = grids[c].scale;
    offset[c] = grids[c].quant_min - grids[c].zero_point;
    nudged_max[c] = grids[c].nudged_max;
  }
  for (const std::span<float> array : {scale, offset, nudged_max}) repeat(array, channels);
  return {static_cast<std::int64_t>(channels), width, scale.data(), offset.data(), nudged_max.data()};
}

}  // namespace miniqat::quantize
