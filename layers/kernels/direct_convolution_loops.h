// The loops of layers/kernels/direct_convolution.cpp (see core/kernels/per_instruction_set.h). Tiles of pixels (or
// taps) by channels are summed up in registers: as many as the instruction set has room for, and as many pointers as
// the CPU has.

#include "layers/kernels/float_vector_loops.h"
#include "layers/kernels/multiply_add_loops.h"

/// Pixels or taps in a tile.
template <int kVectors>
inline constexpr int kMaxTile = kVectors == 2 && MINIQAT_VECTOR_BYTES < 64 ? 6 : 12;

/// Calls body(V, integral constant of vectors) with what a block of channels is held in.
template <class Body>
[[gnu::always_inline]] inline void with_vectors(const ChannelBlock& block, const Body& body) {
  using One = std::integral_constant<int, 1>;
  using Two = std::integral_constant<int, 2>;
  const auto with_count = [&]<class V>(V* type) { block.vectors == 1 ? body(type, One{}) : body(type, Two{}); };
#if MINIQAT_VECTOR_BYTES == 64
  if (block.lanes == 16) return with_count(static_cast<Lanes16*>(nullptr));
#endif
#if MINIQAT_VECTOR_BYTES >= 32
  if (block.lanes == 8) return with_count(static_cast<Lanes8*>(nullptr));
#endif
  with_count(static_cast<Lanes4*>(nullptr));
}

/// Copies fewer floats than two vectors hold.
inline void copy_few(const float* from, float* to, std::int64_t count) {
  for (; count >= 4; count -= 4, from += 4, to += 4) store(to, load<Lanes4>(from));
  if (count >= 2) __builtin_memcpy(to, from, 2 * sizeof(float));
  if (count % 2 != 0) to[count - 1] = from[count - 1];
}

/// Writes channels of kPixels pixels, `step` apart. The first `spare` of them may be written with all their lanes.
template <class V, int kVectors, int kPixels>
[[gnu::always_inline]] inline void store_pixels(const V (&sums)[kPixels][kVectors], float* to, std::int64_t step,
                                                std::int64_t channels, std::int64_t spare) {
  constexpr std::int64_t kWidth = kVectors * kLanesOf<V>;
  if (spare >= kPixels) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) store(to + p * step + v * kLanesOf<V>, sums[p][v]);
    return;
  }
  float values[kPixels * kWidth];
  __builtin_memcpy(values, sums, sizeof values);
  std::int64_t p = 0;
  for (; p < spare; ++p)
    for (int v = 0; v < kVectors; ++v)
      store(to + p * step + v * kLanesOf<V>, load<V>(values + p * kWidth + v * kLanesOf<V>));
  for (; p < kPixels; ++p) copy_few(values + p * kWidth, to + p * step, channels);
}

/// Pixels first .. first + kPixels of a row of products, in one block of channels.
template <class V, int kVectors, int kPixels>
void multiply_tile(const PixelRow& row, const ChannelBlock& block, std::int64_t first) {
  const float* pixel[kPixels];
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
    pixel[p] = row.source + (first + p) * row.step;
    // Keeps the compiler from computing all addresses from one pointer again and again.
    __asm__("" : "+r"(pixel[p]));
  }
  V sums[kPixels][kVectors] = {};
  for (const TapRun& run : row.runs) {
    const float* weights = row.weights + run.weights + block.first;
    for (std::int64_t at = run.source; at < run.source + row.run_length; ++at, weights += row.weights_step) {
      V factors[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) factors[v] = load<V>(weights + v * kLanesOf<V>);
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) {
        const float value = pixel[p][at];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[p][v] = multiply_add(factors[v], value, sums[p][v]);
      }
    }
  }
  store_pixels(sums, row.target + first * row.target_step + block.first, row.target_step, block.channels,
               block.channels == kVectors * kLanesOf<V> ? kPixels : row.spare - first);
}

template <class V, int kVectors, int... kSizes>
[[gnu::always_inline]] inline void multiply_pixels(const PixelRow& row, const ChannelBlock& block, std::int64_t first,
                                                   std::int64_t size, std::integer_sequence<int, kSizes...>) {
  using Tile = void (*)(const PixelRow&, const ChannelBlock&, std::int64_t);
  static constexpr Tile tiles[] = {&multiply_tile<V, kVectors, kSizes + 1>...};
  tiles[size - 1](row, block, first);
}

/// A row of pixels; all channels of some pixels before the next ones, so that the target is written in order.
void multiply_row(const PixelRow& row) {
  const auto tile = [&](std::int64_t first, std::int64_t size) {
    for (const ChannelBlock& block : row.blocks)
      with_vectors(block, [&]<class V, int kVectors>(V*, std::integral_constant<int, kVectors>) {
        multiply_pixels<V, kVectors>(row, block, first, size, std::make_integer_sequence<int, kMaxTile<kVectors>>());
      });
  };
  if (row.blocks.front().vectors == 1)
    for_tiles<kMaxTile<1>>(row.pixels, tile);
  else
    for_tiles<kMaxTile<2>>(row.pixels, tile);
}

