#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace miniqat {

/// What CPUs have, for the kernels of oneDNN and our own. A level has all that those before it have, but for kAvx512,
/// the first generation of AVX-512, which has no VNNI.
enum class IsaLevel {
  /// The common set of every CPU of the architecture; the only one outside x86-64.
  kBaseline,
  /// AVX2 with FMA.
  kAvx2,
  /// With AVX-VNNI.
  kAvx2Vnni,
  /// AVX-512 F, BW, DQ and VL.
  kAvx512,
  kAvx512Vnni,
  /// All that a CPU has.
  kAmx,
};

/// "avx512-vnni": a value of MINIQAT_MAX_ISA.
std::string_view name_of(IsaLevel level);

/// Bits: what level_of() looks for in a CPU.
enum CpuFeature : unsigned { kHasAvx2 = 1, kHasAvxVnni = 2, kHasAvx512 = 4, kHasAvx512Vnni = 8, kHasAmx = 16 };

/// The best level of a CPU with these features, of which `cap` allows some.
IsaLevel level_of(unsigned features, IsaLevel cap);
IsaLevel level_of_this_cpu(IsaLevel cap);
/// The best one that CPUs of both levels have.
IsaLevel common_level(IsaLevel a, IsaLevel b);

/// The cap in the environment variable MINIQAT_MAX_ISA, to try out what another machine will do. None where it is not
/// set. Throws Error for a value that is no level's name.
std::optional<IsaLevel> isa_cap();
/// The best level of this CPU, or less by isa_cap(). Found once, at the first call, which throws what isa_cap() throws.
/// oneDNN is capped with it.
IsaLevel isa_level();

/// The kinds of code that our vectorised loops are compiled for.
enum class InstructionSet { kBaseline, kAvx2, kAvx512 };

std::string_view name_of(InstructionSet set);

/// The set that our own loops use at isa_level().
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
                             : isa_level() >= IsaLevel::kAvx512Vnni         ? 0
                                                                            : 1;
  return all.subspan(better);
#else
  return all;
#endif
}

}  // namespace miniqat
