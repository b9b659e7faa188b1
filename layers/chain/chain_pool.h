#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/tensors/shape.h"
#include "layers/chain/chain_kernels.h"

namespace miniqat::layers {

// Max pooling inside a chain: what precedes it is computed window row by window row, in the cache, and never stored.

/// Windows [rows, columns] that cover an image [h, w, c] from its upper left corner on, side by side; rows and columns
/// that are left over belong to none.
struct ChainPool {
  std::int64_t n = 0;
  std::int64_t h = 0;
  std::int64_t w = 0;
  std::int64_t channels = 0;
  std::int64_t window_h = 2;
  std::int64_t window_w = 2;

  /// `images` [n, h, w, c], `window` [rows, columns].
  static ChainPool of(const Shape& images, const std::array<std::int64_t, 2>& window) {
    return {images[0], images[1], images[2], images[3], window[0], window[1]};
  }

  std::int64_t output_h() const { return h / window_h; }
  std::int64_t output_w() const { return w / window_w; }
  /// Elements of a row of windows, and of what becomes of it.
  std::int64_t tile() const { return window_h * w * channels; }
  std::int64_t pooled() const { return output_w() * channels; }
  /// The beginning in x of the i-th row of windows, counted over all images.
  std::int64_t offset(std::int64_t i) const { return (i / output_h() * h + i % output_h() * window_h) * w * channels; }
  /// The number of rows of windows from i on, up to `end`, that lie one behind the other in x.
  std::int64_t contiguous(std::int64_t i, std::int64_t end) const {
    return h % window_h == 0 ? end - i : std::min(end - i, output_h() - i % output_h());
  }
  /// Whether the rows of windows behind the i-th, up to `end`, have the 16 elements, before and after pooling, that a
  /// vector may reach into. (With few channels a row may be shorter than a vector.)
  bool has_room_behind(std::int64_t i, std::int64_t end) const { return (end - i - 1) * pooled() >= kMaskLanes; }
};

/// In place of a tap's number: the gradient does not pass at the largest element.
inline constexpr std::uint8_t kBlockedTap = 255;
/// The most taps that a window may have.
inline constexpr std::int64_t kMostTaps = 254;

/// A window row of `pool`: `taps` are window_h rows of w pixels, one after the other, as they are pooled, `values` the
/// same before they were rounded (may be the same memory). Writes output_w pixels to `y`, and to `winners`, unless
/// null, the largest tap (row-major number), the first of equals. It writes kBlockedTap instead if the value is not
/// within [pass_low, pass_high] (as a NaN never is). Without `values` the gradient passes at every tap, a NaN's
/// included. If the channels are not a multiple of 16, up to 16 floats (bytes) behind taps, values and y (winners) are
/// read or overwritten. `of_winners`, like y and not null only with `winners` and `values`, gets the values at the
/// winning taps.
void pool_window_row(const ChainPool& pool, const float* taps, const float* values, float pass_low, float pass_high,
                     float* y, std::uint8_t* winners, float* of_winners = nullptr);

/// The gradient: d_x of window_h rows of w pixels from d_y of output_w pixels; 0 in what belongs to no window. If the
/// channels are not a multiple of 16, 16 floats (bytes) of room are needed behind d_y and d_x (winners).
void unpool_window_row(const ChainPool& pool, const float* d_y, const std::uint8_t* winners, float* d_x);

/// sums[j] += d_y where the gradient passes, by column j of a ChannelRow of `width`; elements first..last, where first
/// is a multiple of the width.
void add_passing(const float* d_y, const std::uint8_t* winners, std::int64_t width, std::int64_t first,
                 std::int64_t last, float* sums);

}  // namespace miniqat::layers
