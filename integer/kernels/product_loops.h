// The loops of integer/kernels/product.cpp (see core/kernels/per_instruction_set.h). A tile is kRows x kVectors vectors
// of sums, which stay in registers over all groups: each group's factors are loaded once for all rows, each row's four
// bytes once for all columns.

#include "integer/kernels/vector_loops.h"

constexpr int kLanes = MINIQAT_VECTOR_BYTES / 4;

/// Products of narrow weights (PackedWeights::View) two at a time in 16 bits: worth it where no instruction adds up
/// four, in vectors that have one for two.
#if MINIQAT_VECTOR_BYTES >= 32 && !MINIQAT_VNNI
constexpr bool kHasNarrow = true;

/// dot() of bytes that are not widened.
[[gnu::always_inline]] inline Ints narrow_dot(Ints sum, Ints x, Ints w) {
#if MINIQAT_VECTOR_BYTES == 64
  return sum + (Ints)_mm512_madd_epi16(_mm512_maddubs_epi16((__m512i)x, (__m512i)w), _mm512_set1_epi16(1));
#else
  return sum + (Ints)_mm256_madd_epi16(_mm256_maddubs_epi16((__m256i)x, (__m256i)w), _mm256_set1_epi16(1));
#endif
}
#else
constexpr bool kHasNarrow = false;

[[gnu::always_inline]] inline Ints narrow_dot(Ints sum, Ints x, Ints w) { return dot(sum, pixels(x), factors(w)); }
#endif

/// Vectors of a panel. AVX-512 has 32 registers, the others 16.
constexpr int kPanelVectors = MINIQAT_VECTOR_BYTES == 64 ? 4 : 2;

/// The number of rows for which there are registers; a multiple of four for the narrow ones.
constexpr int rows_of_tile(int vectors) {
  if (MINIQAT_VECTOR_BYTES == 64) return vectors == 4 ? 6 : 8;
  return vectors == 2 ? 4 : 8;
}

/// The beginning of a panel in the arrays.
struct Panel {
  const std::int8_t* weights;
  std::int64_t column;
  std::int64_t width;
};

template <class V>
[[gnu::always_inline]] inline V wrapping_multiply_add(V sum, V a, std::int32_t b) {
  using Unsigned __attribute__((vector_size(sizeof(V)))) = std::uint32_t;
  return (V)((Unsigned)sum + (Unsigned)a * static_cast<std::uint32_t>(b));
}

/// Requantizes rows of a panel, `kStep` rows apart, and stores the first panel.width columns of each. As many rows as
/// make four vectors are packed to bytes together.
template <int kRows, int kVectors, int kStep>
[[gnu::always_inline]] inline void store_rows(Ints (*sum)[kVectors], const Requantization::View& q, const Panel& panel,
                                              std::uint8_t* to, std::int64_t columns) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) requantize<kRows, kStep * kVectors>(&sum[0][v], q, panel.column + v * kLanes);
  constexpr int kTogether = kVectors < 3 ? 4 / kVectors : 1;
  using RowBytes = typename BytesOf<sizeof(Ints) / kTogether>::Vector;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; r += kTogether) {
    Ints y[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const int row = kVectors < 3 ? r + i / kVectors : r;
      y[i] = row < kRows && (kVectors != 3 || i < 3) ? sum[row * kStep][i % kVectors] : sum[r * kStep][0];
    }
    const auto bytes = pack(y[0], y[1], y[2], y[3], q);
#pragma GCC unroll 4
    for (int k = 0; k < kTogether; ++k)
      if (r + k < kRows)
        store_bytes(to + (r + k) * columns, load<RowBytes>(reinterpret_cast<const RowBytes*>(&bytes) + k), panel.width);
  }
}

/// Adds the products of all groups to the sums of a tile.
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void add_groups(Ints (*sum)[kVectors], const std::uint8_t* const* x,
                                              const std::int8_t* weights, const std::int32_t* offsets,
                                              std::int64_t groups) {
  for (std::int64_t g = 0; g < groups; ++g, weights += kVectors * sizeof(Ints)) {
    Factors<Ints> f[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) f[v] = factors(load<Ints>(weights + v * sizeof(Ints)));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Pixels<Ints> seen = pixels(broadcast<Ints>(x[r] + offsets[g]));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] = dot(sum[r][v], seen, f[v]);
    }
  }
}

/// add_groups() with narrow weights.
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void add_narrow_groups(Ints (*sum)[kVectors], const std::uint8_t* const* x,
                                                     const std::int8_t* weights, const std::int32_t* offsets,
                                                     std::int64_t groups) {
  for (std::int64_t g = 0; g < groups; ++g, weights += kVectors * sizeof(Ints)) {
    Ints f[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) f[v] = load<Ints>(weights + v * sizeof(Ints));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Ints seen = broadcast<Ints>(x[r] + offsets[g]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] = narrow_dot(sum[r][v], seen, f[v]);
    }
  }
}

