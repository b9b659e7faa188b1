#include "quantize/affine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/quantize/grid_options.h"

namespace miniqat::quantize::affine_test {
namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

template <class T>
class AffineTest : public ::testing::Test {};
using FloatTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AffineTest, FloatTypes);

/// Ranges around, beside and far from 0, as a training run meets them.
template <class T>
std::vector<Range<T>> some_ranges() {
  std::vector<Range<T>> ranges = {{0, 6},       {-6, 6}, {-6, 0}, {-1, 1}, {T(-0.3), T(1e-3)},
                                  {-1e-6, 1e6}, {1, 2},  {-2, -1}};
  std::mt19937 random(7);
  std::uniform_real_distribution<double> exponent(-20, 20);
  for (int i = 0; i < 200; ++i) {
    const T low = static_cast<T>(-std::exp(exponent(random)));
    ranges.push_back({low, static_cast<T>(-low * std::exp(exponent(random) / 5))});
  }
  return ranges;
}

TYPED_TEST(AffineTest, NudgesOntoKnownGrids) {
  using T = TypeParam;
  const Affine<T> wide = nudge<T>({-10, T(53.75)}, {.bits = 8});
  EXPECT_EQ(wide.scale, T(0.25));
  EXPECT_EQ(wide.zero_point, 40);
  EXPECT_EQ(wide.quant_min, 0);
  EXPECT_EQ(wide.quant_max, 255);
  EXPECT_EQ(wide.nudged_min, -10);
  EXPECT_EQ(wide.nudged_max, T(53.75));

  const Affine<T> narrow = nudge<T>({T(-10.1), T(53.4)}, {.bits = 8, .narrow_range = true});
  EXPECT_NEAR(narrow.scale, 0.25, 1e-7);
  EXPECT_EQ(narrow.quant_min, 1);
  EXPECT_EQ(narrow.zero_point, 41) << "1 + 40.4";
  EXPECT_NEAR(narrow.nudged_min, -10, 1e-5);
  EXPECT_NEAR(narrow.nudged_max, 53.5, 1e-5);

  const Affine<T> negative = nudge<T>({-3, 0}, {.bits = 2});
  EXPECT_EQ(negative.zero_point, 3);
  EXPECT_EQ(negative.nudged_min, -3);
  EXPECT_EQ(negative.nudged_max, 0);
}

TYPED_TEST(AffineTest, ZeroPointRoundsHalfAwayFromZero) {
  using T = TypeParam;
  EXPECT_EQ((nudge<T>({T(-0.5), T(254.5)}, {.bits = 8}).zero_point), 1);
  EXPECT_EQ((nudge<T>({T(-2.5), T(252.5)}, {.bits = 8}).zero_point), 3);
  EXPECT_EQ((nudge<T>({T(-2.5), T(251.5)}, {.bits = 8, .narrow_range = true}).zero_point), 4);
}

TYPED_TEST(AffineTest, TiesGoUp) {
  using T = TypeParam;
  const Affine<T> grid = nudge<T>({-10, T(53.75)}, {.bits = 8});
  EXPECT_EQ(fake_quantize(grid, T(0.125)), T(0.25));
  EXPECT_EQ(fake_quantize(grid, T(0.375)), T(0.5));
  EXPECT_EQ(fake_quantize(grid, T(-0.125)), T(0));
  EXPECT_EQ(fake_quantize(grid, T(-0.375)), T(-0.25));
  EXPECT_EQ(fake_quantize(grid, T(0.1249)), T(0));
  EXPECT_EQ(quantize(grid, T(0.125)), 41);
}

TYPED_TEST(AffineTest, ClampsAndKeepsNan) {
  using T = TypeParam;
  const Affine<T> grid = nudge<T>({-10, T(53.75)}, {.bits = 8});
  EXPECT_EQ(fake_quantize(grid, T(1e30)), T(53.75));
  EXPECT_EQ(fake_quantize(grid, kInfinity<T>), T(53.75));
  EXPECT_EQ(fake_quantize(grid, -kInfinity<T>), -10);
  EXPECT_TRUE(std::isnan(fake_quantize(grid, kNan<T>)));
  EXPECT_TRUE(gradient_passes(grid, T(-10)));
  EXPECT_TRUE(gradient_passes(grid, T(53.75)));
  EXPECT_FALSE(gradient_passes(grid, std::nextafter(T(-10), T(-11))));
  EXPECT_FALSE(gradient_passes(grid, std::nextafter(T(53.75), T(54))));
  EXPECT_FALSE(gradient_passes(grid, kNan<T>));
}

