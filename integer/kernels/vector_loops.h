// Vectors of integers for other files of loops (see core/kernels/per_instruction_set.h), which include this one. V is a
// vector of int32: of 64 bytes with AVX-512, of 32 with AVX2 and AVX-512, of 16 everywhere.

using Ints __attribute__((vector_size(MINIQAT_VECTOR_BYTES))) = std::int32_t;
/// The longest vector up to 32 bytes.
using ShortInts __attribute__((vector_size(MINIQAT_VECTOR_BYTES == 16 ? 16 : 32))) = std::int32_t;

/// Vectors of the same size as V, of other elements.
template <class V>
struct As {
  using Bytes __attribute__((vector_size(sizeof(V)))) = std::uint8_t;
  using Shorts __attribute__((vector_size(sizeof(V)))) = std::int16_t;
  using UnsignedShorts __attribute__((vector_size(sizeof(V)))) = std::uint16_t;
};

template <int kSize>
struct BytesOf {
  using Vector __attribute__((vector_size(kSize))) = std::uint8_t;
};

template <class V>
[[gnu::always_inline]] inline V load(const void* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class V>
[[gnu::always_inline]] inline void store(void* to, V value) {
  __builtin_memcpy(to, &value, sizeof value);
}

/// Four bytes in every lane.
template <class V>
[[gnu::always_inline]] inline V broadcast(const void* from) {
  std::int32_t four;
  __builtin_memcpy(&four, from, sizeof four);
#if MINIQAT_VECTOR_BYTES == 64
  if constexpr (sizeof(V) == 64) return (V)_mm512_set1_epi32(four);
#endif
  return V{} + four;
}

/// Element i is the one that Order::at(i, their count) names, of a and b one behind the other.
template <class Order, class V, int... i>
[[gnu::always_inline]] inline V shuffle(V a, V b, std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(a, b, Order::at(i, sizeof...(i))...);
}
template <class Order, class V>
[[gnu::always_inline]] inline V shuffle(V a, V b) {
  return shuffle<Order>(a, b, std::make_integer_sequence<int, sizeof(V) / sizeof(a[0])>());
}

template <class V>
[[gnu::always_inline]] inline V larger(V a, V b) {
  return a > b ? a : b;
}

template <class V>
[[gnu::always_inline]] inline V smaller(V a, V b) {
  return a < b ? a : b;
}

// dot(): four unsigned bytes of `x` times four signed bytes of `w`, added up in each lane of 32 bits. Without an
// instruction for that, bytes are widened to 16 bits, the even ones apart from the odd ones; vpmaddubsw saturates: it
// is for narrow weights alone (product_loops.h).

#if MINIQAT_VNNI
template <class V>
struct Pixels {
  V bytes;
};
template <class V>
struct Factors {
  V bytes;
};
template <class V>
[[gnu::always_inline]] inline Pixels<V> pixels(V bytes) {
  return {bytes};
}
template <class V>
[[gnu::always_inline]] inline Factors<V> factors(V bytes) {
  return {bytes};
}
template <class V>
[[gnu::always_inline]] inline V dot(V sum, const Pixels<V>& x, const Factors<V>& w) {
  if constexpr (sizeof(V) == 64)
    return (V)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x.bytes, (__m512i)w.bytes);
  else
    return (V)_mm256_dpbusd_epi32((__m256i)sum, (__m256i)x.bytes, (__m256i)w.bytes);
}
#else
template <class V>
struct Pixels {
  typename As<V>::Shorts even, odd;
};
template <class V>
struct Factors {
  typename As<V>::Shorts even, odd;
};
template <class V>
[[gnu::always_inline]] inline Pixels<V> pixels(V bytes) {
  using Shorts = typename As<V>::Shorts;
  using Unsigned = typename As<V>::UnsignedShorts;
  return {(Shorts)((Unsigned)bytes & 0xff), (Shorts)((Unsigned)bytes >> 8)};
}
template <class V>
[[gnu::always_inline]] inline Factors<V> factors(V bytes) {
  using Shorts = typename As<V>::Shorts;
  return {((Shorts)bytes << 8) >> 8, (Shorts)bytes >> 8};
}
/// Neighbouring products added up.
template <class V>
[[gnu::always_inline]] inline V multiply_pairs(typename As<V>::Shorts a, typename As<V>::Shorts b) {
#if MINIQAT_VECTOR_BYTES == 64
  if constexpr (sizeof(V) == 64) return (V)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#endif
#if MINIQAT_VECTOR_BYTES >= 32
  if constexpr (sizeof(V) == 32) return (V)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  if constexpr (sizeof(V) == 16) return (V)_mm_madd_epi16((__m128i)a, (__m128i)b);
#endif
  const V p = (V)a, q = (V)b;
  return ((p << 16) >> 16) * ((q << 16) >> 16) + (p >> 16) * (q >> 16);
}
template <class V>
[[gnu::always_inline]] inline V dot(V sum, const Pixels<V>& x, const Factors<V>& w) {
  return sum + multiply_pairs<V>(x.even, w.even) + multiply_pairs<V>(x.odd, w.odd);
}
#endif

/// The upper halves of the 64-bit products.
template <class V>
[[gnu::always_inline]] inline V high_product(V a, V b) {
#if MINIQAT_VECTOR_BYTES == 64
  if constexpr (sizeof(V) == 64) {
    // (All lanes chosen by a mask: GCC 12 warns of the plain intrinsic's own code, bug 105593.)
    using Longs __attribute__((vector_size(64))) = std::uint64_t;
    const __m512i even = _mm512_maskz_mul_epi32(0xff, (__m512i)a, (__m512i)b);
    const __m512i odd = _mm512_maskz_mul_epi32(0xff, (__m512i)((Longs)a >> 32), (__m512i)((Longs)b >> 32));
    return (V)_mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_CDAB);
  }
