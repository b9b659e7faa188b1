// The loops of chain_pool.cpp, compiled per instruction set (see core/kernels/per_instruction_set.h). They take a
// vector of channels at a time. If a pixel has fewer left, the other lanes write into the pixels after it, which
// overwrite these numbers in their turn.

#include "layers/kernels/lanes_loops.h"

/// Few channels take a short vector, so that less is written in vain.
using ShortLanes __attribute__((vector_size(MINIQAT_VECTOR_BYTES < 32 ? MINIQAT_VECTOR_BYTES : 32))) = float;
using FourLanes __attribute__((vector_size(16))) = float;

template <class Body>
static void with_lanes(std::int64_t channels, const Body& body) {
  if (channels > 8)
    body(Lanes{});
  else if (channels > 4)
    body(ShortLanes{});
  else
    body(FourLanes{});
}

/// What is written down of the taps that were largest.
enum class Winners { kNone, kAll, kPassing, kPassingWithValues };

template <class V, Winners kWinners>
[[gnu::always_inline]] inline void pool_pixel(const float* taps, const float* values, std::int64_t window_h,
                                              std::int64_t window_w, std::int64_t row, std::int64_t pixel,
                                              float pass_low, float pass_high, float* y, std::uint8_t* winners,
                                              float* of_winners) {
  constexpr bool kReadsValues = kWinners == Winners::kPassing || kWinners == Winners::kPassingWithValues;
  using Mask = typename Related<V>::Mask;
  V best = load<V>(taps), value = {};
  if constexpr (kReadsValues) value = load<V>(values);
  Mask winner = {};
  for (std::int64_t ky = 0; ky < window_h; ++ky)
    for (std::int64_t kx = ky == 0 ? 1 : 0; kx < window_w; ++kx) {
      const V tap = load<V>(taps + ky * row + kx * pixel);
      // As reference::exceeds: a tie leaves the first, and the first NaN stays.
      const Mask larger = (tap > best) | ((tap != tap) & (best == best));
      best = larger ? tap : best;
      if constexpr (kReadsValues) value = larger ? load<V>(values + ky * row + kx * pixel) : value;
      if constexpr (kWinners != Winners::kNone)
        winner = larger ? Mask{} + static_cast<std::int32_t>(ky * window_w + kx) : winner;
    }
  store(y, best);
  if constexpr (kWinners == Winners::kAll) store_winners<V>(winners, winner);
  if constexpr (kWinners == Winners::kPassingWithValues) store(of_winners, value);
  if constexpr (kReadsValues) {
    const Mask passes = (value >= pass_low) & (value <= pass_high);
    store_winners<V>(winners, passes ? winner : Mask{} + std::int32_t{kBlockedTap});
  }
}

template <class V, Winners kWinners>
static void pool_row(const ChainPool& pool, const float* taps, const float* values, float pass_low, float pass_high,
                     float* y, std::uint8_t* winners, float* of_winners) {
  const std::int64_t c = pool.channels, row = pool.w * c;
  const std::int64_t window_h = pool.window_h, window_w = pool.window_w;
  const bool usual = window_h == 2 && window_w == 2;
  for (std::int64_t ox = 0; ox < pool.output_w(); ++ox)
    for (std::int64_t from = 0; from < c; from += Related<V>::kLanes) {
      const std::int64_t at = ox * window_w * c + from, to = ox * c + from;
      const bool reads_values = kWinners == Winners::kPassing || kWinners == Winners::kPassingWithValues;
      const float* value = reads_values ? values + at : nullptr;
      std::uint8_t* winner = kWinners != Winners::kNone ? winners + to : nullptr;
      float* of_winner = kWinners == Winners::kPassingWithValues ? of_winners + to : nullptr;
      // Written out, the usual window's loops unroll.
      if (usual)
        pool_pixel<V, kWinners>(taps + at, value, 2, 2, row, c, pass_low, pass_high, y + to, winner, of_winner);
      else
        pool_pixel<V, kWinners>(taps + at, value, window_h, window_w, row, c, pass_low, pass_high, y + to, winner,
                                of_winner);
    }
}

static void pool_windows(const ChainPool& pool, const float* taps, const float* values, float pass_low, float pass_high,
                         float* y, std::uint8_t* winners, float* of_winners) {
  with_lanes(pool.channels, [&]<class V>(V) {
    if (winners == nullptr)
      pool_row<V, Winners::kNone>(pool, taps, values, pass_low, pass_high, y, winners, of_winners);
    else if (of_winners != nullptr)
      pool_row<V, Winners::kPassingWithValues>(pool, taps, values, pass_low, pass_high, y, winners, of_winners);
    else if (values == nullptr)
      pool_row<V, Winners::kAll>(pool, taps, values, pass_low, pass_high, y, winners, of_winners);
    else
      pool_row<V, Winners::kPassing>(pool, taps, values, pass_low, pass_high, y, winners, of_winners);
  });
}

template <class V>
static void unpool_rows(const ChainPool& pool, const float* d_y, const std::uint8_t* winners, float* d_x) {
  const std::int64_t c = pool.channels, row = pool.w * c, pooled = pool.output_w();
  for (std::int64_t ky = 0; ky < pool.window_h; ++ky) {
    for (std::int64_t ox = 0; ox < pooled; ++ox)
      for (std::int64_t kx = 0; kx < pool.window_w; ++kx) {
        const std::int32_t number = static_cast<std::int32_t>(ky * pool.window_w + kx);
        float* to = d_x + ky * row + (ox * pool.window_w + kx) * c;
        for (std::int64_t from = 0; from < c; from += Related<V>::kLanes) {
          const V gradient = load<V>(d_y + ox * c + from);
          const auto winner = load_winners<V>(winners + ox * c + from);
          store(to + from, winner == number ? gradient : V{});
        }
      }
    for (std::int64_t i = pooled * pool.window_w * c; i < row; ++i) d_x[ky * row + i] = 0;
  }
}

static void unpool_windows(const ChainPool& pool, const float* d_y, const std::uint8_t* winners, float* d_x) {
  with_lanes(pool.channels, [&]<class V>(V) { unpool_rows<V>(pool, d_y, winners, d_x); });
}

static void add_where_passing(const float* d_y, const std::uint8_t* winners, std::int64_t width, std::int64_t first,
                              std::int64_t last, float* sums) {
  for (std::int64_t row = first; row < last; row += width) {
    const std::int64_t count = last - row < width ? last - row : width;
#pragma omp simd
    for (std::int64_t j = 0; j < count; ++j) {
      const float gradient = d_y[row + j];
      sums[j] += winners[row + j] != kBlockedTap ? gradient : 0.0f;
    }
  }
}
