// The loops of column_statistics.cpp, compiled per instruction set (see core/kernels/per_instruction_set.h).

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

/// Lowers low[i] and raises high[i] to the first `count` elements of kRows rows, `width` apart, which meet in registers
/// before low and high are touched. NaNs are left aside; returns whether there was one.
template <int kRows>
[[gnu::always_inline]] inline std::uint32_t min_max_group(const float* x, std::int64_t width, std::int64_t count,
                                                          float* low, float* high) {
  std::uint32_t not_a_number = 0;
#pragma omp simd reduction(| : not_a_number)
  for (std::int64_t i = 0; i < count; ++i) {
    float least = low[i];
    float most = high[i];
    for (int row = 0; row < kRows; ++row) {
      const float value = x[row * width + i];
      // False for a NaN: that leaves it aside.
      least = value < least ? value : least;
      most = value > most ? value : most;
      not_a_number |= value != value ? 1u : 0u;
    }
    low[i] = least;
    high[i] = most;
  }
  return not_a_number;
}

/// The ranges of the columns of n elements: rows of `width`, of which the last may be short.
static bool ranges(const float* x, std::int64_t n, std::int64_t width, float* low, float* high) {
  constexpr int kRows = 4;
  // Elements that the last cache holds; from memory, several streams are slower than one. Short rows follow one another
  // closely enough to be one stream.
  constexpr std::int64_t kInLastCache = 1 << 19;
  std::uint32_t not_a_number = 0;
  std::int64_t i = 0;
  if (n <= kInLastCache || width <= 128) {
    for (; i + kRows * width <= n; i += kRows * width)
      not_a_number |= min_max_group<kRows>(x + i, width, width, low, high);
  }
  for (; i < n; i += width) not_a_number |= min_max_group<1>(x + i, width, std::min(width, n - i), low, high);
  return not_a_number != 0;
}

/// total += sums over `count` rows, as Moments::merge() in column_statistics.cpp says, for `width` columns.
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
