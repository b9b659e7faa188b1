// The loops of layers/depthwise_kernels.cpp (see core/per_instruction_set.h), over channels in vectors of V: those of
// the instruction set, then of four, then single ones. An element sees the same operations in the same order in all.

typedef float Lanes __attribute__((vector_size(MINIQAT_VECTOR_BYTES)));
typedef float FourLanes __attribute__((vector_size(16)));

template <class V>
[[gnu::always_inline]] inline V load(const float* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class V>
[[gnu::always_inline]] inline void store(float* to, V value) {
  __builtin_memcpy(to, &value, sizeof value);
}

/// One row of a few images.
struct Row {
  const Geometry* geometry;
  /// Of the first image.
  const float* source;
  std::int64_t images;
  std::span<const AxisTap> taps;

  [[gnu::always_inline]] std::int64_t source_offset(const AxisTap& row, const AxisTap& column) const {
    return row.source * geometry->source_row + column.source * geometry->channels;
  }
  [[gnu::always_inline]] std::int64_t filter_offset(const AxisTap& row, const AxisTap& column) const {
    return (row.window * geometry->window_columns + column.window) * geometry->channels;
  }
};

/// The channels from c on of the pixels of one run, through kRows x kColumns taps, whose filter stays in registers.
template <class V, int kRows, int kColumns>
void gather_run(const Row& row, const Run& run, const float* filter, float* target, std::int64_t c) {
  const Geometry& g = *row.geometry;
  V factor[kRows * kColumns];
  const float* from[kRows * kColumns];
  for (int r = 0; r < kRows; ++r)
    for (int k = 0; k < kColumns; ++k) {
      factor[r * kColumns + k] = load<V>(filter + row.filter_offset(row.taps[r], run.taps[k]) + c);
      from[r * kColumns + k] = row.source + row.source_offset(row.taps[r], run.taps[k]) + c;
    }
  for (std::int64_t image = 0; image < row.images; ++image) {
    std::int64_t at = image * g.source_image;
    float* to = target + image * g.target_image + run.first * g.channels + c;
    for (std::int64_t pixel = 0; pixel < run.count; ++pixel) {
      V sum = load<V>(from[0] + at) * factor[0];
#pragma GCC unroll 9
      for (int i = 1; i < kRows * kColumns; ++i) sum += load<V>(from[i] + at) * factor[i];
      store(to, sum);
      at += run.step * g.channels;
      to += run.stride * g.channels;
    }
  }
}

/// The same for any number of taps.
template <class V>
void gather_any(const Row& row, const Run& run, const float* filter, float* target, std::int64_t c) {
  const Geometry& g = *row.geometry;
  for (std::int64_t image = 0; image < row.images; ++image)
    for (std::int64_t pixel = 0; pixel < run.count; ++pixel) {
      const float* from = row.source + image * g.source_image + pixel * run.step * g.channels + c;
      V sum = {};
      for (const AxisTap& y : row.taps)
        for (const AxisTap& x : run.taps)
          sum += load<V>(from + row.source_offset(y, x)) * load<V>(filter + row.filter_offset(y, x) + c);
      store(target + image * g.target_image + (run.first + pixel * run.stride) * g.channels + c, sum);
    }
}

/// The channels from c on of a whole row.
template <class V>
void gather_channels(const Row& row, const float* filter, float* target, std::int64_t c) {
  for (const Run& run : row.geometry->columns.runs) {
    // Usual filters have at most 3x3 taps.
    switch (row.taps.size() <= 3 && run.taps.size() <= 3 ? 10 * row.taps.size() + run.taps.size() : 0) {
      case 11:
        gather_run<V, 1, 1>(row, run, filter, target, c);
        break;
      case 12:
        gather_run<V, 1, 2>(row, run, filter, target, c);
        break;
      case 13:
        gather_run<V, 1, 3>(row, run, filter, target, c);
        break;
      case 21:
        gather_run<V, 2, 1>(row, run, filter, target, c);
        break;
      case 22:
        gather_run<V, 2, 2>(row, run, filter, target, c);
        break;
      case 23:
        gather_run<V, 2, 3>(row, run, filter, target, c);
        break;
      case 31:
        gather_run<V, 3, 1>(row, run, filter, target, c);
        break;
      case 32:
        gather_run<V, 3, 2>(row, run, filter, target, c);
        break;
      case 33:
        gather_run<V, 3, 3>(row, run, filter, target, c);
        break;
      default:
        gather_any<V>(row, run, filter, target, c);
    }
  }
}

/// Calls body(lanes, c) with a value of the vector type for all channels c.
template <class Body>
[[gnu::always_inline]] inline void for_channels(std::int64_t channels, const Body& body) {
  constexpr std::int64_t kLanes = MINIQAT_VECTOR_BYTES / sizeof(float);
  std::int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) body(static_cast<Lanes*>(nullptr), c);
  for (; c + 4 <= channels; c += 4) body(static_cast<FourLanes*>(nullptr), c);
  for (; c < channels; ++c) body(static_cast<float*>(nullptr), c);
}

