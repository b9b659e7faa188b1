// The loops of layers/kernels/winograd.cpp (see core/kernels/per_instruction_set.h): the transforms, vectorised over
// channels, and products of matrices whose tiles are summed up in registers. The 16 transformed numbers of a patch are
// `step` floats apart. Matrices with a column for each channel of the output are packed: all rows of kBlock columns,
// then those of the next.

#include "layers/kernels/float_vector_loops.h"
#include "layers/kernels/multiply_add_loops.h"

inline constexpr std::int64_t kLanes = kLanesOf<Floats>;
inline constexpr int kVectors = MINIQAT_VECTOR_BYTES == 64 ? 1 : 2;
inline constexpr std::int64_t kBlock = kVectors * kLanes;
/// Rows of a tile.
inline constexpr int kRows = MINIQAT_VECTOR_BYTES == 64 ? 12 : 6;

/// B^T (a, b, c, d).
[[gnu::always_inline]] inline void combine_patch(Floats& a, Floats& b, Floats& c, Floats& d) {
  const Floats first = a - c, second = b + c, third = c - b, fourth = b - d;
  a = first;
  b = second;
  c = third;
  d = fourth;
}

/// B^T p B of a 4x4 patch of pixels, whose rows are `row` floats apart.
void transform_patch(const float* pixels, std::int64_t row, std::int64_t channels, float* to, std::int64_t step) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Floats p[4][4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) p[i][j] = load<Floats>(pixels + i * row + j * channels + c);
      combine_patch(p[i][0], p[i][1], p[i][2], p[i][3]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      combine_patch(p[0][j], p[1][j], p[2][j], p[3][j]);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) store(to + (4 * i + j) * step + c, p[i][j]);
    }
  }
}

/// A^T m A, 2x2 pixels of the output.
void transform_products(const float* from, std::int64_t step, float* pixels, std::int64_t row, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Floats sums[2][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const float* at = from + j * step + c;
      const Floats second = load<Floats>(at + 4 * step), third = load<Floats>(at + 8 * step);
      sums[0][j] = load<Floats>(at) + second + third;
      sums[1][j] = second - third - load<Floats>(at + 12 * step);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      store(pixels + i * row + c, sums[i][0] + sums[i][1] + sums[i][2]);
      store(pixels + i * row + channels + c, sums[i][1] - sums[i][2] - sums[i][3]);
    }
  }
}

/// A d A^T of 2x2 pixels of the output's gradient.
void transform_gradients(const float* pixels, std::int64_t row, std::int64_t channels, float* to, std::int64_t step) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Floats rows[4][2];
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      rows[0][j] = load<Floats>(pixels + j * channels + c);
      rows[3][j] = load<Floats>(pixels + row + j * channels + c);
      rows[1][j] = rows[0][j] + rows[3][j];
      rows[2][j] = rows[0][j] - rows[3][j];
      rows[3][j] = -rows[3][j];
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      float* at = to + 4 * i * step + c;
      store(at, rows[i][0]);
      store(at + step, rows[i][0] + rows[i][1]);
      store(at + 2 * step, rows[i][0] - rows[i][1]);
      store(at + 3 * step, -rows[i][1]);
    }
  }
}

/// The place of row `in`, column `out` of a packed matrix.
[[gnu::always_inline]] inline std::int64_t packed_at(std::int64_t in, std::int64_t out, std::int64_t rows) {
  return (out / kBlock * rows + in) * kBlock + out % kBlock;
}

/// G (a, b, c).
[[gnu::always_inline]] inline void widen_taps(Floats a, Floats b, Floats c, Floats (&wide)[4]) {
  const Floats sum = 0.5f * (a + c), half = 0.5f * b;
  wide[0] = a;
  wide[1] = sum + half;
  wide[2] = sum - half;
  wide[3] = c;
}

/// G f G^T of a filter [3, 3, in, out]: 16 packed matrices [in, out].
void transform_filter(const float* filter, std::int64_t in, std::int64_t out, float* to) {
  for (std::int64_t i = 0; i < in; ++i)
    for (std::int64_t o = 0; o < out; o += kLanes) {
      Floats columns[3][4];
      for (int x = 0; x < 3; ++x) {
        const float* tap = filter + (x * in + i) * out + o;
        widen_taps(load<Floats>(tap), load<Floats>(tap + 3 * in * out), load<Floats>(tap + 6 * in * out), columns[x]);
      }
      for (int y = 0; y < 4; ++y) {
        Floats wide[4];
        widen_taps(columns[0][y], columns[1][y], columns[2][y], wide);
        for (int x = 0; x < 4; ++x) store(to + (4 * y + x) * in * out + packed_at(i, o, in), wide[x]);
      }
    }
}

