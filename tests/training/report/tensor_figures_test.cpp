// The numbers of a tensor and their integers, counted.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "core/tensors/random.h"
#include "training/report/layer_figures.h"

namespace miniqat::training::tensor_figures_test {
namespace {

quantize::QuantizerRange quantizer(int bits, bool narrow, std::vector<quantize::Range<float>> ranges) {
  return {.quantizer = "q",
          .attributes = {.bits = bits, .narrow_range = narrow, .per_channel = ranges.size() > 1},
          .is_weights = true,
          .ranges = std::move(ranges)};
}

Tensor random_numbers(std::int64_t count, float deviation) {
  Random random(3);
  Tensor x(Shape{count}, DType::kFloat32);
  for (std::int64_t i = 0; i < count; ++i) x.data<float>()[i] = deviation * static_cast<float>(random.normal());
  return x;
}

/// By the definition, number by number.
TEST(TensorFigures, CountIntegersClippedAndNoise) {
  const Tensor x = Tensor::from<float>({6}, {-2, -1, 0, 0.4f, 1, 1.5f});
  // 2 bits over [-1, 2]: scale 1, the integers 0..3 stand for -1, 0, 1, 2.
  TensorCounter counter(quantizer(2, false, {{-1, 2}}));
  counter.add(x, 6);
  const TensorFigures figures = counter.finish();
  EXPECT_EQ(figures.integers, (std::vector<std::int64_t>{2, 2, 1, 1}));
  EXPECT_EQ(figures.clipped, 1) << "-2";
  EXPECT_EQ(figures.unused, 0);
  EXPECT_EQ(figures.values, 6);
  EXPECT_EQ(figures.min, -2);
  EXPECT_EQ(figures.max, 1.5f);
  // -2 becomes -1, 0.4 becomes 0, 1.5 (a tie, upwards) becomes 2.
  EXPECT_NEAR(figures.noise.noise, 1 + 0.16 + 0.25, 1e-6);
  EXPECT_NEAR(figures.noise.signal, 4 + 1 + 0.16 + 1 + 2.25, 1e-6);
  EXPECT_NEAR(*figures.noise.decibels(), 10 * std::log10(8.41 / 1.41), 1e-6);
}

TEST(TensorFigures, LeaveNanOutAndClampInfinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  TensorCounter counter(quantizer(2, false, {{-1, 2}}));
  counter.add(Tensor::from<float>({4}, {std::nanf(""), infinity, -infinity, 0}), 4);
  const TensorFigures figures = counter.finish();
  EXPECT_EQ(figures.integers, (std::vector<std::int64_t>{1, 1, 0, 1}));
  EXPECT_EQ(figures.nan, 1);
  EXPECT_EQ(figures.values, 3);
  EXPECT_EQ(figures.clipped, 2);
  EXPECT_EQ(figures.floats.below + figures.floats.above, 2);
  EXPECT_FALSE(figures.noise.decibels());
  EXPECT_TRUE(float_figures(Tensor::from<float>({2}, {1, infinity})).floats.counts.empty());
}

TEST(TensorFigures, HaveAtMostFifteenBarsAtFourNarrowBits) {
  TensorCounter counter(quantizer(4, true, {{-1, 1}}));
  counter.add(random_numbers(5000, 0.5f), 5000);
  const TensorFigures figures = counter.finish();
  EXPECT_EQ(figures.integers.size(), 15u);
  EXPECT_EQ(figures.quant_min, 1);
  EXPECT_EQ(figures.quant_max, 15);
}

/// The area over an integer's bar is that of the numbers that become it; the ends also take what is clipped.
TEST(TensorFigures, BinsAddUpToTheIntegers) {
  for (const int bits : {2, 3, 4, 5, 6, 7, 8, 10}) {
    TensorCounter counter(quantizer(bits, bits % 2 == 0, {{-0.9f, 1.2f}}));
    const Tensor x = random_numbers(20000, 0.6f);
    counter.add(x, 20000);
    const TensorFigures figures = counter.finish();
    const Bins& bins = figures.floats;
    EXPECT_EQ(std::accumulate(bins.counts.begin(), bins.counts.end(), bins.below + bins.above), 20000) << bits;
    EXPECT_EQ(std::accumulate(figures.integers.begin(), figures.integers.end(), std::int64_t{0}), 20000) << bits;
    EXPECT_LE(figures.integers.size(), 256u) << bits;
    if (figures.integers_per_count > 1) continue;
    const auto per_integer = static_cast<std::int64_t>(1 / bins.width);
    const auto before =
        static_cast<std::int64_t>((static_cast<double>(figures.quant_min) - 0.5 - bins.first) / bins.width);
    for (std::size_t q = 1; q + 1 < figures.integers.size(); ++q) {
      const auto first = bins.counts.begin() + before + static_cast<std::int64_t>(q) * per_integer;
      EXPECT_EQ(std::accumulate(first, first + per_integer, std::int64_t{0}), figures.integers[q]) << bits << ", " << q;
    }
  }
}

TEST(TensorFigures, UseEachChannelsOwnGrid) {
  TensorCounter counter(quantizer(2, true, {{-1, 1}, {-10, 10}}));
  counter.add(Tensor::from<float>({2, 2}, {1, 10, 0.6f, 0.6f}), 4);
  const TensorFigures figures = counter.finish();
  // 1, 10 and 0.6 on the first grid are its last integer, 0.6 on the second is 0.
  EXPECT_EQ(figures.integers, (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(figures.unused, 1);
  EXPECT_EQ(figures.clipped, 0);
}

TEST(NoiseSum, HasNoDecibelsWithoutNoise) {
  NoiseSum sum;
  EXPECT_FALSE(sum.decibels());
  sum.add(1, 1);
  EXPECT_FALSE(sum.decibels());
  sum.add(0, 0.1);
  EXPECT_NEAR(*sum.decibels(), 20, 1e-9);
}

TEST(FloatFigures, CountAll) {
  const FloatFigures figures = float_figures(random_numbers(1000, 1));
  EXPECT_EQ(std::accumulate(figures.floats.counts.begin(), figures.floats.counts.end(), std::int64_t{0}), 1000);
  EXPECT_GT(figures.floats.counts.back(), 0);
  const FloatFigures flat = float_figures(Tensor::from<float>({3}, {2, 2, 2}));
  EXPECT_EQ(flat.floats.counts[0], 3);
}

}  // namespace
}  // namespace miniqat::training::tensor_figures_test
