#include "layers/kernels/column_statistics.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/kernels/instruction_set.h"
#include "core/kernels/scratch.h"
#include "core/tensors/dtype.h"
#include "core/threads/parallel.h"

namespace miniqat::layers {
namespace {

/// Running sums of a block of rows, by column. The block's first row is the origin: float32 sums of differences stay
/// accurate where the mean is large.
struct MomentSums {
  const float* origin;
  float* sum;
  float* squares;
  /// Null when nobody asks.
  float* least;
  float* largest;
};

#define MINIQAT_LOOPS "layers/kernels/column_statistics_loops.h"
#include "core/kernels/per_instruction_set.h"

/// Sums run in float32 over this many rows, which stay in cache, and in float64 over the blocks.
constexpr std::int64_t kBlockRows = 64;

/// A matrix with few channels has short rows: several count as one wide row, so that loops along it are long.
struct WideRows : ColumnParts {
  std::int64_t rows;

  WideRows(std::int64_t all_rows, std::int64_t all_channels) {
    const std::int64_t fold = std::max<std::int64_t>(1, 256 / all_channels);
    channels = all_channels;
    width = fold * channels;
    rows = all_rows / fold;
    parts = parallel_parts(rows, std::max<std::int64_t>(1, kPointwiseGrain / width));
  }
  /// Elements after the last wide row: whole short rows.
  std::int64_t rest() const { return rows * width; }
  /// Rows in a part's share.
  std::int64_t share(std::int64_t part) const { return rows * (part + 1) / parts - rows * part / parts; }
};

/// Count, mean and sum of squared deviations of rows seen so far, for one channel.
struct Moments {
  double rows = 0;
  double mean = 0;
  double squares = 0;

  /// The moments of two sets of rows together (Chan, Golub and LeVeque 1979): unlike a sum of squares, exact also where
  /// the mean is large beside the deviation.
  void merge(double other_rows, double other_mean, double other_squares) {
    if (other_rows == 0) return;
    const double delta = other_mean - mean, share = other_rows / (rows + other_rows);
    mean += delta * share;
    squares += other_squares + delta * delta * rows * share;
    rows += other_rows;
  }
};

/// One thread's share: the moments of rows begin..end by column, and the range (which is added to).
void moments_of_rows(const WideRows& wide, const float* x, std::int64_t begin, std::int64_t end, double* mean,
                     double* squares, float* least, float* largest) {
  static const auto add = MINIQAT_PICK(moments);
  static const auto combine = MINIQAT_PICK(merge);
  ScratchScope scope;
  float* sum = scope.take<float>(wide.width).data();
  float* sum_squares = scope.take<float>(wide.width).data();
  for (std::int64_t row = begin; row < end; row += kBlockRows) {
    const std::int64_t count = std::min(kBlockRows, end - row);
    const float* block = x + row * wide.width;
    std::fill_n(sum, wide.width, 0.0f);
    std::fill_n(sum_squares, wide.width, 0.0f);
    add(block, count, wide.width, {block, sum, sum_squares, least, largest});
    combine(mean, squares, static_cast<double>(row - begin), static_cast<double>(count), block, sum, sum_squares,
            wide.width);
  }
}

/// Takes one part's minima and maxima, which get lost, into those of the channels.
void merge_ranges(float* low, float* high, const ColumnParts& columns, float* least, float* largest) {
  const std::int64_t channels = columns.channels;
  std::int64_t width = columns.width;
  // Halves, while there are any: a vector at a time, where channel by channel each step would wait for the last.
  while (width / channels % 2 == 0) {
    width /= 2;
    for (std::int64_t i = 0; i < width; ++i) {
      low[i] = std::min(low[i], low[width + i]);
      high[i] = std::max(high[i], high[width + i]);
    }
  }
  for (std::int64_t i = 0; i < width; i += channels) {
    for (std::int64_t c = 0; c < channels; ++c) {
      // -0 and 0 are the same minimum; which of them was found depends on the order. Adding 0 makes both 0.
      least[c] = std::min(least[c], low[i + c]) + 0.0f;
      largest[c] = std::max(largest[c], high[i + c]) + 0.0f;
    }
  }
}

}  // namespace

void column_moments(const float* x, std::int64_t rows, std::int64_t channels, float* mean, float* variance,
                    float* least, float* largest) {
  const WideRows wide(rows, channels);
  ScratchScope scope;
  double* means = scope.filled<double>(wide.size(), 0.0).data();
  double* squares = scope.filled<double>(wide.size(), 0.0).data();
  const bool ranged = least != nullptr;
  float* low = ranged ? scope.filled<float>(wide.size(), kInfinity).data() : nullptr;
  float* high = ranged ? scope.filled<float>(wide.size(), -kInfinity).data() : nullptr;
  parallel_shares(wide.rows, wide.parts, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    const std::int64_t at = part * wide.stride();
    moments_of_rows(wide, x, begin, end, means + at, squares + at, ranged ? low + at : nullptr,
                    ranged ? high + at : nullptr);
  });
  for (std::int64_t c = 0; c < channels; ++c) {
    Moments all;
    float lowest = kInfinity, highest = -kInfinity;
    wide.for_each(c, [&](std::int64_t i, std::int64_t part) {
      all.merge(static_cast<double>(wide.share(part)), means[i], squares[i]);
      if (ranged) lowest = std::min(lowest, low[i]), highest = std::max(highest, high[i]);
    });
    for (std::int64_t i = wide.rest() + c; i < rows * channels; i += channels) {
      all.merge(1, x[i], 0);
      lowest = std::min(lowest, x[i]);
      highest = std::max(highest, x[i]);
    }
    mean[c] = static_cast<float>(all.mean);
    variance[c] = static_cast<float>(std::max(all.squares, 0.0) / static_cast<double>(rows));
    if (ranged) least[c] = lowest, largest[c] = highest;
  }
}

bool column_ranges(const float* x, std::int64_t n, std::int64_t channels, float* least, float* largest) {
  if (channels == 0) return false;
  static const auto add = MINIQAT_PICK(ranges);
  const std::int64_t width = row_width(channels), rows = (n + width - 1) / width;
  const ColumnParts columns = {
      .channels = channels, .width = width, .parts = parallel_parts(n, std::max(width, 2 * kPointwiseGrain))};
  ScratchScope scope;
  const std::span<float> low = scope.filled(columns.size(), kInfinity);
  const std::span<float> high = scope.filled(columns.size(), -kInfinity);
  std::atomic<bool> not_a_number = false;
  parallel_shares(rows, columns.parts, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    const std::int64_t at = part * columns.stride(), from = begin * width;
    if (add(x + from, std::min(n, end * width) - from, width, &low[at], &high[at]))
      not_a_number.store(true, std::memory_order_relaxed);
  });
  std::fill_n(least, channels, kInfinity);
  std::fill_n(largest, channels, -kInfinity);
  for (std::int64_t at = 0; at < columns.size(); at += columns.stride())
    merge_ranges(&low[at], &high[at], columns, least, largest);
  return not_a_number;
}

}  // namespace miniqat::layers
