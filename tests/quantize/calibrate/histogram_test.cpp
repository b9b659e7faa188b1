#include "quantize/calibrate/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/tensors/random.h"

namespace miniqat::quantize::histogram_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Both signs, magnitudes of all orders, some zeros, some values often.
std::vector<float> mixed_values(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values;
  while (values.size() < n) {
    const double magnitude = std::exp2(random.uniform(-20, 12));
    switch (random.below(4)) {
      case 0:
        values.push_back(0);
        break;
      case 1:
        values.push_back(-3.5f);
        break;
      default:
        values.push_back(static_cast<float>(random.below(2) == 0 ? magnitude : -magnitude));
    }
  }
  return values;
}

Histogram histogram_of(const std::vector<float>& values) {
  Histogram histogram;
  EXPECT_TRUE(histogram.add(values));
  return histogram;
}

TEST(Histogram, BinsHoldEveryValueWithinA4096th) {
  std::vector<float> values = mixed_values(3000, 1);
  const Histogram histogram = histogram_of(values);
  EXPECT_EQ(histogram.count(), 3000);
  std::ranges::sort(values);
  EXPECT_EQ(histogram.extremes().min, values.front());
  EXPECT_EQ(histogram.extremes().max, values.back());
  std::size_t next = 0;
  float previous = -kInfinity;
  for (const WeightedValue& bin : histogram.values()) {
    ASSERT_GT(bin.value, previous);
    previous = bin.value;
    for (int i = 0; i < bin.count; ++i, ++next) {
      ASSERT_LT(next, values.size());
      ASSERT_NEAR(bin.value, values[next], std::abs(values[next]) / 4095);
    }
  }
  EXPECT_EQ(next, values.size());
}

TEST(Histogram, PercentilesAreThoseOfTheSortedValuesUpToABin) {
  for (const std::size_t n : {1u, 2u, 10u, 100u, 1000u, 5000u}) {
    std::vector<float> values = mixed_values(n, n);
    const Histogram histogram = histogram_of(values);
    std::ranges::sort(values);
    for (const double percent : {50.5, 60.0, 75.0, 90.0, 99.0, 99.9, 100.0}) {
      const auto left_out = static_cast<std::size_t>(std::round(static_cast<double>(n) * (100 - percent) * 10) / 1000);
      const float low = values[left_out], high = values[n - 1 - left_out];
      const Range<float> range = histogram.percentile(percent);
      EXPECT_LE(range.min, low) << n << " values, " << percent;
      EXPECT_GE(range.min, low - std::abs(low) / 2047) << n << " values, " << percent;
      EXPECT_GE(range.max, high) << n << " values, " << percent;
      EXPECT_LE(range.max, high + std::abs(high) / 2047) << n << " values, " << percent;
      EXPECT_GE(range.min, values.front());
      EXPECT_LE(range.max, values.back());
    }
  }
}

TEST(Histogram, OneOutlierIsLeftOutAndBlursNothing) {
  Random random(5);
  std::vector<float> values(20'000);
  for (float& value : values) value = random.uniform(0, 1);
  values[7] = 1e9f;
  values[8] = -1e9f;
  const Range<float> range = histogram_of(values).percentile(99.99);
  EXPECT_GE(range.min, 0);
  EXPECT_LT(range.min, 0.001f);
  EXPECT_GT(range.max, 0.999f);
  EXPECT_LE(range.max, 1);
  EXPECT_EQ(histogram_of(values).percentile(100).max, 1e9f);
}

TEST(Histogram, DoesNotDependOnTheOrder) {
  const std::vector<float> values = mixed_values(1000, 9);
  std::vector<float> reversed(values.rbegin(), values.rend());
  const Histogram once = histogram_of(values);
  Histogram parts;
  EXPECT_TRUE(parts.add(std::span(reversed).first(1)));
  EXPECT_TRUE(parts.add({}));
  EXPECT_TRUE(parts.add(std::span(reversed).subspan(1)));
  const auto a = once.values(), b = parts.values();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].value, b[i].value);
    EXPECT_EQ(a[i].count, b[i].count);
  }
}

TEST(Histogram, ReportsWhatIsNotFiniteAndLeavesItOut) {
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
    Histogram histogram;
    EXPECT_FALSE(histogram.add(std::vector<float>{1, bad, 2}));
    EXPECT_EQ(histogram.count(), 2);
    EXPECT_EQ(histogram.extremes().min, 1);
    EXPECT_EQ(histogram.extremes().max, 2);
  }
}

TEST(Histogram, HoldsTheEndsOfFloat) {
  constexpr float kLargest = std::numeric_limits<float>::max(), kTiny = std::numeric_limits<float>::denorm_min();
  const Histogram histogram = histogram_of({kLargest, -kLargest, kTiny, -kTiny, 0.0f, -0.0f});
  const Range<float> all = histogram.percentile(100);
  EXPECT_EQ(all.min, -kLargest);
  EXPECT_EQ(all.max, kLargest);
  double near_zero = 0;
  for (const WeightedValue& bin : histogram.values()) {
    EXPECT_TRUE(std::isfinite(bin.value));
    if (bin.value == 0) near_zero += bin.count;
  }
  EXPECT_EQ(near_zero, 4);
}

TEST(Histogram, OfNothingIsEmpty) {
  const Histogram histogram;
  EXPECT_TRUE(histogram.values().empty());
  EXPECT_EQ(histogram.percentile(99).min, 0);
  EXPECT_EQ(histogram.percentile(99).max, 0);
}

}  // namespace
}  // namespace miniqat::quantize::histogram_test
