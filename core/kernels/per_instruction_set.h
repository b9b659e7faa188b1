// Compiles one file of loops several times, once for each instruction set, into the namespaces baseline, avx2 and
// avx512. Include it inside the namespace that these are to be part of:
//
//   #include "core/kernels/instruction_set.h"
//   ... all that the loops use ...
//   namespace miniqat::layers {
//   namespace {
//   #define MINIQAT_LOOPS "layers/kernels/pool_loops.h"
//   #include "core/kernels/per_instruction_set.h"
//   }
//
// MINIQAT_PICK(f) then gives the address of the f for this CPU. If MINIQAT_WITH_VNNI is defined as well, there is a
// fourth namespace, avx512vnni, in which MINIQAT_VNNI is 1; its includer chooses it. The file of loops has no include
// guard and includes nothing: its includer does, before this, so that no inline function of a header is compiled for a
// CPU that this one may not be. The compiler's fused multiply-adds stay off (-ffp-contract=off), so all three give the
// same bits.
//
// A build with MINIQAT_ONLY_SET (CMakeLists.txt: that of the sanitizers, which take long over each copy) compiles one
// set, the best of its machine: 0 for baseline, 1 for avx2, 2 for avx512, 3 for avx512vnni. The other namespaces are
// then other names of this one.

#ifndef MINIQAT_ONLY_SET
#define MINIQAT_COMPILES(set) 1
#elif MINIQAT_ONLY_SET == 3 && !defined(MINIQAT_WITH_VNNI)
#define MINIQAT_COMPILES(set) (set == 2)
#else
#define MINIQAT_COMPILES(set) (set == MINIQAT_ONLY_SET)
#endif

#if MINIQAT_COMPILES(0)
#define MINIQAT_VECTOR_BYTES 16
namespace baseline {
#include MINIQAT_LOOPS
}
#undef MINIQAT_VECTOR_BYTES
#endif

#if MINIQAT_HAS_INSTRUCTION_SETS

// The functions between these two are compiled for CPUs with `features`, in vectors as long as they have.
#define MINIQAT_PRAGMA(...) _Pragma(#__VA_ARGS__)
#if defined(__clang__)
#define MINIQAT_BEGIN_TARGET(features, width) \
  MINIQAT_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define MINIQAT_END_TARGET MINIQAT_PRAGMA(clang attribute pop)
#else
#define MINIQAT_BEGIN_TARGET(features, width) \
  MINIQAT_PRAGMA(GCC push_options) MINIQAT_PRAGMA(GCC target(features, width))
#define MINIQAT_END_TARGET MINIQAT_PRAGMA(GCC pop_options)
#endif

#if MINIQAT_COMPILES(1)
MINIQAT_BEGIN_TARGET("avx2,fma", "prefer-vector-width=256")
#define MINIQAT_VECTOR_BYTES 32
namespace avx2 {
#include MINIQAT_LOOPS
}
#undef MINIQAT_VECTOR_BYTES
MINIQAT_END_TARGET
#endif

#if MINIQAT_COMPILES(2)
MINIQAT_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,fma", "prefer-vector-width=512")
#define MINIQAT_VECTOR_BYTES 64
namespace avx512 {
#include MINIQAT_LOOPS
}
#undef MINIQAT_VECTOR_BYTES
MINIQAT_END_TARGET
#endif

#if defined(MINIQAT_WITH_VNNI) && MINIQAT_COMPILES(3)
MINIQAT_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma", "prefer-vector-width=512")
#define MINIQAT_VECTOR_BYTES 64
#define MINIQAT_VNNI 1
namespace avx512vnni {
#include MINIQAT_LOOPS
}
#undef MINIQAT_VNNI
#undef MINIQAT_VECTOR_BYTES
MINIQAT_END_TARGET
#endif

// A set that is not compiled is an alias of one that is.
#if MINIQAT_COMPILES(0) && !MINIQAT_COMPILES(1)
namespace avx2 = baseline;
#elif !MINIQAT_COMPILES(1) && MINIQAT_COMPILES(2)
namespace avx2 = avx512;
#elif !MINIQAT_COMPILES(1)
namespace avx2 = avx512vnni;
#endif
#if !MINIQAT_COMPILES(0)
namespace baseline = avx2;
#endif
#if !MINIQAT_COMPILES(2)
namespace avx512 = avx2;
#endif
#if defined(MINIQAT_WITH_VNNI) && !MINIQAT_COMPILES(3)
namespace avx512vnni = avx512;
#endif

#undef MINIQAT_END_TARGET
#undef MINIQAT_BEGIN_TARGET
#undef MINIQAT_PRAGMA

#endif

#undef MINIQAT_COMPILES
#undef MINIQAT_WITH_VNNI
#undef MINIQAT_LOOPS
