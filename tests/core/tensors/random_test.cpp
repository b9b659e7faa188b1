#include "core/tensors/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace miniqat::random_test {
namespace {

using Block = std::array<std::uint32_t, 4>;

// The known answers published with the authors' own implementation (Random123, kat_vectors, philox4x32 10).
TEST(Philox, GivesThePublishedKnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(HashText, IsFnv1a) {
  EXPECT_EQ(hash_text(""), 0xcbf29ce484222325);
  EXPECT_EQ(hash_text("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(hash_text("foobar"), 0x85944171f73967e8);
  // A char above 127 must not be sign-extended: (basis ^ 0xff) * prime.
  EXPECT_EQ(hash_text("\xff"), (0xcbf29ce484222325 ^ 0xff) * 0x100000001b3);
}

TEST(Mix, StartsLikeSplitmix64) { EXPECT_EQ(mix(0, 0), 0xe220a8397b1dcdaf); }

TEST(Mix, SeparatesNearbyAndSwappedKeys) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t a = 0; a < 64; ++a)
    for (std::uint64_t b = 0; b < 64; ++b) seen.insert(mix(a, b));
  EXPECT_EQ(seen.size(), 64u * 64u);
}

TEST(Random, StreamIsThePhiloxBlocksInOrder) {
  Random random(42);
  for (std::uint64_t counter = 0; counter < 3; ++counter)
    for (const std::uint32_t word : philox(42, counter)) EXPECT_EQ(random.bits(), word);
}

TEST(Random, UniformStaysInItsHalfOpenIntervalAndFillsIt) {
  Random random(7);
  double sum = 0;
  double squares = 0;
  float low = 1;
  float high = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const float u = random.uniform();
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    low = std::min(low, u);
    high = std::max(high, u);
    sum += u;
    squares += u * u;
  }
  // Standard errors: 0.00065 of the mean, 0.0007 of the mean square.
  EXPECT_NEAR(sum / kDraws, 0.5, 0.004);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.004);
  EXPECT_LT(low, 1e-4f);
  EXPECT_GT(high, 1 - 1e-4f);
}

TEST(Random, BelowReachesEveryValueEquallyOften) {
  Random random(3);
  std::vector<int> counts(7);
  constexpr int kDraws = 70000;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t draw = random.below(7);
    ASSERT_LT(draw, 7u);
    ++counts[draw];
  }
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 7, 500);  // 5 standard deviations
}

TEST(Random, BelowHandlesTheExtremeBounds) {
  Random random(5);
  EXPECT_EQ(random.below(1), 0u);
  // 2^64 is a third more than this bound: without refusal the lowest third would come up in half of the draws.
  const std::uint64_t bound = 3ull << 62;
  int lowest_third = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t draw = random.below(bound);
    ASSERT_LT(draw, bound);
    lowest_third += draw < bound / 3 ? 1 : 0;
  }
  EXPECT_NEAR(lowest_third, 1000, 130);  // 5 standard deviations
  EXPECT_LT(random.below(~0ull), ~0ull);
}

TEST(Random, NormalHasTheMomentsOfANormal) {
  Random random(11);
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  int outside = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    outside += std::abs(x) > 2 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.012);
  EXPECT_NEAR(squares / kDraws, 1, 0.016);
  EXPECT_NEAR(fourth / kDraws, 3, 0.12);
  EXPECT_NEAR(static_cast<double>(outside) / kDraws, 0.0455, 0.0025);
}

TEST(Random, TruncatedNormalStaysWithinTwoAndHasItsStandardDeviation) {
  Random random(13);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.truncated_normal();
    ASSERT_LE(std::abs(x), 2);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / kDraws), 0.87962566, 0.006);
}

}  // namespace
}  // namespace miniqat::random_test