#endif
#if MINIQAT_VECTOR_BYTES >= 32
  if constexpr (sizeof(V) == 32) {
    const __m256i even = _mm256_mul_epi32((__m256i)a, (__m256i)b);
    const __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64((__m256i)a, 32), _mm256_srli_epi64((__m256i)b, 32));
    return (V)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  }
#endif
  V high;
  for (std::size_t i = 0; i < sizeof(V) / 4; ++i)
    high[i] = static_cast<std::int32_t>((static_cast<std::int64_t>(a[i]) * b[i]) >> 32);
  return high;
}

/// integer/kernels/requantization.h from element `i` of its arrays on, before the clamp, for kCount vectors `step`
/// elements of V apart: those of one channel in several pixels.
template <int kCount, int kStep, class V>
[[gnu::always_inline]] inline void requantize(V* sums, const Requantization::View& q, std::int64_t i) {
  if (q.unusual) {
    const V limit = load<V>(q.limits + i), left = load<V>(q.lefts + i);
#pragma GCC unroll 8
    for (int k = 0; k < kCount; ++k) sums[k * kStep] = larger(smaller(sums[k * kStep], limit), -limit) << left;
  }
  const V mantissa = load<V>(q.mantissas + i), rounding = load<V>(q.roundings + i), right = load<V>(q.rights + i);
#pragma GCC unroll 8
  for (int k = 0; k < kCount; ++k) sums[k * kStep] = (high_product(sums[k * kStep], mantissa) + rounding) >> right;
  if (q.unusual) {
    const V zero_point = load<V>(q.zero_points + i);
#pragma GCC unroll 8
    for (int k = 0; k < kCount; ++k) sums[k * kStep] += zero_point;
  }
}

/// Integers as bytes, clamped: in every 16 bytes of the result four of a, then four of b, c and d.
template <class V>
[[gnu::always_inline]] inline typename As<V>::Bytes pack_in_lanes(V a, V b, V c, V d, const Requantization::View& q) {
  using Bytes = typename As<V>::Bytes;
  Bytes bytes;
#if MINIQAT_VECTOR_BYTES == 64
  if constexpr (sizeof(V) == 64)
    bytes = (Bytes)_mm512_packus_epi16(_mm512_packs_epi32((__m512i)a, (__m512i)b),
                                       _mm512_packs_epi32((__m512i)c, (__m512i)d));
#endif
#if MINIQAT_VECTOR_BYTES >= 32
  if constexpr (sizeof(V) == 32)
    bytes = (Bytes)_mm256_packus_epi16(_mm256_packs_epi32((__m256i)a, (__m256i)b),
                                       _mm256_packs_epi32((__m256i)c, (__m256i)d));
#else
#if defined(__SSE2__)
  bytes = (Bytes)_mm_packus_epi16(_mm_packs_epi32((__m128i)a, (__m128i)b), _mm_packs_epi32((__m128i)c, (__m128i)d));
#else
  const V all[4] = {a, b, c, d};
  for (int i = 0; i < 16; ++i) {
    const std::int32_t value = all[i / 4][i % 4];
    bytes[i] = static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
  }
#endif
#endif
  const Bytes lowest = Bytes{} + static_cast<std::uint8_t>(q.lowest);
  const Bytes highest = Bytes{} + static_cast<std::uint8_t>(q.highest);
  return smaller(larger(bytes, lowest), highest);
}

/// An order for shuffle(): the first four bytes of every 16, then the second, the third and the fourth.
struct AcrossLanes {
  static constexpr int at(int i, int count) { return i % (count / 4) * 4 + i / (count / 4); }
};

/// Bytes as pack_in_lanes() makes them, in order: a, b, c, d.
template <class V>
[[gnu::always_inline]] inline typename As<V>::Bytes pack(V a, V b, V c, V d, const Requantization::View& q) {
  const V lanes = (V)pack_in_lanes(a, b, c, d, q);
  return (typename As<V>::Bytes)shuffle<AcrossLanes>(lanes, lanes);
}

/// The first `count` bytes; the others are any.
template <class B>
[[gnu::always_inline]] inline B load_bytes(const std::uint8_t* from, std::int64_t count) {
  if (count >= static_cast<std::int64_t>(sizeof(B))) return load<B>(from);
#if MINIQAT_VECTOR_BYTES == 64
  if constexpr (sizeof(B) == 32) return (B)_mm256_maskz_loadu_epi8((1u << count) - 1, from);
#endif
  B bytes = {};
  for (std::int64_t i = 0; i < count; ++i) reinterpret_cast<std::uint8_t*>(&bytes)[i] = from[i];
  return bytes;
}

template <class B>
[[gnu::always_inline]] inline void store_bytes(std::uint8_t* to, B bytes, std::int64_t count) {
  if (count >= static_cast<std::int64_t>(sizeof(B))) return store(to, bytes);
#if MINIQAT_VECTOR_BYTES == 64
  if constexpr (sizeof(B) == 64) return _mm512_mask_storeu_epi8(to, (1ull << count) - 1, (__m512i)bytes);
  if constexpr (sizeof(B) == 32) return _mm256_mask_storeu_epi8(to, (1u << count) - 1, (__m256i)bytes);
#endif
  for (std::int64_t i = 0; i < count; ++i) to[i] = bytes[i];
}
