#include "core/kernels/scratch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace miniqat::scratch_test {
namespace {

TEST(Scratch, TakesDoNotOverlapAndAreAligned) {
  ScratchScope scope;
  const auto a = scope.filled<float>(100, 1.0f);
  const auto b = scope.filled<std::uint8_t>(3, 2);
  const auto c = scope.filled<double>(1'000'000, 3.0);
  const auto d = scope.filled<float>(5, 4.0f);
  for (const void* memory : {static_cast<const void*>(a.data()), static_cast<const void*>(b.data()),
                             static_cast<const void*>(c.data()), static_cast<const void*>(d.data())})
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0);
  EXPECT_TRUE(std::ranges::all_of(a, [](float value) { return value == 1; }));
  EXPECT_TRUE(std::ranges::all_of(b, [](int value) { return value == 2; }));
  EXPECT_TRUE(std::ranges::all_of(c, [](double value) { return value == 3; }));
  EXPECT_TRUE(std::ranges::all_of(d, [](float value) { return value == 4; }));
}

TEST(Scratch, InnerScopesGiveBackWhatTheyTook) {
  ScratchScope outer;
  const auto kept = outer.filled<float>(10, 1.0f);
  const float* first = nullptr;
  for (int round = 0; round < 3; ++round) {
    ScratchScope inner;
    const auto memory = inner.filled<float>(200'000, 2.0f);
    if (round > 0) {
      EXPECT_EQ(memory.data(), first) << "the second time nothing new is allocated";
    }
    first = memory.data();
  }
  EXPECT_TRUE(std::ranges::all_of(kept, [](float value) { return value == 1; }));
}

}  // namespace
}  // namespace miniqat::scratch_test
