// The loops of layers/kernels/depthwise_kernels.cpp (see core/kernels/per_instruction_set.h), over channels in vectors
// of V: those of the instruction set, then of four, then single ones. An element sees the same operations in the same
// order in all.

#include "layers/kernels/float_vector_loops.h"

/// What `kPixels` neighbouring pixels of a run see: the sources of the taps of one row, which follow each other closely
/// (a run's are `kStep` pixels apart from pixel to pixel), so that pixels share them.
template <class V, int kPixels, int kColumns, int kStep>
struct Sources {
  static constexpr int kCount = (kPixels - 1) * kStep + kColumns;

  [[gnu::always_inline]] Sources(const float* from, std::int64_t channels) {
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) values[i] = load<V>(from + i * channels);
  }

  V values[kCount];
};

/// Calls body(V, c) with the vector type for all channels c.
template <class Body>
[[gnu::always_inline]] inline void for_channels(std::int64_t channels, const Body& body) {
  constexpr std::int64_t kLanes = MINIQAT_VECTOR_BYTES / sizeof(float);
  std::int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) body(static_cast<Floats*>(nullptr), c);
  for (; c + 4 <= channels; c += 4) body(static_cast<FourFloats*>(nullptr), c);
  for (; c < channels; ++c) body(static_cast<float*>(nullptr), c);
}

/// The place of the first tap of a run's pixel number `pixel` in row `y` of the window, and its factors.
struct Place {
  const float* source;
  std::int64_t filter;
};

[[gnu::always_inline]] inline Place place_of(const Geometry& g, const Run& run, std::int64_t pixel, const AxisTap& y,
                                             const float* source) {
  const AxisTap& x = run.taps[0];
  return {source + y.source * g.source_row + (x.source + pixel * run.step) * g.channels,
          (y.window * g.window_columns + x.window) * g.channels};
}

/// All channels of kPixels pixels of a run that sees through kColumns neighbouring columns of taps.
template <int kPixels, int kColumns, int kStep>
void gather_pixels(const Geometry& g, std::span<const AxisTap> rows, const Run& run, std::int64_t pixel,
                   const float* source, const float* filter, float* target) {
  float* to = target + (run.first + pixel * run.stride) * g.channels;
  for_channels(
      g.channels, [&]<class V>(V*, std::int64_t c) __attribute__((always_inline)) {
        V sum[kPixels] = {};
        for (const AxisTap& y : rows) {
          const Place place = place_of(g, run, pixel, y, source);
          const Sources<V, kPixels, kColumns, kStep> seen(place.source + c, g.channels);
#pragma GCC unroll 3
          for (int k = 0; k < kColumns; ++k) {
            const V factor = load<V>(filter + place.filter + c + k * run.tap_step * g.channels);
#pragma GCC unroll 4
            for (int i = 0; i < kPixels; ++i) sum[i] += seen.values[i * kStep + k] * factor;
          }
        }
#pragma GCC unroll 4
        for (int i = 0; i < kPixels; ++i) store(to + i * run.stride * g.channels + c, sum[i]);
      });
}

/// Adds what kPixels pixels of a run give to the gradient of the filter.
template <int kPixels, int kColumns, int kStep>
void correlate_pixels(const Geometry& g, std::span<const AxisTap> rows, const Run& run, std::int64_t pixel,
                      const float* source, float* sums, const float* d_output) {
  const float* from = d_output + (run.first + pixel * run.stride) * g.channels;
  for_channels(
      g.channels, [&]<class V>(V*, std::int64_t c) __attribute__((always_inline)) {
        V gradient[kPixels];
#pragma GCC unroll 4
        for (int i = 0; i < kPixels; ++i) gradient[i] = load<V>(from + i * run.stride * g.channels + c);
        for (const AxisTap& y : rows) {
          const Place place = place_of(g, run, pixel, y, source);
          const Sources<V, kPixels, kColumns, kStep> seen(place.source + c, g.channels);
#pragma GCC unroll 3
          for (int k = 0; k < kColumns; ++k) {
            V sum = seen.values[k] * gradient[0];
#pragma GCC unroll 4
            for (int i = 1; i < kPixels; ++i) sum += seen.values[i * kStep + k] * gradient[i];
            float* total = sums + place.filter + c + k * run.tap_step * g.channels;
            store(total, load<V>(total) + sum);
          }
        }
      });
}

