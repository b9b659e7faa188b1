#include "core/kernels/instruction_set.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/text/error.h"
#include "core/text/quote.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace miniqat {
namespace {

struct Level {
  std::string_view name;
  /// Features.
  unsigned needed;
  /// Beside these: what a CPU may have without being of a better level.
  unsigned allowed = 0;
};

constexpr unsigned kFirstAvx512 = kHasAvx2 | kHasAvx512, kVnni = kFirstAvx512 | kHasAvx512Vnni;
/// One for each IsaLevel.
constexpr std::array<Level, 6> kLevels = {{{"baseline", 0},
                                           {"avx2", kHasAvx2},
                                           {"avx2-vnni", kHasAvx2 | kHasAvxVnni},
                                           {"avx512", kFirstAvx512},
                                           {"avx512-vnni", kVnni, kHasAvxVnni},
                                           {"amx", kVnni | kHasAmx, kHasAvxVnni}}};

const Level& description_of(IsaLevel level) { return kLevels[static_cast<std::size_t>(level)]; }

IsaLevel best_level(unsigned features) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < kLevels.size(); ++i)
    if ((kLevels[i].needed & ~features) == 0) best = i;
  return static_cast<IsaLevel>(best);
}

#if defined(__x86_64__) && defined(__GNUC__)
/// Whether the system keeps the tiles of AMX for a process.
__attribute__((target("xsave"))) bool system_has_tiles() { return (_xgetbv(0) >> 17 & 3) == 3; }

/// The newer features of a CPU with AVX2. Compilers differ in the names that __builtin_cpu_supports() knows.
unsigned newer_features_of_this_cpu() {
  unsigned a = 0, b = 0, c = 0, d = 0, features = 0;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0) features |= kHasAvxVnni;
  constexpr unsigned kTilesOfBytesAndBfloat16 = 1u << 24 | 1u << 25 | 1u << 22;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTilesOfBytesAndBfloat16) == kTilesOfBytesAndBfloat16 &&
      system_has_tiles())
    features |= kHasAmx;
  return features;
}
#endif

unsigned features_of_this_cpu() {
#if defined(__x86_64__) && defined(__GNUC__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
  unsigned features = kHasAvx2 | newer_features_of_this_cpu();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    features |= kHasAvx512;
  if (__builtin_cpu_supports("avx512vnni")) features |= kHasAvx512Vnni;
  return features;
#else
  return 0;
#endif
}

}  // namespace

std::string_view name_of(IsaLevel level) { return description_of(level).name; }

IsaLevel level_of(unsigned features, IsaLevel cap) {
  return best_level(features & (description_of(cap).needed | description_of(cap).allowed));
}

IsaLevel common_level(IsaLevel a, IsaLevel b) {
  return best_level(description_of(a).needed & description_of(b).needed);
}

IsaLevel level_of_this_cpu(IsaLevel cap) {
  static const unsigned features = features_of_this_cpu();
  return level_of(features, cap);
}

std::optional<IsaLevel> isa_cap() {
  const char* cap = std::getenv("MINIQAT_MAX_ISA");
  if (cap == nullptr || *cap == '\0') return {};
  const auto found = std::ranges::find(kLevels, cap, &Level::name);
  if (found == kLevels.end())
    fail("MINIQAT_MAX_ISA must be baseline, avx2, avx2-vnni, avx512, avx512-vnni or amx, is ", quote(cap));
  return static_cast<IsaLevel>(found - kLevels.begin());
}

IsaLevel isa_level() {
  static const IsaLevel level = level_of_this_cpu(isa_cap().value_or(IsaLevel::kAmx));
  return level;
}

std::string_view name_of(InstructionSet set) {
  constexpr std::array levels = {IsaLevel::kBaseline, IsaLevel::kAvx2, IsaLevel::kAvx512};
  return name_of(levels[static_cast<std::size_t>(set)]);
}

InstructionSet instruction_set() {
  const IsaLevel level = isa_level();
  return level >= IsaLevel::kAvx512 ? InstructionSet::kAvx512
         : level >= IsaLevel::kAvx2 ? InstructionSet::kAvx2
                                    : InstructionSet::kBaseline;
}

}  // namespace miniqat