template <int kRows, int kVectors, bool kPooled>
void multiply_tile(const PackedWeights::View& w, const ProductRows& rows, const Panel& panel, std::int64_t first) {
  Ints sum[kRows][kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const Ints bias = load<Ints>(w.bias + panel.column + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sum[r][v] = bias;
  }
  const std::uint8_t* x[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) x[r] = rows.source + rows.rows[first + r];
  if (kHasNarrow && w.narrow)
    add_narrow_groups<kRows, kVectors>(sum, x, panel.weights, rows.groups, w.groups);
  else
    add_groups<kRows, kVectors>(sum, x, panel.weights, rows.groups, w.groups);
  if (w.corrections != nullptr) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Ints correction = load<Ints>(w.corrections + panel.column + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sum[r][v] = wrapping_multiply_add(sum[r][v], correction, rows.sums[first + r]);
    }
  }
  std::uint8_t* to = rows.output + first / (kPooled ? 4 : 1) * w.columns + panel.column;
  if constexpr (kPooled) {
#pragma GCC unroll 2
    for (int r = 0; r < kRows; r += 4)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        sum[r][v] = larger(larger(sum[r][v], sum[r + 1][v]), larger(sum[r + 2][v], sum[r + 3][v]));
    store_rows<kRows / 4, kVectors, 4>(sum, w.requantization, panel, to, w.columns);
  } else {
    store_rows<kRows, kVectors, 1>(sum, w.requantization, panel, to, w.columns);
  }
}

/// Full tiles, then one of the rows that are left.
template <int kRows, int kVectors, bool kPooled>
void multiply_rows(const PackedWeights::View& w, const ProductRows& rows, const Panel& panel, std::int64_t first) {
  constexpr int kStep = kPooled ? 4 : 1;
  for (; first + kRows <= rows.count; first += kRows) multiply_tile<kRows, kVectors, kPooled>(w, rows, panel, first);
  if constexpr (kRows > kStep)
    if (first < rows.count) multiply_rows<kRows - kStep, kVectors, kPooled>(w, rows, panel, first);
}

template <int kVectors>
void multiply_panel(const PackedWeights::View& w, const ProductRows& rows, const Panel& panel) {
  constexpr int kRows = rows_of_tile(kVectors);
  if (rows.pooled)
    multiply_rows<kRows / 4 * 4, kVectors, true>(w, rows, panel, 0);
  else
    multiply_rows<kRows, kVectors, false>(w, rows, panel, 0);
}

void multiply(const PackedWeights::View& w, const ProductRows& rows, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kColumns = kPanelVectors * kLanes;
  for (std::int64_t p = begin; p < end; ++p) {
    Panel panel{.weights = w.weights + p * kColumns * w.groups * 4, .column = p * kColumns, .width = kColumns};
    if (w.columns - panel.column < kColumns) panel.width = w.columns - panel.column;
    const auto vectors = static_cast<int>((panel.width + kLanes - 1) / kLanes);
    if constexpr (kPanelVectors == 4) {
      if (vectors == 4) multiply_panel<4>(w, rows, panel);
      if (vectors == 3) multiply_panel<3>(w, rows, panel);
    }
    if (vectors == 2) multiply_panel<2>(w, rows, panel);
    if (vectors == 1) multiply_panel<1>(w, rows, panel);
  }
}

/// The sum of a pixel's channels.
[[gnu::always_inline]] inline std::int32_t channel_sum(const std::uint8_t* x, std::int64_t channels) {
  constexpr std::int64_t kBytes = sizeof(ShortInts);
  const Factors<ShortInts> ones = factors((ShortInts)(typename As<ShortInts>::Bytes{} + std::uint8_t{1}));
  std::int32_t sum = 0;
  std::int64_t c = 0;
  if (channels >= kBytes) {
    ShortInts sums = {};
    for (; c + kBytes <= channels; c += kBytes) sums = dot(sums, pixels(load<ShortInts>(x + c)), ones);
    for (std::size_t i = 0; i < sizeof sums / 4; ++i) sum += sums[i];
  }
  for (; c < channels; ++c) sum += x[c];
  return sum;
}

/// First over channels, then over the window's columns, then over its rows.
void sum_windows(const SumWindow& window, const std::uint8_t* image, std::int32_t* scratch, std::int32_t* sums) {
  std::int32_t* across = scratch + window.image_rows * window.image_columns;
  for (std::int64_t y = 0; y < window.image_rows; ++y) {
    const std::uint8_t* from = image + y * window.row_bytes;
    std::int32_t* row = scratch + y * window.image_columns;
    if (window.channels == 1) {
      for (std::int64_t x = 0; x < window.image_columns; ++x) row[x] = from[x];
    } else {
      for (std::int64_t x = 0; x < window.image_columns; ++x)
        row[x] = channel_sum(from + x * window.channels, window.channels);
    }
    std::int32_t* to = across + y * window.output_columns;
    for (std::int64_t x = 0; x < window.output_columns; ++x) to[x] = row[x * window.column_stride];
    for (std::int64_t k = 1; k < window.columns; ++k) {
      const std::int32_t* tap = row + k * window.column_dilation;
      for (std::int64_t x = 0; x < window.output_columns; ++x) to[x] += tap[x * window.column_stride];
    }
  }
  for (std::int64_t y = 0; y < window.output_rows; ++y) {
    std::int32_t* to = sums + y * window.output_columns;
    for (std::int64_t k = 0; k < window.rows; ++k) {
      const std::int32_t* tap = across + (y * window.row_stride + k * window.row_dilation) * window.output_columns;
      for (std::int64_t x = 0; x < window.output_columns; ++x) to[x] = k == 0 ? tap[x] : to[x] + tap[x];
    }
  }
}
