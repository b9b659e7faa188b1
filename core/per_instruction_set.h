// Compiles one file of loops several times, once for each instruction set, into the namespaces baseline, avx2 and
// avx512 of wherever it is included:
//
//   #define MINIQAT_LOOPS "layers/pool_loops.h"
//   #include "core/per_instruction_set.h"
//
// pick_instruction_set(&baseline::f, &avx2::f, &avx512::f) then gives the one for this CPU; MINIQAT_PICK(f) writes that
// down. The file of loops has no include guard and includes nothing: its includer does, before this, so that no inline
// function of a header is compiled for a CPU that this one may not be. The compiler's fused multiply-adds stay off
// (-ffp-contract=off), so all three give the same bits.

#include "core/instruction_set.h"

#ifndef MINIQAT_PICK

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MINIQAT_HAS_INSTRUCTION_SETS 1
#define MINIQAT_PICK(function) ::miniqat::pick_instruction_set(&baseline::function, &avx2::function, &avx512::function)
#else
#define MINIQAT_HAS_INSTRUCTION_SETS 0
#define MINIQAT_PICK(function) (&baseline::function)
#endif

namespace miniqat {

template <class Function>
Function pick_instruction_set(Function baseline, Function avx2, Function avx512) {
  switch (instruction_set()) {
    case InstructionSet::kAvx512:
      return avx512;
    case InstructionSet::kAvx2:
      return avx2;
    default:
      return baseline;
  }
}

}  // namespace miniqat

#endif

#define MINIQAT_VECTOR_BYTES 16
namespace baseline {
#include MINIQAT_LOOPS
}
#undef MINIQAT_VECTOR_BYTES

#if MINIQAT_HAS_INSTRUCTION_SETS

#pragma GCC push_options
#pragma GCC target("avx2,fma,prefer-vector-width=256")
#define MINIQAT_VECTOR_BYTES 32
namespace avx2 {
#include MINIQAT_LOOPS
}
#undef MINIQAT_VECTOR_BYTES
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#define MINIQAT_VECTOR_BYTES 64
namespace avx512 {
#include MINIQAT_LOOPS
}
#undef MINIQAT_VECTOR_BYTES
#pragma GCC pop_options

#endif

#undef MINIQAT_LOOPS
