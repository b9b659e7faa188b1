#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>

#include "core/kernels/scratch.h"
#include "core/tensors/affine.h"
#include "core/tensors/range.h"
#include "core/tensors/shape.h"
#include "layers/kernels/column_statistics.h"
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
/// gradient passes. `addend` may be null. y may be x. y begins with block `y_block`, all else with the first.
struct ChainForward {
  const float* x = nullptr;
  const float* addend = nullptr;
  float* y = nullptr;
  std::int64_t y_block = 0;
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

// What the gradients of a trained range need to know of the numbers before rounding: two bytes an element, which a
// chain keeps, or makes again where backward has x in any case.

/// Outside of the range; any other code is (y - v) / scale in steps of 1 / kRoundingCodes.
inline constexpr std::int16_t kBelowRange = -32768;
inline constexpr std::int16_t kAboveRange = 32767;
/// Enough that the sums below equal those of the numbers themselves up to a few float32 roundings. They leave room for
/// a little more than half a step, because y - v is rounded, too, and a grid may have 2^16 steps.
inline constexpr float kRoundingCodes = 60000;

/// codes of n numbers v that were rounded to y, on a grid that is not empty. A NaN has code 0.
void rounding_codes(const float* v, const float* y, std::int64_t n, const Affine<float>& grid, std::int16_t* codes);

/// The most codes that rounding_sums asks for at once.
inline constexpr std::int64_t kRoundingPiece = 2048;

/// (first, n, room): the codes of n elements, at most kRoundingPiece, from `first` on; they may lie in `room`.
using RoundingCodes = std::function<const std::int16_t*(std::int64_t, std::int64_t, std::int16_t*)>;

/// The sums over n elements, shared between the threads; RangeSums::inside is in units of the scale.
RangeSums rounding_sums(const float* d_y, std::int64_t n, const RoundingCodes& codes);

/// Sums by channel of something that several threads add up in ChannelRows: in float32 over at most about
/// kFlushRows numbers a column, in float64 from there on.
class ChannelSums {
 public:
  static constexpr std::int64_t kFlushRows = 64;

  ChannelSums(ScratchScope& scope, std::int64_t channels, int parts)
      : columns_{channels, ChannelRow::width(channels), parts}, sums_(scope.filled<double>(columns_.size(), 0.0)) {}

  /// Adds a row of float sums to the sums of one thread and clears the row.
  void flush(std::int64_t part, float* row) {
    double* sum = sums_.data() + part * columns_.stride();
#pragma omp simd
    for (std::int64_t j = 0; j < columns_.width; ++j) sum[j] += static_cast<double>(row[j]);
    std::fill_n(row, columns_.width, 0.0f);
  }

  /// [channels], of all threads.
  void store(float* totals) const {
    for (std::int64_t c = 0; c < columns_.channels; ++c) {
      double total = 0;
      columns_.for_each(c, [&](std::int64_t i, std::int64_t) { total += sums_[i]; });
      totals[c] = static_cast<float>(total);
    }
  }

 private:
  ColumnParts columns_;
  std::span<double> sums_;
};

}  // namespace miniqat::layers
