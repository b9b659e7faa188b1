#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace miniqat {

/// The kinds of code that our vectorised loops are compiled for.
enum class InstructionSet {
  /// The common set of every CPU of the architecture; the only one outside x86-64.
  kBaseline,
  /// AVX2 with FMA.
  kAvx2,
  /// AVX-512 F, BW, DQ and VL.
  kAvx512,
};

std::string_view name_of(InstructionSet set);

/// The best one that this CPU has, or less when the environment variable MINIQAT_MAX_ISA caps it at "baseline", "avx2"
/// or "avx512" (to try out what another machine will do). oneDNN is capped with it. Found once, at the first call.
/// Throws Error for any other value of the variable.
InstructionSet instruction_set();

/// The one of three functions that suits this CPU.
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

// With core/kernels/per_instruction_set.h: the function for this CPU, and a kernel for each instruction set of loops
// that also have a form for AVX-512 VNNI (MINIQAT_WITH_VNNI there), the best first. KERNEL(set) makes the one of the
// namespace `set`.
#if defined(__x86_64__) && defined(__GNUC__)
#define MINIQAT_HAS_INSTRUCTION_SETS 1
#define MINIQAT_PICK(function) ::miniqat::pick_instruction_set(&baseline::function, &avx2::function, &avx512::function)
#define MINIQAT_KERNELS(KERNEL) \
  { KERNEL(avx512vnni), KERNEL(avx512), KERNEL(avx2), KERNEL(baseline) }
#else
#define MINIQAT_HAS_INSTRUCTION_SETS 0
#define MINIQAT_PICK(function) (&baseline::function)
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
