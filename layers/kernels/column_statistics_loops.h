// The loops of column_statistics.cpp, compiled per instruction set (see core/kernels/per_instruction_set.h).

#include "layers/kernels/min_max_loops.h"

/// Adds `rows` rows, `width` apart, to sums that stay in memory: kRows at a time, so that these are read and written
/// once for several rows.
template <int kRows, bool kRange>
static void add_moment_rows(const float* x, std::int64_t width, const MomentSums& to) {
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i) {
    const float origin = to.origin[i];
    float sum = 0, squares = 0, least = x[i], largest = x[i];
    for (int r = 0; r < kRows; ++r) {
      const float value = x[r * width + i];
      const float difference = value - origin;
      sum += difference;
      squares += difference * difference;
      if constexpr (kRange) {
        least = value < least ? value : least;
        largest = value > largest ? value : largest;
      }
    }
    to.sum[i] += sum;
    to.squares[i] += squares;
    if constexpr (kRange) {
      to.least[i] = least < to.least[i] ? least : to.least[i];
      to.largest[i] = largest > to.largest[i] ? largest : to.largest[i];
    }
  }
}

template <bool kRange>
static void moment_rows(const float* x, std::int64_t rows, std::int64_t width, const MomentSums& to) {
  std::int64_t r = 0;
  for (; r + 8 <= rows; r += 8) add_moment_rows<8, kRange>(x + r * width, width, to);
  for (; r < rows; ++r) add_moment_rows<1, kRange>(x + r * width, width, to);
}

static void moments(const float* x, std::int64_t rows, std::int64_t width, const MomentSums& to) {
  to.least != nullptr ? moment_rows<true>(x, rows, width, to) : moment_rows<false>(x, rows, width, to);
}

static std::uint32_t ranges(const float* x, std::int64_t rows, std::int64_t width, float* least, float* largest) {
  std::uint32_t not_a_number = 0;
  std::int64_t r = 0;
  for (; r + 8 <= rows; r += 8) not_a_number |= min_max_group<8>(x + r * width, width, width, least, largest);
  for (; r < rows; ++r) not_a_number |= min_max_group<1>(x + r * width, width, width, least, largest);
  return not_a_number;
}

/// total += sums over `count` rows, as merge_moments says, for `width` columns.
static void merge(double* mean, double* squares, double rows_before, double count, const float* origin,
                  const float* sum, const float* sum_squares, std::int64_t width) {
  const double share = count / (rows_before + count);
  const double inverse = 1 / count;
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i) {
    const double from_origin = static_cast<double>(sum[i]) * inverse;
    const double spread = static_cast<double>(sum_squares[i]) - from_origin * static_cast<double>(sum[i]);
    const double delta = static_cast<double>(origin[i]) + from_origin - mean[i];
    mean[i] += delta * share;
    squares[i] += spread + delta * delta * (rows_before * share);
  }
}