/// Calls pixels<kPixels, kColumns, kStep>(run, pixel) so that a run is covered, for runs that see through 1 to 3
/// neighbouring columns of taps.
template <int kColumns, class Pixels>
[[gnu::always_inline]] inline void cover_run(const Run& run, const Pixels& pixels) {
  using std::integral_constant;
  constexpr integral_constant<int, kColumns> kTaps;
  std::int64_t pixel = 0;
  if (run.step == 1) {
    for (; pixel + 4 <= run.count; pixel += 4)
      pixels(integral_constant<int, 4>{}, kTaps, integral_constant<int, 1>{}, pixel);
    for (; pixel + 2 <= run.count; pixel += 2)
      pixels(integral_constant<int, 2>{}, kTaps, integral_constant<int, 1>{}, pixel);
  } else if (run.step == 2) {
    for (; pixel + 4 <= run.count; pixel += 4)
      pixels(integral_constant<int, 4>{}, kTaps, integral_constant<int, 2>{}, pixel);
  }
  for (; pixel < run.count; ++pixel) pixels(integral_constant<int, 1>{}, kTaps, integral_constant<int, 1>{}, pixel);
}

/// For any of these runs.
template <class Pixels>
[[gnu::always_inline]] inline void cover(const Run& run, const Pixels& pixels) {
  switch (run.neighbours ? run.taps.size() : 0) {
    case 1:
      return cover_run<1>(run, pixels);
    case 2:
      return cover_run<2>(run, pixels);
    case 3:
      return cover_run<3>(run, pixels);
  }
}

/// One row of one image of sums over any number of taps, wherever they are.
void gather_any(const Geometry& g, std::span<const AxisTap> rows, const Run& run, const float* source,
                const float* filter, float* target) {
  for (std::int64_t pixel = 0; pixel < run.count; ++pixel) {
    const float* from = source + pixel * run.step * g.channels;
    float* to = target + (run.first + pixel * run.stride) * g.channels;
    for_channels(
        g.channels, [&]<class V>(V*, std::int64_t c) __attribute__((always_inline)) {
          V sum = {};
          for (const AxisTap& y : rows)
            for (const AxisTap& x : run.taps)
              sum += load<V>(from + y.source * g.source_row + x.source * g.channels + c) *
                     load<V>(filter + (y.window * g.window_columns + x.window) * g.channels + c);
          store(to + c, sum);
        });
  }
}

void correlate_any(const Geometry& g, std::span<const AxisTap> rows, const Run& run, const float* source, float* sums,
                   const float* d_output) {
  for (std::int64_t pixel = 0; pixel < run.count; ++pixel) {
    const float* from = source + pixel * run.step * g.channels;
    const float* gradients = d_output + (run.first + pixel * run.stride) * g.channels;
    for_channels(
        g.channels, [&]<class V>(V*, std::int64_t c) __attribute__((always_inline)) {
          const V gradient = load<V>(gradients + c);
          for (const AxisTap& y : rows)
            for (const AxisTap& x : run.taps) {
              float* total = sums + (y.window * g.window_columns + x.window) * g.channels + c;
              store(total,
                    load<V>(total) + load<V>(from + y.source * g.source_row + x.source * g.channels + c) * gradient);
            }
        });
  }
}

/// Rows begin..end of all images: target = the sum over taps of source * filter.
void gather_rows(const Geometry& g, const float* source, const float* filter, float* target, std::int64_t begin,
                 std::int64_t end) {
  const auto height = static_cast<std::int64_t>(g.rows.taps.size());
  for (std::int64_t row = begin; row < end; ++row) {
    const std::span<const AxisTap> rows = g.rows.taps[row % height];
    const float* image = source + row / height * g.source_image;
    float* to = target + row * g.target_row;
    for (const Run& run : g.columns.runs) {
      if (!run.neighbours) {
        gather_any(g, rows, run, image, filter, to);
        continue;
      }
      cover(
          run, [&]<int kPixels, int kColumns, int kStep>(
                   std::integral_constant<int, kPixels>, std::integral_constant<int, kColumns>,
                   std::integral_constant<int, kStep>, std::int64_t pixel) __attribute__((always_inline)) {
            gather_pixels<kPixels, kColumns, kStep>(g, rows, run, pixel, image, filter, to);
          });
    }
  }
}

/// Rows begin..end of all images: adds the products of source and d_output to the sums, which look like the filter.
void correlate_rows(const Geometry& g, const float* source, const float* d_output, float* sums, std::int64_t begin,
                    std::int64_t end) {
  const auto height = static_cast<std::int64_t>(g.rows.taps.size());
  for (std::int64_t row = begin; row < end; ++row) {
    const std::span<const AxisTap> rows = g.rows.taps[row % height];
    const float* image = source + row / height * g.source_image;
    const float* from = d_output + row * g.target_row;
    for (const Run& run : g.columns.runs) {
      if (!run.neighbours) {
        correlate_any(g, rows, run, image, sums, from);
        continue;
      }
      cover(
          run, [&]<int kPixels, int kColumns, int kStep>(
                   std::integral_constant<int, kPixels>, std::integral_constant<int, kColumns>,
                   std::integral_constant<int, kStep>, std::int64_t pixel) __attribute__((always_inline)) {
            correlate_pixels<kPixels, kColumns, kStep>(g, rows, run, pixel, image, sums, from);
          });
    }
  }
}
