#pragma once

#include <cstdint>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace miniqat {

// The calling thread's register that controls floating point arithmetic: MXCSR of x86-64, FPCR of 64-bit ARM; 0 and
// without effect elsewhere.

#if defined(__SSE__)
/// Flush to zero, denormals are zero.
inline constexpr unsigned kFlushDenormals = 0x8040;
/// What operations raise; the rest are switches.
inline constexpr unsigned kRaisedFlags = 0x3f;
inline unsigned floating_point_control() { return _mm_getcsr(); }
inline void set_floating_point_control(unsigned control) { _mm_setcsr(control); }
#elif defined(__aarch64__)
/// FZ: of operands and results.
inline constexpr unsigned kFlushDenormals = 1u << 24;
inline constexpr unsigned kRaisedFlags = 0;
inline unsigned floating_point_control() {
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return static_cast<unsigned>(control);
}
inline void set_floating_point_control(unsigned control) {
  asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{control}));
}
#else
inline constexpr unsigned kFlushDenormals = 0;
inline constexpr unsigned kRaisedFlags = 0;
inline unsigned floating_point_control() { return 0; }
inline void set_floating_point_control(unsigned) {}
#endif

}  // namespace miniqat
