#pragma once

#include <cstdint>
#include <span>

#include "core/kernels/scratch.h"
#include "quantize/affine.h"

namespace miniqat::quantize {

/// The grids of a tensor's channels as the loops read them. Plain data to be passed around; the arrays belong to a
/// ScratchScope.
///
/// The integers are moved so that quant_min is 0, which leaves fewer arrays to read. The bits stay the same: an integer
/// less its zero point is exact, and nudged_min is -zero_point * scale, also for empty grids and for those of NaNs.
struct ChannelGrids {
  /// How far beyond `width` the arrays can be read.
  static constexpr std::int64_t kBeyond = 64;

  std::int64_t channels = 0;
  /// layers::row_width(channels)
  std::int64_t width = 0;
  /// Element i is for channel i % channels, up to width + kBeyond.
  const float* scale = nullptr;
  /// quant_min - zero_point
  const float* offset = nullptr;
  const float* nudged_max = nullptr;
};

/// Takes its memory from `scope`, and only there is it valid. The grids of one tensor have the same bits. No grids make
/// 0 channels, for which the loops do nothing.
ChannelGrids channel_grids(std::span<const Affine<float>> grids, ScratchScope& scope);

}  // namespace miniqat::quantize