TYPED_TEST(AffineTest, IsTheFormulaToTheLastBit) {
  using T = TypeParam;
  std::mt19937 random(11);
  std::uniform_real_distribution<double> spread(-0.3, 1.3);
  for (const GridOptions& options : testing::all_options()) {
    for (const Range<T>& range : some_ranges<T>()) {
      const Affine<T> grid = grid_of(range, options);
      for (int i = 0; i < 20; ++i) {
        const T x = static_cast<T>(range.min + spread(random) * (double(range.max) - double(range.min)));
        const T clamped = std::min(std::max(x, grid.nudged_min), grid.nudged_max);
        const T q = grid.quant_min + std::floor((clamped - grid.nudged_min) / grid.scale + T(0.5));
        ASSERT_EQ(quantize(grid, x), q) << x << " in [" << range.min << ", " << range.max << "], bits " << options.bits;
        ASSERT_EQ(fake_quantize(grid, x), (q - grid.zero_point) * grid.scale);
        ASSERT_GE(q, grid.quant_min);
        ASSERT_LE(q, grid.quant_max);
      }
    }
  }
}

TYPED_TEST(AffineTest, RealZeroIsExact) {
  using T = TypeParam;
  for (const GridOptions& options : testing::all_options()) {
    for (const Range<T>& range : some_ranges<T>()) {
      const Affine<T> grid = grid_of(range, options);
      for (T zero : {T(0), -T(0)}) {
        ASSERT_EQ(quantize(grid, zero), grid.zero_point) << range.min << " " << range.max << " " << options.bits;
        ASSERT_FALSE(std::signbit(fake_quantize(grid, zero)));
        ASSERT_EQ(fake_quantize(grid, zero), 0);
      }
    }
  }
}

TYPED_TEST(AffineTest, GridValuesMapToThemselves) {
  using T = TypeParam;
  for (const GridOptions& options : testing::all_options()) {
    for (const Range<T>& range : {Range<T>{0, 6}, {T(-1.7), T(0.9)}, {T(-1e-9), T(3e-8)}, {-123456, 3}}) {
      const Affine<T> grid = grid_of(range, options);
      for (T q = grid.quant_min; q <= grid.quant_max; ++q) {
        const T y = dequantize(grid, q);
        ASSERT_EQ(quantize(grid, y), q) << "bits " << options.bits << ", range " << range.min << " " << range.max;
        ASSERT_EQ(fake_quantize(grid, y), y);
      }
    }
  }
}

TYPED_TEST(AffineTest, EmptyRangeGivesZeroEverywhere) {
  using T = TypeParam;
  const T tiny = std::numeric_limits<T>::denorm_min();
  for (const GridOptions& options : testing::all_options()) {
    for (const Range<T>& range : {Range<T>{0, 0}, {-tiny, tiny}, {0, std::numeric_limits<T>::min() / 4}}) {
      const Affine<T> grid = grid_of(range, options);
      ASSERT_TRUE(grid.empty());
      for (T x : {T(0), T(1), T(-1e30), tiny, kInfinity<T>, -kInfinity<T>}) {
        ASSERT_EQ(fake_quantize(grid, x), 0);
        ASSERT_TRUE(gradient_passes(grid, x));
      }
      ASSERT_TRUE(std::isnan(fake_quantize(grid, kNan<T>)));
    }
  }
}

TYPED_TEST(AffineTest, SmallestUsableRangesWork) {
  using T = TypeParam;
  for (const GridOptions& options : testing::all_options()) {
    const T max = std::numeric_limits<T>::min() * std::ldexp(T(1), options.bits + 1);
    const Affine<T> grid = grid_of<T>({-max, max}, options);
    ASSERT_FALSE(grid.empty());
    for (T x : {-max, T(0), max / 3, max}) {
      ASSERT_NEAR(fake_quantize(grid, x) / max, x / max, 1.01 * grid.scale / max) << options.bits;
      ASSERT_FALSE(std::isnan(fake_quantize(grid, x)));
    }
  }
}

TYPED_TEST(AffineTest, ImpossibleRangesGiveNan) {
  using T = TypeParam;
  const T huge = std::numeric_limits<T>::max();
  for (const Range<T>& range : {Range<T>{kNan<T>, 1},
                                {-1, kNan<T>},
                                {kNan<T>, kNan<T>},
                                {0, kInfinity<T>},
                                {-kInfinity<T>, 0},
                                {-kInfinity<T>, kInfinity<T>},
                                {-huge, huge}}) {
    for (const GridOptions& options : testing::all_options()) {
      const Affine<T> grid = grid_of(range, options);
      ASSERT_FALSE(grid.empty());
      for (T x : {T(0), T(1), kInfinity<T>})
        ASSERT_TRUE(std::isnan(fake_quantize(grid, x))) << range.min << " " << range.max << " " << options.bits;
    }
  }
}

