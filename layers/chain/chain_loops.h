// The loops of chain_kernels.cpp, compiled per instruction set (see core/kernels/per_instruction_set.h).

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
    if (count == kMaskBlock) {
      forward_block<kind, kAddend, kMask>(f, f.x + at, kAddend ? f.addend + at : nullptr, f.y + at, mask, column);
      continue;
    }
    float x[kMaskBlock], addend[kMaskBlock], y[kMaskBlock];
    std::fill_n(std::copy_n(f.x + at, count, x), kMaskBlock - count, 0.0f);
    if constexpr (kAddend) std::fill_n(std::copy_n(f.addend + at, count, addend), kMaskBlock - count, 0.0f);
    forward_block<kind, kAddend, kMask>(f, x, addend, y, mask, column);
    std::copy_n(y, count, f.y + at);
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

static void pack(const float* y, std::int64_t n, float scale, float zero_point, std::uint8_t* codes) {
  // The quotient is a whole number but for rounding. Adding 0.5 and cutting off rounds it; NaN must not be converted.
  const float inverse = 1 / scale, rounding = zero_point + 0.5f;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float code = y[i] * inverse + rounding;
    codes[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(code == code ? code : 0.0f));
  }
}

static void unpack(const std::uint8_t* codes, std::int64_t n, float scale, float zero_point, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(codes[i]) - zero_point) * scale;
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
    if (b.d_x != nullptr) std::copy_n(d_x, count, b.d_x + at);
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
