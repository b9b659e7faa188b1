#pragma once

#include <string_view>

namespace miniqat {

/// The kinds of code that our vectorised loops are compiled for.
enum class InstructionSet {
  /// What every CPU of the architecture has; the only one outside x86-64.
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

}  // namespace miniqat
