#include "layers/kernels/column_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "tests/digest.h"
#include "tests/fewer_cases.h"

namespace miniqat::layers::column_statistics_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::array<std::int64_t, 10> kRows = {1, 2, 7, 63, 64, 65, 129, 257, 1000, 20000};
constexpr std::array<std::int64_t, 9> kChannels = {1, 2, 3, 7, 16, 100, 256, 257, 300};

struct Matrix {
  std::int64_t rows, channels;
  std::vector<float> values;

  Matrix(std::int64_t rows, std::int64_t channels, float mean, float deviation)
      : rows(rows), channels(channels), values(rows * channels) {
    Random random(mix(rows, channels));
    for (std::int64_t i = 0; i < rows * channels; ++i) {
      // Neighbouring channels are far apart.
      const float center = mean * static_cast<float>(1 + i % channels % 5);
      values[i] = center + deviation * random.normal();
    }
  }
  float& at(std::int64_t row, std::int64_t channel) { return values[row * channels + channel]; }
  std::string text() const { return std::to_string(rows) + " x " + std::to_string(channels); }
};

template <class Body>
void for_sizes(const Body& body) {
  testing::OneIn chosen(2);
  for (const std::int64_t rows : kRows)
    for (const std::int64_t channels : kChannels)
      if (rows * channels <= 2'000'000 && chosen()) body(rows, channels);
}

struct Statistics {
  std::vector<float> mean, variance, least, largest;
  bool has_nan = false;

  explicit Statistics(std::int64_t channels) : mean(channels), variance(channels), least(channels), largest(channels) {}
};

Statistics moments(const Matrix& m, bool ranged = true) {
  Statistics s(m.channels);
  column_moments(m.values.data(), m.rows, m.channels, s.mean.data(), s.variance.data(),
                 ranged ? s.least.data() : nullptr, ranged ? s.largest.data() : nullptr);
  return s;
}

Statistics ranges(const Matrix& m) {
  Statistics s(m.channels);
  s.has_nan = column_ranges(m.values.data(), m.rows * m.channels, m.channels, s.least.data(), s.largest.data());
  return s;
}

/// Of one channel, in double. `size` is the mean magnitude of the deviations' origin: what float32 can resolve.
struct Exact {
  double mean = 0, variance = 0;
  float least = kInfinity, largest = -kInfinity;

  Exact(const Matrix& m, std::int64_t channel) {
    const auto value = [&](std::int64_t row) { return m.values[row * m.channels + channel]; };
    for (std::int64_t r = 0; r < m.rows; ++r) {
      mean += value(r);
      least = std::min(least, value(r));
      largest = std::max(largest, value(r));
    }
    mean /= static_cast<double>(m.rows);
    for (std::int64_t r = 0; r < m.rows; ++r) variance += (value(r) - mean) * (value(r) - mean);
    variance /= static_cast<double>(m.rows);
  }
};

void expect_exact(const Matrix& m, double tolerance) {
  const Statistics s = moments(m), without = moments(m, false), r = ranges(m);
  EXPECT_FALSE(r.has_nan);
  for (std::int64_t c = 0; c < m.channels; ++c) {
    const Exact exact(m, c);
    const std::string where = m.text() + ", channel " + std::to_string(c);
    // To the last digits of a mean as large as this one, and to a small part of the deviation.
    ASSERT_NEAR(s.mean[c], exact.mean, 1e-7 * std::abs(exact.mean) + tolerance * std::sqrt(exact.variance)) << where;
    ASSERT_NEAR(s.variance[c], exact.variance, tolerance * exact.variance) << where;
    ASSERT_EQ(s.least[c], exact.least) << where;
    ASSERT_EQ(s.largest[c], exact.largest) << where;
    ASSERT_EQ(without.mean[c], s.mean[c]) << where;
    ASSERT_EQ(without.variance[c], s.variance[c]) << where;
    ASSERT_EQ(r.least[c], exact.least) << where;
    ASSERT_EQ(r.largest[c], exact.largest) << where;
  }
}

class ColumnStatistics : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_thread_count(GetParam()); }
};

TEST_P(ColumnStatistics, AreThoseOfLoopsInDouble) {
  for_sizes([](std::int64_t rows, std::int64_t channels) { expect_exact(Matrix(rows, channels, 0.5f, 1), 1e-5); });
}

TEST_P(ColumnStatistics, ALargeMeanCostsNoDigits) {
  for_sizes([](std::int64_t rows, std::int64_t channels) { expect_exact(Matrix(rows, channels, 1e4f, 1), 1e-5); });
  expect_exact(Matrix(1000, 16, -3e6f, 2), 1e-5);
}

