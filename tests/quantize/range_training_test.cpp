#include "quantize/range_training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "quantize/reference/fake_quant.h"

namespace miniqat::quantize::range_training_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_values(std::int64_t n) {
  Random random(static_cast<std::uint64_t>(n));
  std::vector<float> values(n);
  for (float& value : values) value = random.uniform(-3, 5);
  return values;
}

TEST(RangeObserver, FindsWhatTheReferenceFindsForAnyShapeAndThreads) {
  for (int threads : {1, 2, 3}) {
    set_thread_count(threads);
    for (std::int64_t channels : {1, 2, 3, 33, 64, 255, 256, 257, 1000}) {
      for (std::int64_t rows : {1, 2, 7, 100, 513}) {
        const std::vector<float> x = random_values(rows * channels);
        ScratchScope scope;
        const auto fast = observe(x, channels, scope);
        std::vector<Range<float>> ranges(channels);
        const auto reference = reference::observe<float>(x, ranges);
        ASSERT_EQ(fast.ranges.size(), reference.ranges.size());
        EXPECT_FALSE(reference.has_nan);
        EXPECT_FALSE(fast.has_nan);
        for (std::int64_t c = 0; c < channels; ++c) {
          ASSERT_EQ(fast.ranges[c].min, reference.ranges[c].min) << rows << "x" << channels << " channel " << c;
          ASSERT_EQ(fast.ranges[c].max, reference.ranges[c].max) << rows << "x" << channels << " channel " << c;
        }
      }
    }
  }
}

TEST(RangeObserver, SeesOneExtremeValueWhereverItStands) {
  set_thread_count(2);
  std::vector<float> x = random_values(40'000);
  ScratchScope scope;
  for (std::size_t at : {0, 1, 15, 16, 255, 256, 19'999, 20'000, 39'999}) {
    const float before = x[at];
    x[at] = 100;
    EXPECT_EQ(observe(x, 1, scope).ranges[0].max, 100) << at;
    x[at] = -kInfinity;
    EXPECT_EQ(observe(x, 1, scope).ranges[0].min, -kInfinity) << at;
    x[at] = kNan;
    EXPECT_TRUE(observe(x, 1, scope).has_nan) << at;
    EXPECT_TRUE(observe(x, 8, scope).has_nan) << at;
    x[at] = before;
  }
}

TEST(RangeObserver, WidensWhatItSaw) {
  Range<float> ranges[] = {{1, 2}, {-3, -2}, {-1, 4}};
  Observation<float> seen{ranges};
  EXPECT_TRUE(widen(seen, {.bits = 8, .narrow_range = true}));
  EXPECT_EQ(seen.ranges[0].min, 0);
  EXPECT_EQ(seen.ranges[1].max, 0);
  EXPECT_EQ(seen.ranges[2].min, -1);
  EXPECT_TRUE(widen(seen, {.bits = 8, .narrow_range = true, .symmetric = true}));
  EXPECT_EQ(seen.ranges[0].min, -2);
  EXPECT_EQ(seen.ranges[1].max, 3);
  EXPECT_EQ(seen.ranges[2].min, -4);
}

TEST(RangeObserver, GivesZeroOneSign) {
  Range<float> ranges[] = {{-0.0f, 1}, {-1, -0.0f}};
  Observation<float> seen{ranges};
  EXPECT_TRUE(widen(seen, {}));
  EXPECT_FALSE(std::signbit(seen.ranges[0].min));
  EXPECT_FALSE(std::signbit(seen.ranges[1].max));
}

TEST(RangeObserver, LearnsNothingFromNanAndInfinity) {
  Range<float> finite[] = {{-1, 1}};
  Observation<float> nan{.ranges = finite, .has_nan = true};
  EXPECT_FALSE(widen(nan, {}));
  Range<float> one_infinite[] = {{-1, 1}, {0, kInfinity}};
  Observation<float> infinity{one_infinite};
  EXPECT_FALSE(widen(infinity, {}));
  for (const Range<float>& range : {finite[0], one_infinite[0], one_infinite[1]})
    EXPECT_TRUE(std::isnan(range.min) && std::isnan(range.max)) << "the good channels, too";
  Range<float> widest[] = {{-std::numeric_limits<float>::max(), 0}, {0, std::numeric_limits<float>::max()}};
  Observation<float> overflow{widest};
  EXPECT_FALSE(widen(overflow, {.bits = 2, .symmetric = true})) << "twice the largest float";
}

TEST(MovingAverage, EqualsTheDebiasedFormulaOver10000Steps) {
  for (double decay : {0.0, 0.5, 0.9, 0.99, 0.999, 0.9999}) {
    Random random(5);
    double range = -6, biased = 0;
    for (std::int64_t t = 1; t <= 10'000; ++t) {
      const double value = random.uniform(-1, 9);
      range = move_towards(range, value, debiased_weight(decay, t));
      biased = decay * biased + (1 - decay) * value;
      const double formula = biased / (1 - std::pow(decay, static_cast<double>(t)));
      ASSERT_NEAR(range, formula, 1e-10) << "decay " << decay << ", step " << t;
    }
  }
}

TEST(MovingAverage, FirstValueSetsTheRangeExactly) {
  for (double decay : {0.0, 0.5, 0.999, 0.9999999}) {
    EXPECT_EQ(debiased_weight(decay, 1), 1) << decay;
    EXPECT_EQ(move_towards(-6.0f, 1e-30f, debiased_weight(decay, 1)), 1e-30f);
  }
}

TEST(MovingAverage, FollowsAChangeAtTheDecaysPace) {
  double range = 0;
  std::int64_t t = 0;
  while (t < 20'000) range = move_towards(range, 1.0, debiased_weight(0.999, ++t));
  EXPECT_DOUBLE_EQ(range, 1);
  for (int i = 0; i < 1000; ++i) range = move_towards(range, 3.0, debiased_weight(0.999, ++t));
  EXPECT_NEAR(range, 3 - 2 * std::pow(0.999, 1000), 1e-6);
}

TEST(MovingAverage, WeightSettlesWhenCountingEnds) {
  EXPECT_EQ(static_cast<float>(kMaxUpdates) + 1, static_cast<float>(kMaxUpdates)) << "float32 cannot count further";
  EXPECT_NE(static_cast<float>(kMaxUpdates - 1), static_cast<float>(kMaxUpdates));
  EXPECT_EQ(debiased_weight(0.999, kMaxUpdates), 1 - 0.999);
  EXPECT_EQ(debiased_weight(0.999, kMaxUpdates), debiased_weight(0.999, kMaxUpdates - 1));
}

}  // namespace
}  // namespace miniqat::quantize::range_training_test