/// G^T (a, b, c, d).
[[gnu::always_inline]] inline void narrow_taps(Floats a, Floats b, Floats c, Floats d, Floats (&taps)[3]) {
  const Floats sum = 0.5f * (b + c);
  taps[0] = a + sum;
  taps[1] = 0.5f * (b - c);
  taps[2] = sum + d;
}

/// G^T s G of 16 packed matrices [in, out]: the filter's gradient.
void transform_sums(const float* sums, std::int64_t in, std::int64_t out, float* d_filter) {
  const std::int64_t size = in * out;
  for (std::int64_t i = 0; i < in; ++i)
    for (std::int64_t o = 0; o < out; o += kLanes) {
      Floats columns[4][3];
      for (int x = 0; x < 4; ++x) {
        const float* from = sums + x * size + packed_at(i, o, in);
        narrow_taps(load<Floats>(from), load<Floats>(from + 4 * size), load<Floats>(from + 8 * size),
                    load<Floats>(from + 12 * size), columns[x]);
      }
      for (int y = 0; y < 3; ++y) {
        Floats taps[3];
        narrow_taps(columns[0][y], columns[1][y], columns[2][y], columns[3][y], taps);
        for (int x = 0; x < 3; ++x) store(d_filter + ((3 * y + x) * in + i) * out + o, taps[x]);
      }
    }
}

/// kRows rows of a [.., in] times kBlock columns of a packed matrix.
inline void multiply_tile(const float* a, std::int64_t in, const float* b, float* product, std::int64_t product_step) {
  const float* row[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    row[r] = a + r * in;
    // Keeps the compiler from computing all addresses from one pointer again and again.
    __asm__("" : "+r"(row[r]));
  }
  Floats sums[kRows][kVectors] = {};
  for (std::int64_t k = 0; k < in; ++k, b += kBlock) {
    Floats factors[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) factors[v] = load<Floats>(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] = multiply_add(factors[v], row[r][k], sums[r][v]);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) store(product + r * product_step + v * kLanes, sums[r][v]);
}

/// product = a [rows, in] * packed b [in, out], also of the rows up to the next multiple of kRows.
void multiply_packed(const float* a, std::int64_t rows, std::int64_t in, const float* b, std::int64_t out,
                     float* product) {
  for (std::int64_t o = 0; o < out; o += kBlock)
    for (std::int64_t r = 0; r < rows; r += kRows)
      multiply_tile(a + r * in, in, b + o * in, product + r * out + o, out);
}

/// Columns of a [rows, in], times kBlock columns of d [rows, out], added to rows of kBlock sums.
template <int kColumns>
void correlate_columns(const float* a, std::int64_t rows, std::int64_t in, const float* d, std::int64_t out,
                       float* total) {
  Floats sums[kColumns][kVectors] = {};
  for (std::int64_t row = 0; row < rows; ++row, a += in, d += out) {
    Floats gradients[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) gradients[v] = load<Floats>(d + v * kLanes);
#pragma GCC unroll 16
    for (int c = 0; c < kColumns; ++c)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[c][v] = multiply_add(gradients[v], a[c], sums[c][v]);
  }
#pragma GCC unroll 16
  for (int c = 0; c < kColumns; ++c)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      float* at = total + c * kBlock + v * kLanes;
      store(at, load<Floats>(at) + sums[c][v]);
    }
}

template <int... kSizes>
void correlate_block(const float* a, std::int64_t rows, std::int64_t in, const float* d, std::int64_t out, float* total,
                     std::integer_sequence<int, kSizes...>) {
  using Columns = void (*)(const float*, std::int64_t, std::int64_t, const float*, std::int64_t, float*);
  static constexpr Columns columns[] = {&correlate_columns<kSizes + 1>...};
  for_tiles<kRows>(in, [&](std::int64_t first, std::int64_t size) {
    columns[size - 1](a + first, rows, in, d, out, total + first * kBlock);
  });
}

/// packed total [in, out] += a [rows, in]^T * d [rows, out].
void correlate_packed(const float* a, std::int64_t rows, std::int64_t in, const float* d, std::int64_t out,
                      float* total) {
  for (std::int64_t o = 0; o < out; o += kBlock)
    correlate_block(a, rows, in, d + o, out, total + o * in, std::make_integer_sequence<int, kRows>());
}