TYPED_TEST(AffineTest, WidensToZeroAlsoWhenInverted) {
  using T = TypeParam;
  const auto expect = [](Range<T> range, T min, T max) {
    const Range<T> widened = widen_to_zero(range);
    EXPECT_EQ(widened.min, min);
    EXPECT_EQ(widened.max, max);
  };
  expect({1, 2}, 0, 2);
  expect({-2, -1}, -2, 0);
  expect({-2, 3}, -2, 3);
  expect({2, 1}, 0, 1);
  expect({1, -1}, 0, 0);
  expect({kInfinity<T>, -kInfinity<T>}, 0, 0);
  EXPECT_TRUE(std::isnan(widen_to_zero<T>({kNan<T>, 0}).min));
  EXPECT_TRUE(std::isnan(widen_to_zero<T>({0, kNan<T>}).max));
}

TYPED_TEST(AffineTest, SymmetricWideningPutsZeroInTheMiddle) {
  using T = TypeParam;
  const Range<T> narrow = widen_symmetric<T>({-1, 3}, {.bits = 8, .narrow_range = true});
  EXPECT_EQ(narrow.min, -3);
  EXPECT_EQ(narrow.max, 3);
  const Range<T> from_min = widen_symmetric<T>({-4, 3}, {.bits = 3});
  EXPECT_EQ(from_min.min, -4);
  EXPECT_EQ(from_min.max, 3) << "r = -6/8: 4 * 0.75";
  const Range<T> from_max = widen_symmetric<T>({-1, 3}, {.bits = 3});
  EXPECT_EQ(from_max.min, -4);
  EXPECT_EQ(from_max.max, 3);
  for (const GridOptions& options : testing::all_options()) {
    if (!options.symmetric) continue;
    for (const Range<T>& range : some_ranges<T>())
      ASSERT_EQ(grid_of(range, options).zero_point, T(1 << (options.bits - 1))) << range.min << " " << range.max;
  }
}

TYPED_TEST(AffineTest, PowersOfTwoByHand) {
  using T = TypeParam;
  const auto grid = [](T min, T max, GridOptions options) {
    options.power_of_two = true;
    return grid_of<T>({min, max}, options);
  };
  const auto expect = [](const Affine<T>& found, double scale, int zero_point, double nudged_min, double nudged_max) {
    EXPECT_EQ(found.scale, T(scale));
    EXPECT_EQ(found.zero_point, T(zero_point));
    EXPECT_EQ(found.nudged_min, T(nudged_min));
    EXPECT_EQ(found.nudged_max, T(nudged_max));
  };
  // The range itself where it is 2^k wide, up to one step.
  expect(grid(0, 1, {.bits = 8}), 1 / 256.0, 0, 0, 255 / 256.0);
  expect(grid(0, T(1.001), {.bits = 8}), 1 / 128.0, 0, 0, 255 / 128.0);
  expect(grid(0, 6, {.bits = 4}), 0.5, 0, 0, 7.5);
  expect(grid(-1, 1, {.bits = 8, .narrow_range = true, .symmetric = true}), 1 / 128.0, 128, -127 / 128.0, 127 / 128.0);
  expect(grid(-1, T(0.3), {.bits = 3, .symmetric = true}), 0.25, 4, -1, 0.75);
  // -1, 0, 1: two steps, which are a power of two themselves.
  expect(grid(-1, 1, {.bits = 2, .narrow_range = true, .symmetric = true}), 1, 2, -1, 1);
  expect(grid(T(-0.75), T(3), {.bits = 4}), 0.25, 3, -0.75, 3);
  expect(grid(-1, 4, {.bits = 4}), 0.5, 3, -1.5, 6);
}

