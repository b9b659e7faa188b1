// The loops of chain_kernels.cpp, compiled per instruction set (see core/kernels/per_instruction_set.h).

#include "layers/kernels/float_vector_loops.h"

/// Which of ChainMap's vectors there are.
enum class MapKind { kNone, kOffset, kFull };

template <MapKind kind, bool kAddend, bool kMask>
static void forward_block(const ChainForward& f, const float* x, const float* addend, float* y, std::uint32_t* mask,
                          std::int64_t column) {
  const ChainMap map = f.map;
  const float pass_low = f.pass_low, pass_high = f.pass_high;
  std::uint32_t words[kMaskLanes] = {};
  for (int bit = 0; bit < 32; ++bit) {
    const float* from = x + bit * kMaskLanes;
    const float* add = kAddend ? addend + bit * kMaskLanes : nullptr;
    float* to = y + bit * kMaskLanes;
#pragma omp simd
    for (int lane = 0; lane < kMaskLanes; ++lane) {
      float v = from[lane];
      if constexpr (kind == MapKind::kFull) v = (v - map.shift[column + lane]) * map.scale[column + lane];
      if constexpr (kind != MapKind::kNone) v += map.offset[column + lane];
      if constexpr (kAddend) v += add[lane];
      v = v < map.low ? map.low : v;
      v = v > map.high ? map.high : v;
      if constexpr (kMask) words[lane] |= (((v >= pass_low) & (v <= pass_high)) ? 1u : 0u) << bit;
      to[lane] = v;
    }
    column = column + kMaskLanes == map.width ? 0 : column + kMaskLanes;
  }
  if constexpr (kMask)
    for (int lane = 0; lane < kMaskLanes; ++lane) mask[lane] = words[lane];
}

template <MapKind kind, bool kAddend, bool kMask>
static void forward_blocks(const ChainForward& f, std::int64_t first, std::int64_t last) {
  for (std::int64_t block = first; block < last; ++block) {
    const std::int64_t at = block * kMaskBlock, count = std::min(kMaskBlock, f.n - at);
    const std::int64_t column = at % f.map.width;
    std::uint32_t* mask = kMask ? f.mask + block * kMaskLanes : nullptr;
    float* to = f.y + (block - f.y_block) * kMaskBlock;
    if (count == kMaskBlock) {
      forward_block<kind, kAddend, kMask>(f, f.x + at, kAddend ? f.addend + at : nullptr, to, mask, column);
      continue;
    }
    float x[kMaskBlock], addend[kMaskBlock], y[kMaskBlock];
    std::fill_n(std::copy_n(f.x + at, count, x), kMaskBlock - count, 0.0f);
    if constexpr (kAddend) std::fill_n(std::copy_n(f.addend + at, count, addend), kMaskBlock - count, 0.0f);
    forward_block<kind, kAddend, kMask>(f, x, addend, y, mask, column);
    std::copy_n(y, count, to);
  }
}

template <MapKind kind>
static void forward_kind(const ChainForward& f, std::int64_t first, std::int64_t last) {
  if (f.addend != nullptr)
    f.mask != nullptr ? forward_blocks<kind, true, true>(f, first, last)
                      : forward_blocks<kind, true, false>(f, first, last);
  else
    f.mask != nullptr ? forward_blocks<kind, false, true>(f, first, last)
                      : forward_blocks<kind, false, false>(f, first, last);
}

static void forward(const ChainForward& f, std::int64_t first, std::int64_t last) {
  if (f.map.scale != nullptr)
    forward_kind<MapKind::kFull>(f, first, last);
  else if (f.map.offset != nullptr)
    forward_kind<MapKind::kOffset>(f, first, last);
  else
    forward_kind<MapKind::kNone>(f, first, last);
}

/// What d_x is made of.
enum class InputKind { kNone, kGradient, kSlope, kCurve, kCurveAlone };

template <bool kMask, bool kSums, bool kProducts, InputKind input>
static void backward_block(const ChainBackward& b, const float* d_y, const std::uint32_t* mask, const float* x,
                           float* d_x, float* d_addend, float* sums, float* products, std::int64_t column) {
  std::uint32_t words[kMaskLanes] = {};
  if constexpr (kMask)
    for (int lane = 0; lane < kMaskLanes; ++lane) words[lane] = mask[lane];
  for (int bit = 0; bit < 32; ++bit) {
    const std::int64_t i = bit * kMaskLanes;
    // First: d_x may be written over d_y.
    if (d_addend != nullptr) {
#pragma omp simd
      for (int lane = 0; lane < kMaskLanes; ++lane)
        d_addend[i + lane] = !kMask || ((words[lane] >> bit) & 1) ? d_y[i + lane] : 0.0f;
    }
#pragma omp simd
    for (int lane = 0; lane < kMaskLanes; ++lane) {
      const std::int64_t j = column + lane;
      const float arriving = input == InputKind::kCurveAlone ? 0.0f : d_y[i + lane];
      const float g = !kMask || ((words[lane] >> bit) & 1) ? arriving : 0.0f;
      float deviation = 0;
      if constexpr (kProducts || input == InputKind::kCurve || input == InputKind::kCurveAlone)
        deviation = x[i + lane] - b.shift[j];
      if constexpr (kSums) sums[j] += g;
      if constexpr (kProducts) products[j] += g * deviation;
      if constexpr (input == InputKind::kGradient) d_x[i + lane] = g;
      if constexpr (input == InputKind::kSlope) d_x[i + lane] = b.slope[j] * g;
      if constexpr (input == InputKind::kCurve)
        d_x[i + lane] = b.slope[j] * g + (b.curve[j] * deviation + b.constant[j]);
      if constexpr (input == InputKind::kCurveAlone) d_x[i + lane] = b.curve[j] * deviation + b.constant[j];
    }
    column = column + kMaskLanes == b.width ? 0 : column + kMaskLanes;
  }
}

