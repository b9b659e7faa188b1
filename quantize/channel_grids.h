#pragma once

#include <cstdint>
#include <span>

#include "core/scratch.h"
#include "quantize/affine.h"

namespace miniqat::quantize {

/// The grids of a tensor's channels as the loops read them: element i has grid i % channels. Plain data to be passed by
/// value; the arrays belong to a ScratchScope.
///
/// The integers are moved so that quant_min is 0, which leaves fewer arrays to read and the same bits: an integer less
/// its zero point is exact, and nudged_min is -zero_point * scale, also for empty grids and for those of NaNs.
struct ChannelGrids {
  /// The loops read the arrays in stretches of up to this many elements, beginning at any channel.
  static constexpr std::int64_t kStretch = 64;

  std::int64_t channels = 0;
  /// channels + kStretch elements each: the channels, and then again from the first.
  const float* scale = nullptr;
  /// -(zero_point - quant_min)
  const float* offset = nullptr;
  const float* nudged_max = nullptr;
};

/// Takes memory from `scope`, and only there is it valid. Grids of one tensor have the same bits. No grids give
/// 0 channels, and with these the loops do nothing.
ChannelGrids channel_grids(std::span<const Affine<float>> grids, ScratchScope& scope);

}  // namespace miniqat::quantize