Row row_of(const Geometry& g, const float* source, std::int64_t chunk, std::int64_t y) {
  const std::int64_t first = chunk * g.images;
  return {&g, source + first * g.source_image, std::min(g.images, g.batch - first), g.rows.taps[y]};
}

/// Units begin..end of all: target = the sum over taps of source * filter.
void gather_rows(const Geometry& g, const float* source, const float* filter, float* target, std::int64_t begin,
                 std::int64_t end) {
  const auto rows = static_cast<std::int64_t>(g.rows.taps.size());
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t chunk = unit / rows, y = unit % rows;
    const Row row = row_of(g, source, chunk, y);
    float* to = target + chunk * g.images * g.target_image + y * g.target_row;
    for_channels(g.channels, [&]<class V>(V*, std::int64_t c) { gather_channels<V>(row, filter, to, c); });
  }
}

/// Adds to kRows x kColumns taps of the filter's gradient, from taps[first] of the row on and run.taps[first_column]
/// on, what one run of pixels gives.
template <class V, int kRows, int kColumns>
void correlate_run(const Row& row, const Run& run, std::size_t first_row, std::size_t first_column,
                   const float* d_output, float* sums, std::int64_t c) {
  const Geometry& g = *row.geometry;
  const AxisTap* ys = &row.taps[first_row];
  const AxisTap* xs = &run.taps[first_column];
  V sum[kRows * kColumns] = {};
  const float* from[kRows * kColumns];
  for (int r = 0; r < kRows; ++r)
    for (int k = 0; k < kColumns; ++k) from[r * kColumns + k] = row.source + row.source_offset(ys[r], xs[k]) + c;
  for (std::int64_t image = 0; image < row.images; ++image) {
    std::int64_t at = image * g.source_image;
    const float* gradients = d_output + image * g.target_image + run.first * g.channels + c;
    for (std::int64_t pixel = 0; pixel < run.count; ++pixel) {
      const V gradient = load<V>(gradients);
#pragma GCC unroll 9
      for (int i = 0; i < kRows * kColumns; ++i) sum[i] += load<V>(from[i] + at) * gradient;
      at += run.step * g.channels;
      gradients += run.stride * g.channels;
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int k = 0; k < kColumns; ++k) {
      float* total = sums + row.filter_offset(ys[r], xs[k]) + c;
      store(total, load<V>(total) + sum[r * kColumns + k]);
    }
}

/// The channels from c on of a whole row, in pieces of at most 3x3 taps.
template <class V>
void correlate_channels(const Row& row, const float* d_output, float* sums, std::int64_t c) {
  for (const Run& run : row.geometry->columns.runs)
    for (std::size_t r = 0; r < row.taps.size(); r += 3)
      for (std::size_t k = 0; k < run.taps.size(); k += 3) {
        switch (10 * std::min<std::size_t>(row.taps.size() - r, 3) + std::min<std::size_t>(run.taps.size() - k, 3)) {
          case 11:
            correlate_run<V, 1, 1>(row, run, r, k, d_output, sums, c);
            break;
          case 12:
            correlate_run<V, 1, 2>(row, run, r, k, d_output, sums, c);
            break;
          case 13:
            correlate_run<V, 1, 3>(row, run, r, k, d_output, sums, c);
            break;
          case 21:
            correlate_run<V, 2, 1>(row, run, r, k, d_output, sums, c);
            break;
          case 22:
            correlate_run<V, 2, 2>(row, run, r, k, d_output, sums, c);
            break;
          case 23:
            correlate_run<V, 2, 3>(row, run, r, k, d_output, sums, c);
            break;
          case 31:
            correlate_run<V, 3, 1>(row, run, r, k, d_output, sums, c);
            break;
          case 32:
            correlate_run<V, 3, 2>(row, run, r, k, d_output, sums, c);
            break;
          default:
            correlate_run<V, 3, 3>(row, run, r, k, d_output, sums, c);
        }
      }
}

/// Units begin..end of all: adds the products of source and d_output to the sums, which look like the filter.
void correlate_rows(const Geometry& g, const float* source, const float* d_output, float* sums, std::int64_t begin,
                    std::int64_t end) {
  const auto rows = static_cast<std::int64_t>(g.rows.taps.size());
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t chunk = unit / rows, y = unit % rows;
    const Row row = row_of(g, source, chunk, y);
    const float* from = d_output + chunk * g.images * g.target_image + y * g.target_row;
    for_channels(g.channels, [&]<class V>(V*, std::int64_t c) { correlate_channels<V>(row, from, sums, c); });
  }
}
