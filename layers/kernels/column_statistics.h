#pragma once

#include <cstdint>
#include <numeric>

namespace miniqat::layers {

// One reading pass over a matrix [rows, channels] of float32 for what batch norms and observers want to know of every
// channel. Parallel, without allocation; the same result whatever the instruction set, and for a given thread count
// always the same.

/// Mean and biased variance, each [channels]; neither is finite where a channel holds a NaN (both are NaN then) or an
/// infinity. rows >= 1.
/// `least` and `largest` [channels] may both be null; of channels with a NaN they say nothing.
void column_moments(const float* x, std::int64_t rows, std::int64_t channels, float* mean, float* variance,
                    float* least, float* largest);

/// The smallest and the largest of every channel's numbers, NaNs left aside; returns whether there was one. Element i
/// of n belongs to channel i % channels; a channel without elements gets +infinity and -infinity. A zero comes without
/// its sign. The same for every number of threads.
bool column_ranges(const float* x, std::int64_t n, std::int64_t channels, float* least, float* largest);

/// Loops over a tensor whose element i belongs to channel i % channels go by rows of this many elements: a multiple of
/// the channels, at least 64, with whatever repeats per row in arrays of that length. If 1024 elements are enough
/// for that, a multiple of 16, so that rows fill vector registers and the arrays stay aligned with them; longer arrays
/// would push the tensor out of the first cache.
inline std::int64_t row_width(std::int64_t channels) {
  const auto round_up = [](std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; };
  const std::int64_t whole_vectors = std::lcm(channels, std::int64_t{16});
  // What is left over of the last vector then costs less than one in sixteen.
  return whole_vectors <= 1024 ? round_up(64, whole_vectors) : round_up(256, channels);
}

/// The sums by column of several threads. A matrix [rows, width] is shared out in `parts`, and every part has an
/// accumulator a column. Column j belongs to channel j % channels, so that loops along a row are long even if there are
/// few channels.
struct ColumnParts {
  std::int64_t channels = 1;
  /// A multiple of the channels.
  std::int64_t width = 1;
  std::int64_t parts = 1;

  /// From one part's accumulators to the next one's: they stay aligned and share no cache line.
  std::int64_t stride() const { return (width + 47) / 16 * 16; }
  std::int64_t size() const { return parts * stride(); }

  /// Calls body(i, part) for all accumulators i of channel c.
  template <class Body>
  void for_each(std::int64_t c, const Body& body) const {
    for (std::int64_t part = 0; part < parts; ++part)
      for (std::int64_t i = part * stride() + c; i < part * stride() + width; i += channels) body(i, part);
  }
};

}  // namespace miniqat::layers
