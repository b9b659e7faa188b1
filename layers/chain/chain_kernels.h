#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "core/kernels/scratch.h"
#include "layers/kernels/masks.h"

namespace miniqat::layers {

// The loops of Chain (chain.h), float32. A tensor is flat here: element i of n belongs to channel i % channels.

/// One number a channel, repeated until the row is a multiple of 16 numbers long (and of the channels): so that 16
/// neighbours in a tensor find their numbers side by side.
class ChannelRow {
 public:
  ChannelRow() = default;
  /// `values` has one number a channel. The row lives in `scope`.
  ChannelRow(ScratchScope& scope, std::span<const float> values);

  const float* data() const { return data_; }
  static std::int64_t width(std::int64_t channels);

 private:
  const float* data_ = nullptr;
};

/// The change of an element x of channel c, with addend a:
///   v = (x - shift[c]) * scale[c] + offset[c] + a,  clamped to [low, high];
/// NaN passes all of it. The vectors are ChannelRows of one width, null where not used: shift and scale come together.
struct ChainMap {
  const float* shift = nullptr;
  const float* scale = nullptr;
  const float* offset = nullptr;
  std::int64_t width = 16;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  /// v of one element, in the very arithmetic of the loops: what they make of the smallest and the largest x of a
  /// channel bounds, to the bit, what they make of all.
  float at(std::int64_t column, float x) const;
};

/// y = v. With `mask` (mask_words(n) words) also writes down where pass_low <= v <= pass_high, the elements at which a
/// gradient passes. `addend` may be null. y may be x.
struct ChainForward {
  const float* x = nullptr;
  const float* addend = nullptr;
  float* y = nullptr;
  std::int64_t n = 0;
  ChainMap map = {};
  float pass_low = 0;
  float pass_high = 0;
  std::uint32_t* mask = nullptr;
};

/// Blocks first..last of kMaskBlock elements.
void chain_forward(const ChainForward& work, std::int64_t first, std::int64_t last);
/// All blocks, shared between the threads.
void chain_forward(const ChainForward& work);

/// codes = y / scale + zero_point for numbers y = (code - zero_point) * scale on a grid, and back to the very same
/// bits. NaN, and any y of a NaN scale, becomes some code (and NaN again by the scale).
void pack_bytes(const float* y, std::int64_t n, float scale, float zero_point, std::uint8_t* codes);
void unpack_bytes(const std::uint8_t* codes, std::int64_t n, float scale, float zero_point, float* y);

/// With g = d_y where the mask has a 1 (everywhere without mask), else 0:
///   sums += g and products += g * (x - shift), by column of the row (where asked for; products need sums);
///   d_x = slope * g + curve * (x - shift) + constant; null vectors leave their term out, and slope then is 1;
///   d_addend = g.
/// x is read only for products or curve. d_x may be d_y or x. d_y may be null, for 0, if only d_x with curve and
/// constant is asked for.
struct ChainBackward {
  const float* d_y = nullptr;
  const std::uint32_t* mask = nullptr;
  const float* x = nullptr;
  std::int64_t n = 0;
  std::int64_t width = 16;
  const float* shift = nullptr;
  const float* slope = nullptr;
  const float* curve = nullptr;
  const float* constant = nullptr;
  float* d_x = nullptr;
  float* d_addend = nullptr;
};

/// Sums over the rows by channel, [channels] each; zeros where nobody asked for them.
struct ChainTotals {
  std::span<float> sums;
  std::span<float> products;
};

/// All blocks, shared between the threads. The totals live in `scope`.
ChainTotals chain_backward(const ChainBackward& work, std::int64_t channels, bool sums, bool products,
                           ScratchScope& scope);

}  // namespace miniqat::layers
