// Levels of instructions of CPUs that this one is not: their features are data here.

#include "core/kernels/instruction_set.h"

#include <gtest/gtest.h>

#include <array>

#include "core/kernels/onednn_kernel.h"

namespace miniqat::instruction_set_test {
namespace {

using dnnl::cpu_isa;
using enum IsaLevel;

constexpr std::array kAll = {kBaseline, kAvx2, kAvx2Vnni, kAvx512, kAvx512Vnni, kAmx};

struct Cpu {
  const char* name;
  unsigned features;
  /// By cap, as kAll.
  std::array<IsaLevel, kAll.size()> levels;
};

constexpr std::array<Cpu, 6> kCpus = {
    {{"Nehalem", 0, {kBaseline, kBaseline, kBaseline, kBaseline, kBaseline, kBaseline}},
     {"Haswell, Zen 2", kHasAvx2, {kBaseline, kAvx2, kAvx2, kAvx2, kAvx2, kAvx2}},
     {"Alder Lake", kHasAvx2 | kHasAvxVnni, {kBaseline, kAvx2, kAvx2Vnni, kAvx2, kAvx2Vnni, kAvx2Vnni}},
     {"Skylake-X", kHasAvx2 | kHasAvx512, {kBaseline, kAvx2, kAvx2, kAvx512, kAvx512, kAvx512}},
     {"Cascade Lake",
      kHasAvx2 | kHasAvx512 | kHasAvx512Vnni,
      {kBaseline, kAvx2, kAvx2, kAvx512, kAvx512Vnni, kAvx512Vnni}},
     {"Sapphire Rapids",
      kHasAvx2 | kHasAvxVnni | kHasAvx512 | kHasAvx512Vnni | kHasAmx,
      {kBaseline, kAvx2, kAvx2Vnni, kAvx512, kAvx512Vnni, kAmx}}}};

TEST(InstructionSet, ACapLeavesWhatACpuHasOfIt) {
  for (const Cpu& cpu : kCpus)
    for (std::size_t i = 0; i < kAll.size(); ++i)
      EXPECT_EQ(name_of(level_of(cpu.features, kAll[i])), name_of(cpu.levels[i]))
          << cpu.name << " at most " << name_of(kAll[i]);
}

/// Ranks with that cap compute the same bits.
TEST(InstructionSet, TheCommonLevelIsOneOfBothCpus) {
  EXPECT_EQ(common_level(kAvx2Vnni, kAvx512), kAvx2);
  EXPECT_EQ(common_level(kAvx512, kAvx2Vnni), kAvx2);
  EXPECT_EQ(common_level(kAmx, kAvx512), kAvx512);
  EXPECT_EQ(common_level(kAvx512Vnni, kAmx), kAvx512Vnni);
  for (const IsaLevel level : kAll) {
    EXPECT_EQ(common_level(level, level), level);
    EXPECT_EQ(common_level(level, kBaseline), kBaseline);
  }
}

TEST(InstructionSet, OneDnnIsCappedWithUs) {
  using onednn::cap_of;
  EXPECT_EQ(cap_of(kBaseline, {}), cpu_isa::sse41);
  EXPECT_EQ(cap_of(kAvx2, {}), cpu_isa::avx2);
  EXPECT_EQ(cap_of(kAvx2Vnni, {}), cpu_isa::avx2_vnni);
  for (const IsaLevel level : {kAvx512, kAvx512Vnni, kAmx}) {
    EXPECT_EQ(cap_of(level, {}), std::nullopt) << name_of(level);
    EXPECT_EQ(cap_of(level, kAmx), std::nullopt) << name_of(level);
  }
  EXPECT_EQ(cap_of(kAvx512, kAvx512), cpu_isa::avx512_core);
  EXPECT_EQ(cap_of(kAvx512Vnni, kAvx512Vnni), cpu_isa::avx512_core_vnni);
  EXPECT_EQ(cap_of(kAvx512, kAvx512Vnni), cpu_isa::avx512_core) << "a CPU without VNNI";
}

/// Without VNNI oneDNN adds pairs of products in 16 bits.
TEST(InstructionSet, BytesAreExactWithVnni) {
  using onednn::exact_byte_of;
  for (const cpu_isa isa : {cpu_isa::sse41, cpu_isa::avx, cpu_isa::avx2, cpu_isa::avx512_core})
    EXPECT_EQ(exact_byte_of(isa), 64);
  for (const cpu_isa isa :
       {cpu_isa::avx2_vnni, cpu_isa::avx512_core_vnni, cpu_isa::avx512_core_bf16, cpu_isa::avx512_core_amx})
    EXPECT_EQ(exact_byte_of(isa), 128);
}

}  // namespace
}  // namespace miniqat::instruction_set_test
