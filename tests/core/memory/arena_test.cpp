#include "core/memory/arena.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/tensors/random.h"
#include "core/tensors/tensor.h"

namespace miniqat::arena_test {
namespace {

/// The most bytes that are alive in one step: no layout can be smaller.
std::size_t peak(const std::vector<Lifetime>& lifetimes) {
  std::size_t most = 0;
  for (const Lifetime& now : lifetimes) {
    std::size_t alive = 0;
    for (const Lifetime& other : lifetimes)
      if (other.first <= now.first && now.first <= other.last) alive += other.bytes;
    most = std::max(most, alive);
  }
  return most;
}

void expect_sound(const std::vector<Lifetime>& lifetimes, const ArenaLayout& layout) {
  ASSERT_EQ(layout.offsets.size(), lifetimes.size());
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const Lifetime& a = lifetimes[i];
    EXPECT_EQ(layout.offsets[i] % Tensor::kAlignment, 0u) << i;
    EXPECT_LE(layout.offsets[i] + a.bytes, layout.bytes) << i;
    for (std::size_t j = 0; j < i; ++j) {
      const Lifetime& b = lifetimes[j];
      const bool both_alive = a.first <= b.last && b.first <= a.last;
      const bool overlap =
          layout.offsets[i] < layout.offsets[j] + b.bytes && layout.offsets[j] < layout.offsets[i] + a.bytes;
      EXPECT_FALSE(both_alive && overlap)
          << i << " [" << layout.offsets[i] << ", +" << a.bytes << ") in steps " << a.first << ".." << a.last
          << " overlaps " << j << " [" << layout.offsets[j] << ", +" << b.bytes << ") in " << b.first << ".." << b.last;
    }
  }
}

TEST(ArenaTest, NothingTakesNoMemory) { EXPECT_EQ(place_in_arena({}).bytes, 0u); }

TEST(ArenaTest, RandomLifetimesNeverOverlap) {
  Random random(17);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lifetimes(1 + random.below(40));
    for (Lifetime& life : lifetimes) {
      life.bytes = random.below(10) == 0 ? 0 : random.below(1000);
      life.first = static_cast<int>(random.below(30));
      life.last = life.first + static_cast<int>(random.below(8));
    }
    const ArenaLayout layout = place_in_arena(lifetimes);
    expect_sound(lifetimes, layout);
    EXPECT_GE(layout.bytes, peak(lifetimes));
    if (::testing::Test::HasFailure()) FAIL() << "in round " << round;
  }
}

TEST(ArenaTest, StretchesThatNeverMeetShareOnePlace) {
  const ArenaLayout layout = place_in_arena({{640, 0, 1}, {640, 2, 3}, {320, 4, 9}});
  EXPECT_EQ(layout.bytes, 640u);
  EXPECT_EQ(layout.offsets, (std::vector<std::size_t>{0, 0, 0}));
}

// The last step of one and the first of the next are the same: an op reads the one while it writes the other.
TEST(ArenaTest, BothEndsOfALifeCount) {
  EXPECT_EQ(place_in_arena({{64, 0, 1}, {64, 1, 2}}).bytes, 128u);
  EXPECT_EQ(place_in_arena({{64, 1, 2}, {64, 0, 1}}).bytes, 128u);
}

TEST(ArenaTest, AChainNeedsTwoTensors) {
  std::vector<Lifetime> chain;
  for (int i = 0; i < 100; ++i) chain.push_back({1024, i, i + 1});
  EXPECT_EQ(place_in_arena(chain).bytes, 2048u);
}

TEST(ArenaTest, AGapBetweenTwoStretchesIsUsed) {
  // The first and the third live to the end, the second one only at first; the fourth fits where it was.
  const std::vector<Lifetime> lifetimes = {{512, 0, 9}, {256, 0, 1}, {192, 0, 9}, {128, 5, 9}};
  const ArenaLayout layout = place_in_arena(lifetimes);
  expect_sound(lifetimes, layout);
  EXPECT_EQ(layout.offsets[3], 512u);
  EXPECT_EQ(layout.bytes, 960u);
}

TEST(ArenaTest, OddSizesStayAligned) {
  const std::vector<Lifetime> lifetimes = {{1, 0, 1}, {65, 0, 1}, {0, 0, 1}, {127, 0, 1}};
  expect_sound(lifetimes, place_in_arena(lifetimes));
}

}  // namespace
}  // namespace miniqat::arena_test
