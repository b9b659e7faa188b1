#include "core/kernels/instruction_set.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/text/error.h"
#include "core/text/quote.h"

namespace miniqat {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"baseline", "avx2", "avx512"};

InstructionSet of_this_cpu() {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return InstructionSet::kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return InstructionSet::kAvx2;
#endif
  return InstructionSet::kBaseline;
}

InstructionSet capped() {
  const char* cap = std::getenv("MINIQAT_MAX_ISA");
  if (cap == nullptr || *cap == '\0') return of_this_cpu();
  const auto found = std::ranges::find(kNames, cap);
  if (found == kNames.end()) fail("MINIQAT_MAX_ISA must be baseline, avx2 or avx512, is ", quote(cap));
  return std::min(of_this_cpu(), static_cast<InstructionSet>(found - kNames.begin()));
}

}  // namespace

std::string_view name_of(InstructionSet set) { return kNames[static_cast<std::size_t>(set)]; }

InstructionSet instruction_set() {
  static const InstructionSet set = capped();
  return set;
}

}  // namespace miniqat