TYPED_TEST(AffineTest, APowerOfTwoIsTheNextAndKeepsItsGrid) {
  using T = TypeParam;
  for (const GridOptions& options : testing::all_options()) {
    if (!options.power_of_two) continue;
    GridOptions any = options;
    any.power_of_two = false;
    for (const Range<T>& range : some_ranges<T>()) {
      const Affine<T> grid = grid_of(range, options), exact = grid_of(range, any);
      int exponent = 0;
      ASSERT_EQ(std::frexp(grid.scale, &exponent), T(0.5)) << grid.scale;
      ASSERT_LT(grid.scale, 2 * exact.scale * T(1.000001)) << range.min << " " << range.max;
      // L / (quant_max - quant_min) of the exact one at least.
      ASSERT_GE(grid.scale, exact.scale * (1 - 1 / T(1 << (options.bits - 1)))) << range.min << " " << range.max;
      const Affine<T> again = grid_of<T>({grid.nudged_min, grid.nudged_max}, options);
      ASSERT_EQ(again.scale, grid.scale) << range.min << " " << range.max << ", " << options.bits << " bits";
      ASSERT_EQ(again.zero_point, grid.zero_point) << range.min << " " << range.max << ", " << options.bits << " bits";
    }
  }
}

TYPED_TEST(AffineTest, FloorAgreesWithTheStandardLibrary) {
  using T = TypeParam;
  for (int whole = 0; whole <= (1 << 17); whole += whole < 300 ? 1 : 97) {
    const T at = static_cast<T>(whole);
    for (T v : {at, std::nextafter(at, T(1e9)), at + T(0.25), at + T(0.5), at + T(0.75), std::nextafter(at + 1, T(0))})
      ASSERT_EQ(floor_positive(v), std::floor(v)) << v;
  }
  EXPECT_TRUE(std::isnan(floor_positive(kNan<T>)));
}

/// Every range [-m, m] has its zero point on a tie, whatever m / scale is rounded to.
TYPED_TEST(AffineTest, TiesOfTheZeroPointGoAwayFromZeroAtEveryScale) {
  using T = TypeParam;
  std::mt19937 random(5);
  std::uniform_real_distribution<double> exponent(-30, 30);
  std::vector<T> ends = {T(0.001), T(0.1), T(1), T(3), T(1e-20), T(1e20)};
  for (int i = 0; i < 500; ++i) ends.push_back(static_cast<T>(std::exp(exponent(random))));
  for (int bits = 2; bits <= 16; ++bits)
    for (const T m : ends) {
      ASSERT_EQ(grid_of<T>({-m, m}, {.bits = bits}).zero_point, T(1 << (bits - 1))) << bits << " bits, " << m;
      const Affine<T> narrow = grid_of<T>({-m, m}, {.bits = bits, .narrow_range = true});
      ASSERT_EQ(narrow.zero_point, T(1 << (bits - 1))) << bits << " bits, " << m << ", in the middle without a tie";
    }
}

/// Ties elsewhere: range [-k - 1/2, n - k - 1/2] in units of any size that leaves the ends exact.
TYPED_TEST(AffineTest, TiesOfTheZeroPointAreFoundAllOverTheGrid) {
  using T = TypeParam;
  for (int bits = 2; bits <= 16; ++bits) {
    const int levels = (1 << bits) - 1;
    for (int k = 0; k < levels; k += 1 + k / 5)
      for (const T unit : {T(1), T(0.25), T(7), T(11) / 1024, T(127) * 65536}) {
        const Range<T> range = {-(k + T(0.5)) * unit, (levels - k - T(0.5)) * unit};
        ASSERT_EQ(grid_of(range, {.bits = bits}).zero_point, T(k + 1)) << bits << " bits, " << k << " " << unit;
      }
  }
}

/// Far from a tie both ways to write the formula agree.
TYPED_TEST(AffineTest, ZeroPointIsTheNearestInteger) {
  using T = TypeParam;
  for (const GridOptions& options : testing::all_options())
    for (const Range<T>& range : some_ranges<T>()) {
      const Affine<T> grid = grid_of(range, {options.bits, options.narrow_range, false});
      const Range<T> wide = widen_to_zero(range);
      const double steps = -static_cast<double>(wide.min) / (static_cast<double>(wide.max) - wide.min) *
                           (grid.quant_max - grid.quant_min);
      ASSERT_LE(std::abs(grid.quant_min + steps - grid.zero_point), 0.5 + 1e-9) << range.min << " " << range.max;
    }
}

/// The reference backend in double, given ranges that float holds, lands on the same integers.
TEST(Affine, FloatAndDoubleAgreeOnTheZeroPoint) {
  for (const GridOptions& options : testing::all_options())
    for (const Range<float>& range : some_ranges<float>()) {
      const GridOptions plain = {options.bits, options.narrow_range, false};
      ASSERT_EQ(double{grid_of(range, plain).zero_point},
                grid_of(Range<double>{range.min, range.max}, plain).zero_point)
          << range.min << " " << range.max << " " << options.bits;
    }
}

}  // namespace
}  // namespace miniqat::quantize::affine_test