template <bool kMask, bool kSums, bool kProducts, InputKind input>
static void backward_blocks(const ChainBackward& b, float* sums, float* products, std::int64_t first,
                            std::int64_t last) {
  constexpr bool kReadsGradient = input != InputKind::kCurveAlone;
  constexpr bool kReadsX = kProducts || input == InputKind::kCurve || !kReadsGradient;
  for (std::int64_t block = first; block < last; ++block) {
    const std::int64_t at = block * kMaskBlock, count = std::min(kMaskBlock, b.n - at);
    const std::uint32_t* mask = kMask ? b.mask + block * kMaskLanes : nullptr;
    const std::int64_t column = at % b.width;
    if (count == kMaskBlock) {
      backward_block<kMask, kSums, kProducts, input>(
          b, kReadsGradient ? b.d_y + at : nullptr, mask, kReadsX ? b.x + at : nullptr,
          b.d_x == nullptr ? nullptr : b.d_x + at, b.d_addend == nullptr ? nullptr : b.d_addend + at, sums, products,
          column);
      continue;
    }
    float d_y[kMaskBlock] = {}, x[kMaskBlock] = {}, d_x[kMaskBlock], d_addend[kMaskBlock];
    if constexpr (kReadsGradient) std::copy_n(b.d_y + at, count, d_y);
    if constexpr (kReadsX) std::copy_n(b.x + at, count, x);
    backward_block<kMask, kSums, kProducts, input>(b, d_y, mask, x, d_x, d_addend, sums, products, column);
    if (input != InputKind::kNone && b.d_x != nullptr) std::copy_n(d_x, count, b.d_x + at);
    if (b.d_addend != nullptr) std::copy_n(d_addend, count, b.d_addend + at);
  }
}

template <bool kMask, bool kSums, bool kProducts>
static void backward_input(const ChainBackward& b, float* sums, float* products, std::int64_t first,
                           std::int64_t last) {
  if (b.d_x == nullptr)
    backward_blocks<kMask, kSums, kProducts, InputKind::kNone>(b, sums, products, first, last);
  else if (b.curve != nullptr)
    backward_blocks<kMask, kSums, kProducts, InputKind::kCurve>(b, sums, products, first, last);
  else if (b.slope != nullptr)
    backward_blocks<kMask, kSums, kProducts, InputKind::kSlope>(b, sums, products, first, last);
  else
    backward_blocks<kMask, kSums, kProducts, InputKind::kGradient>(b, sums, products, first, last);
}

template <bool kMask>
static void backward_masked(const ChainBackward& b, float* sums, float* products, std::int64_t first,
                            std::int64_t last) {
  if (products != nullptr)
    backward_input<kMask, true, true>(b, sums, products, first, last);
  else if (sums != nullptr)
    backward_input<kMask, true, false>(b, sums, products, first, last);
  else
    backward_input<kMask, false, false>(b, sums, products, first, last);
}

static void backward(const ChainBackward& b, float* sums, float* products, std::int64_t first, std::int64_t last) {
  if (b.d_y == nullptr)
    backward_blocks<false, false, false, InputKind::kCurveAlone>(b, sums, products, first, last);
  else if (b.mask != nullptr)
    backward_masked<true>(b, sums, products, first, last);
  else
    backward_masked<false>(b, sums, products, first, last);
}

// Pooling. These loops take a vector of channels at a time. If a pixel has fewer left, the other lanes write into the
// pixels after it, which overwrite these numbers in their turn.

/// Few channels take a short vector, so that less is written in vain.
using ShortLanes __attribute__((vector_size(MINIQAT_VECTOR_BYTES < 32 ? MINIQAT_VECTOR_BYTES : 32))) = float;

template <class Body>
static void with_lanes(std::int64_t channels, const Body& body) {
  if (channels > 8)
    body(Floats{});
  else if (channels > 4)
    body(ShortLanes{});
  else
    body(FourFloats{});
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

// The codes of roundings.

static void encode(const float* v, const float* y, std::int64_t n, float codes_a_unit, float lowest, float highest,
                   std::int16_t* codes) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = v[i];
    // Within +-30000 or a little more inside of the range; moved up, so that cutting off rounds.
    const float steps = (y[i] - value) * codes_a_unit + 65536.5f;
    const bool inside = (value >= lowest) & (value <= highest);
    const std::int32_t code = static_cast<std::int32_t>(inside ? steps : 65536.0f) - 65536;
    const std::int32_t low = value < lowest ? kBelowRange : code;
    codes[i] = static_cast<std::int16_t>(value > highest ? kAboveRange : low);
  }
}

/// Adds to kRoundingLanes sums of each kind.
static void add_up(const float* d_y, const std::int16_t* codes, std::int64_t n, float* below, float* above,
                   float* inside) {
  const auto add = [&](std::int64_t i, std::int64_t lane) __attribute__((always_inline)) {
    const float g = d_y[i];
    const std::int32_t code = codes[i];
    const bool is_below = code == kBelowRange, is_above = code == kAboveRange;
    below[lane] += kept_if(is_below, g);
    above[lane] += kept_if(is_above, g);
    inside[lane] += kept_if(!is_below & !is_above, g * static_cast<float>(code));
  };
  std::int64_t i = 0;
  for (; i + kRoundingLanes <= n; i += kRoundingLanes) {
#pragma omp simd
    for (int lane = 0; lane < kRoundingLanes; ++lane) add(i + lane, lane);
  }
  for (int lane = 0; i < n; ++i, ++lane) add(i, lane);
}
