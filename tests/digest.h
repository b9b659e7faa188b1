#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "core/kernels/instruction_set.h"
#include "core/tensors/random.h"

namespace miniqat::testing {

/// Of many numbers: equal when all bits are (NaNs count as one number).
class Digest {
 public:
  void add(std::span<const float> values) {
    for (const float value : values) hash_ = mix(hash_, value == value ? std::bit_cast<std::uint32_t>(value) : 1u);
  }
  /// Where digest_on looks for it.
  void print() const { std::printf("digest %016llx\n", static_cast<unsigned long long>(hash_)); }

 private:
  std::uint64_t hash_ = 0;
};

/// The digest that the test `name` ("Suite.DISABLED_Name") of this very program prints on an instruction set.
inline std::string digest_on(InstructionSet set, const std::string& name) {
  const std::string command = "MINIQAT_MAX_ISA=" + std::string(name_of(set)) + " /proc/" + std::to_string(getpid()) +
                              "/exe --gtest_also_run_disabled_tests --gtest_filter=" + name;
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "r"), pclose);
  std::string digest;
  for (char line[256]; output != nullptr && std::fgets(line, sizeof line, output.get()) != nullptr;)
    if (std::string(line).starts_with("digest ")) digest = line;
  return digest;
}

/// Its digest is there, and the same on every instruction set that this process may use.
inline void expect_same_on_all_instruction_sets(const std::string& name) {
  const InstructionSet best = instruction_set();
  if (best == InstructionSet::kBaseline) GTEST_SKIP() << "there is no other instruction set to compare with";
  const std::string baseline = digest_on(InstructionSet::kBaseline, name);
  EXPECT_NE(baseline, "");
  for (const InstructionSet set : {InstructionSet::kAvx2, InstructionSet::kAvx512})
    if (set <= best) {
      EXPECT_EQ(digest_on(set, name), baseline) << name_of(set);
    }
}

}  // namespace miniqat::testing
