#pragma once

#include <cstddef>
#include <span>

#include "core/kernels/instruction_set.h"

/// A kernel for each instruction set of loops that also have a form for AVX-512 VNNI (MINIQAT_WITH_VNNI in
/// core/kernels/per_instruction_set.h), the best first. KERNEL(set) makes the one of the namespace `set`.
#if MINIQAT_HAS_INSTRUCTION_SETS
#define MINIQAT_KERNELS(KERNEL) \
  { KERNEL(avx512vnni), KERNEL(avx512), KERNEL(avx2), KERNEL(baseline) }
#else
#define MINIQAT_KERNELS(KERNEL) \
  { KERNEL(baseline) }
#endif

namespace miniqat {

/// The kernels of MINIQAT_KERNELS that this CPU runs.
template <class Kernel>
std::span<const Kernel> runnable_kernels(std::span<const Kernel> all) {
#if MINIQAT_HAS_INSTRUCTION_SETS
  const std::size_t better = instruction_set() == InstructionSet::kBaseline ? 3
                             : instruction_set() == InstructionSet::kAvx2   ? 2
                             : __builtin_cpu_supports("avx512vnni")         ? 0
                                                                            : 1;
  return all.subspan(better);
#else
  return all;
#endif
}

}  // namespace miniqat
