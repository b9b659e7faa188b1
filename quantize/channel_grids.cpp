#include "quantize/channel_grids.h"

namespace miniqat::quantize {

ChannelGrids channel_grids(std::span<const Affine<float>> grids, ScratchScope& scope) {
  if (grids.empty()) return {};
  const std::size_t channels = grids.size();
  const std::size_t length = channels + ChannelGrids::kStretch;
  const std::span<float> scale = scope.take<float>(length);
  const std::span<float> offset = scope.take<float>(length);
  const std::span<float> nudged_max = scope.take<float>(length);
  for (std::size_t c = 0; c < channels; ++c) {
    scale[c] = grids[c].scale;
    offset[c] = grids[c].quant_min - grids[c].zero_point;
    nudged_max[c] = grids[c].nudged_max;
  }
  for (std::size_t i = channels; i < length; ++i) {
    scale[i] = scale[i - channels];
    offset[i] = offset[i - channels];
    nudged_max[i] = nudged_max[i - channels];
  }
  return {static_cast<std::int64_t>(channels), scale.data(), offset.data(), nudged_max.data()};
}

}  // namespace miniqat::quantize