TEST_P(ColumnStatistics, AConstantHasNoVariance) {
  for_sizes([](std::int64_t rows, std::int64_t channels) {
    const Statistics s = moments(Matrix(rows, channels, 0.1f, 0));
    for (std::int64_t c = 0; c < channels; ++c) {
      ASSERT_EQ(s.mean[c], 0.1f * static_cast<float>(1 + c % 5));
      // Not even a negative one.
      ASSERT_GE(s.variance[c], 0.0f);
      ASSERT_LE(s.variance[c], 1e-14f);
    }
  });
}

/// In every place of a few sizes: the first row, one in a block, and the rows behind the last whole block count alike.
TEST_P(ColumnStatistics, NaNsAndInfinitiesShowInTheirChannelAlone) {
  testing::OneIn chosen(5);
  for (const std::int64_t channels : {1, 3, 16, 100, 300})
    for (const std::int64_t rows : {1, 2, 63, 65, 300})
      for (const float value : {NAN, kInfinity, -kInfinity})
        for (const std::int64_t row : {std::int64_t{0}, rows / 2, rows - 1})
          for (const std::int64_t channel : {std::int64_t{0}, channels / 2, channels - 1}) {
            if (!chosen()) continue;
            Matrix m(rows, channels, 1, 1);
            m.at(row, channel) = value;
            const Statistics s = moments(m), r = ranges(m);
            const std::string where = m.text() + ", " + std::to_string(value) + " in row " + std::to_string(row);
            ASSERT_EQ(r.has_nan, std::isnan(value)) << where;
            for (std::int64_t c = 0; c < channels; ++c) {
              ASSERT_EQ(std::isfinite(s.mean[c]), c != channel) << where;
              ASSERT_EQ(std::isfinite(s.variance[c]), c != channel) << where;
              if (c == channel && std::isnan(value)) {
                ASSERT_TRUE(std::isnan(s.mean[c])) << where;
                ASSERT_TRUE(std::isnan(s.variance[c])) << where;
              }
              const Exact exact(m, c);
              if (c != channel || rows > 1 || !std::isnan(value)) {
                ASSERT_EQ(r.least[c], value == -kInfinity && c == channel ? -kInfinity : exact.least) << where;
                ASSERT_EQ(r.largest[c], value == kInfinity && c == channel ? kInfinity : exact.largest) << where;
              }
              if (c != channel || !std::isnan(value)) {
                ASSERT_EQ(s.least[c], exact.least) << where;
                ASSERT_EQ(s.largest[c], exact.largest) << where;
              }
            }
          }
}

TEST_P(ColumnStatistics, BothInfinitiesInAChannel) {
  for (const std::int64_t rows : {2, 64, 300}) {
    Matrix m(rows, 3, 1, 1);
    m.at(0, 1) = kInfinity;
    m.at(rows - 1, 1) = -kInfinity;
    const Statistics s = moments(m), r = ranges(m);
    EXPECT_TRUE(std::isnan(s.mean[1]));
    EXPECT_FALSE(std::isfinite(s.variance[1]));
    EXPECT_FALSE(r.has_nan);
    EXPECT_EQ(r.least[1], -kInfinity);
    EXPECT_EQ(r.largest[1], kInfinity);
  }
}

TEST_P(ColumnStatistics, RepeatBitwise) {
  const Matrix m(20000, 24, 3, 1);
  const Statistics first = moments(m), second = moments(m);
  EXPECT_EQ(first.mean, second.mean);
  EXPECT_EQ(first.variance, second.variance);
}

INSTANTIATE_TEST_SUITE_P(Threads, ColumnStatistics, ::testing::Values(1, 2, 3));

TEST(ColumnRanges, WithoutRowsThereIsNoRange) {
  float least = 0, largest = 0;
  EXPECT_FALSE(column_ranges(&least, 0, 1, &least, &largest));
  EXPECT_EQ(least, kInfinity);
  EXPECT_EQ(largest, -kInfinity);
}

TEST(ColumnStatisticsBits, DISABLED_Print) {
  testing::Digest digest;
  set_thread_count(2);
  for_sizes([&](std::int64_t rows, std::int64_t channels) {
    const Matrix m(rows, channels, 7, 1);
    for (const Statistics& s : {moments(m), ranges(m)})
      for (const std::vector<float>* values : {&s.mean, &s.variance, &s.least, &s.largest}) digest.add(*values);
  });
  digest.print();
}

TEST(ColumnStatisticsBits, AreTheSameOnEveryInstructionSet) {
  testing::expect_same_on_all_instruction_sets("ColumnStatisticsBits.DISABLED_Print");
}

}  // namespace
}  // namespace miniqat::layers::column_statistics_test
