// Products summed up in registers, for other files of loops (see core/kernels/per_instruction_set.h), which include
// this one after layers/kernels/float_vector_loops.h.

#if MINIQAT_VECTOR_BYTES == 64
using Lanes16 __attribute__((vector_size(64))) = float;
#endif
#if MINIQAT_VECTOR_BYTES >= 32
using Lanes8 __attribute__((vector_size(32))) = float;
#endif
using Lanes4 __attribute__((vector_size(16))) = float;

template <class V>
inline constexpr std::int64_t kLanesOf = sizeof(V) / sizeof(float);

/// a * b + c; rounded once where there is an instruction for it.
#if MINIQAT_VECTOR_BYTES == 64
[[gnu::always_inline]] inline Lanes16 multiply_add(Lanes16 a, float b, Lanes16 c) {
  return _mm512_fmadd_ps(a, _mm512_set1_ps(b), c);
}
#endif
#if MINIQAT_VECTOR_BYTES >= 32
[[gnu::always_inline]] inline Lanes8 multiply_add(Lanes8 a, float b, Lanes8 c) {
  return _mm256_fmadd_ps(a, _mm256_set1_ps(b), c);
}
[[gnu::always_inline]] inline Lanes4 multiply_add(Lanes4 a, float b, Lanes4 c) {
  return _mm_fmadd_ps(a, _mm_set1_ps(b), c);
}
#else
[[gnu::always_inline]] inline Lanes4 multiply_add(Lanes4 a, float b, Lanes4 c) { return a * b + c; }
#endif

/// Cuts `count` pixels or taps into tiles of nearly the same size: calls call(first, size).
template <int kMax, class Call>
[[gnu::always_inline]] inline void for_tiles(std::int64_t count, const Call& call) {
  const std::int64_t tiles = (count + kMax - 1) / kMax;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const std::int64_t first = count * tile / tiles;
    call(first, count * (tile + 1) / tiles - first);
  }
}