/// Taps first .. first + kTaps of the gradient of the filter, in one block of channels.
template <class V, int kVectors, int kTaps>
void correlate_tile(const PixelRows& rows, const ChannelBlock& block, std::int64_t first) {
  const float* tap[kTaps];
#pragma GCC unroll 16
  for (int t = 0; t < kTaps; ++t) {
    tap[t] = rows.source + rows.taps[first + t];
    __asm__("" : "+r"(tap[t]));
  }
  V sums[kTaps][kVectors] = {};
  const float* gradients = rows.d_output + block.first;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const std::int64_t begin = row * rows.row_step;
    const std::int64_t end = begin + rows.columns * rows.step;
    for (std::int64_t at = begin; at < end; at += rows.step, gradients += rows.channels) {
      V gradient[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) gradient[v] = load<V>(gradients + v * kLanesOf<V>);
#pragma GCC unroll 16
      for (int t = 0; t < kTaps; ++t) {
        const float value = tap[t][at];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[t][v] = multiply_add(gradient[v], value, sums[t][v]);
      }
    }
  }
  constexpr std::int64_t kWidth = kVectors * kLanesOf<V>;
  float values[kTaps][kWidth];
  __builtin_memcpy(values, sums, sizeof values);
  double* totals = rows.totals + first * rows.totals_step + block.first;
  for (int t = 0; t < kTaps; ++t)
    for (std::int64_t c = 0; c < kWidth; ++c) totals[t * rows.totals_step + c] += values[t][c];
}

template <class V, int kVectors, int... kSizes>
void correlate_block(const PixelRows& rows, const ChannelBlock& block, std::integer_sequence<int, kSizes...>) {
  using Tile = void (*)(const PixelRows&, const ChannelBlock&, std::int64_t);
  static constexpr Tile tiles[] = {&correlate_tile<V, kVectors, kSizes + 1>...};
  for_tiles<kMaxTile<kVectors>>(static_cast<std::int64_t>(rows.taps.size()),
                                [&](std::int64_t first, std::int64_t size) { tiles[size - 1](rows, block, first); });
}

/// Adds what some rows of pixels give to the gradient of the filter.
void correlate_rows(const PixelRows& rows) {
  for (const ChannelBlock& block : rows.blocks)
    with_vectors(block, [&]<class V, int kVectors>(V*, std::integral_constant<int, kVectors>) {
      correlate_block<V, kVectors>(rows, block, std::make_integer_sequence<int, kMaxTile<kVectors>>());
    });
}

/// Adds up the windows' rows: a pixel of the input belongs to several windows.
template <class V>
void overlap_channels(const Overlap& overlap, std::int64_t first, std::int64_t channels) {
  const bool single = channels == overlap.channels;
  // Pixel x is the one number k of window w.
  std::int64_t first_k = overlap.pad_before % overlap.stride;
  std::int64_t first_w = overlap.pad_before / overlap.stride;
  for (std::int64_t x = 0; x < overlap.pixels; ++x) {
    V sum = {};
    for (std::int64_t k = first_k, w = first_w; k < overlap.window && w >= 0; k += overlap.stride, --w)
      if (w < overlap.windows) sum += load<V>(overlap.source + w * overlap.source_step + k * overlap.channels + first);
    float* to = overlap.target + x * overlap.channels + first;
    // Spare lanes fall on the next pixels' channels, which are written after them.
    if (channels == kLanesOf<V> || (single && (overlap.pixels - x) * overlap.channels >= kLanesOf<V>)) {
      store(to, sum);
    } else {
      float values[kLanesOf<V>];
      store(values, sum);
      copy_few(values, to, channels);
    }
    if (++first_k == overlap.stride) {
      first_k = 0;
      ++first_w;
    }
  }
}

void overlap_row(const Overlap& overlap) {
  constexpr std::int64_t kLanes = MINIQAT_VECTOR_BYTES / sizeof(float);
  for (std::int64_t first = 0; first < overlap.channels; first += kLanes) {
    const std::int64_t channels = overlap.channels - first < kLanes ? overlap.channels - first : kLanes;
#if MINIQAT_VECTOR_BYTES == 64
    if (channels > 8) {
      overlap_channels<Lanes16>(overlap, first, channels);
      continue;
    }
#endif
#if MINIQAT_VECTOR_BYTES >= 32
    if (channels > 4) {
      overlap_channels<Lanes8>(overlap, first, channels);
      continue;
    }
#endif
    overlap_channels<Lanes4>(overlap, first, channels);
  }
}
