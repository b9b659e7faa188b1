// Vectors of floats for other files of loops (see core/kernels/per_instruction_set.h), which include this one.

using Floats __attribute__((vector_size(MINIQAT_VECTOR_BYTES))) = float;
using FourFloats __attribute__((vector_size(16))) = float;

/// The types that go with a vector of floats: the masks of comparisons (int32), and winners as they are in memory.
template <class V>
struct Related {
  static constexpr int kLanes = sizeof(V) / sizeof(float);
  using Mask __attribute__((vector_size(sizeof(V)))) = std::int32_t;
  using Bytes __attribute__((vector_size(sizeof(V) / 4))) = std::uint8_t;
};

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

template <class V>
[[gnu::always_inline]] inline typename Related<V>::Mask load_winners(const std::uint8_t* from) {
  typename Related<V>::Bytes bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, typename Related<V>::Mask);
}

template <class V>
[[gnu::always_inline]] inline typename Related<V>::Mask load_winners(const std::int32_t* from) {
  typename Related<V>::Mask winners;
  __builtin_memcpy(&winners, from, sizeof winners);
  return winners;
}

template <class V>
[[gnu::always_inline]] inline void store_winners(std::uint8_t* to, typename Related<V>::Mask winners) {
  const auto bytes = __builtin_convertvector(winners, typename Related<V>::Bytes);
  __builtin_memcpy(to, &bytes, sizeof bytes);
}

template <class V>
[[gnu::always_inline]] inline void store_winners(std::int32_t* to, typename Related<V>::Mask winners) {
  __builtin_memcpy(to, &winners, sizeof winners);
}
