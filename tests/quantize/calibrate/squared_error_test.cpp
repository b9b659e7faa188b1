#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/tensors/random.h"
#include "quantize/calibrate/histogram.h"

namespace miniqat::quantize::squared_error_test {
namespace {

using Values = std::vector<WeightedValue>;

Values random_values(std::size_t n, std::uint64_t seed, const std::function<double(Random&)>& draw) {
  Random random(seed);
  Values values(n);
  for (WeightedValue& one : values) one = {static_cast<float>(draw(random)), static_cast<double>(1 + random.below(3))};
  return values;
}

double bell(Random& random) {
  double sum = 0;
  for (int i = 0; i < 12; ++i) sum += random.uniform(-0.5f, 0.5f);
  return sum;
}

/// One value after the other.
double direct_error(const Values& values, const Affine<float>& grid) {
  double error = 0;
  for (const WeightedValue& one : values)
    error += one.count * std::pow(static_cast<double>(fake_quantize(grid, one.value)) - one.value, 2);
  return error;
}

std::vector<GridOptions> grids() {
  std::vector<GridOptions> all;
  for (const int bits : {2, 3, 4, 8, 12, 16})
    for (const bool narrow : {false, true})
      for (const bool symmetric : {false, true}) all.push_back({bits, narrow, symmetric});
  return all;
}

std::string text(const GridOptions& options) {
  return std::to_string(options.bits) + " bits" + (options.narrow_range ? " narrow" : "") +
         (options.symmetric ? " symmetric" : "");
}

TEST(SquaredError, IsTheSumOverTheValues) {
  const Range<float> ranges[] = {{-1, 1}, {-0.3f, 2}, {0, 1}, {-4, 0}, {0, 0}, {-1e-3f, 1e-3f}, {0, 100}};
  for (const std::size_t n : {0u, 1u, 2u, 50u, 3000u}) {
    const Values values = random_values(n, n, bell);
    const SquaredError error(values);
    for (const GridOptions& options : grids()) {
      for (const Range<float>& range : ranges) {
        const Affine<float> grid = grid_of(range, options);
        const double expected = direct_error(values, grid);
        EXPECT_NEAR(error.of(grid), expected, 1e-9 * static_cast<double>(n) + 1e-6 * expected)
            << n << " values, " << text(options) << " over [" << range.min << ", " << range.max << "]";
      }
    }
  }
}

/// The least error of all ranges [-i, j] / 200 of the values' own.
double least_of_many(const Values& values, Range<float> full, const GridOptions& options) {
  constexpr int kSteps = 200;
  const SquaredError error(values);
  double least = error.of(grid_of(full, options));
  for (int i = full.min == 0 ? kSteps : 1; i <= kSteps; ++i)
    for (int j = full.max == 0 ? kSteps : 1; j <= kSteps; ++j)
      least = std::min(least, error.of(grid_of(Range<float>{full.min * static_cast<float>(i) / kSteps,
                                                            full.max * static_cast<float>(j) / kSteps},
                                               options)));
  return least;
}

struct Data {
  const char* name;
  Values values;
};

std::vector<Data> data() {
  return {{"bell", random_values(300, 1, bell)},
          {"shifted", random_values(200, 2, [](Random& random) { return bell(random) + 0.7; })},
          {"relu", random_values(300, 3, [](Random& random) { return std::max(0.0, bell(random)); })},
          {"negative", random_values(200, 4, [](Random& random) { return -std::abs(bell(random)); })},
          {"heavy", random_values(300, 5, [](Random& random) { return std::pow(bell(random), 3); })},
          {"nine", random_values(9, 6, bell)}};
}

TEST(LeastSquaresRange, IsAsGoodAsTryingManyRanges) {
  for (const Data& one : data()) {
    for (const int bits : {2, 3, 4, 6}) {
      for (const bool narrow : {false, true}) {
        const GridOptions options{.bits = bits, .narrow_range = narrow};
        const SquaredError error(one.values);
        const Range<float> range = least_squares_range(error, options);
        const double least = least_of_many(one.values, widen_to_zero(error.extremes()), options);
        EXPECT_LE(error.of(grid_of(range, options)), 1.03 * least) << one.name << ", " << text(options);
      }
    }
  }
}

TEST(LeastSquaresRange, LiesWithinTheValuesAroundZeroAndIsNeverWorse) {
  for (const Data& one : data()) {
    for (const GridOptions& options : grids()) {
      const SquaredError error(one.values);
      const Range<float> full = widen_to_zero(error.extremes());
      const Range<float> range = least_squares_range(error, options);
      EXPECT_LE(full.min, range.min) << one.name;
      EXPECT_LE(range.min, 0) << one.name;
      EXPECT_GE(range.max, 0) << one.name;
      EXPECT_GE(full.max, range.max) << one.name;
      EXPECT_LE(error.of(grid_of(range, options)), error.of(grid_of(full, options))) << one.name << text(options);
    }
  }
}

TEST(LeastSquaresRange, KnowsTheBestRangesOfTheBellCurve) {
  // The steps, in standard deviations, of the best uniform quantizers of 8, 16 and 32 levels (J. Max, "Quantizing for
  // minimum distortion", 1960, table II). On our grids 0 must be a level, which moves them by up to half a step.
  const SquaredError error(random_values(40'000, 11, bell));
  for (const auto& [bits, step] : {std::pair(3, 0.5860), std::pair(4, 0.3352), std::pair(5, 0.1881)}) {
    const Range<float> range = least_squares_range(error, {.bits = bits});
    EXPECT_NEAR((range.max - range.min) / static_cast<float>((1 << bits) - 1), step, 0.1 * step) << bits;
  }
}

TEST(LeastSquaresRange, GivesUpOneOutlierWhereStepsAreFewOnly) {
  Values values = random_values(2000, 12, bell);
  values.push_back({30, 1});
  const SquaredError error(values);
  EXPECT_LT(least_squares_range(error, {.bits = 2}).max, 4);
  EXPECT_GT(least_squares_range(error, {.bits = 8}).max, 20);
}

TEST(LeastSquaresRange, OfNothingOrZerosIsEmpty) {
  for (const Values& values : {Values{}, Values{{0, 5}}}) {
    const Range<float> range = least_squares_range(SquaredError(values), {.bits = 4});
    EXPECT_EQ(range.min, 0);
    EXPECT_EQ(range.max, 0);
  }
}

TEST(LeastSquaresRange, SymmetricRangesHaveOneEndToFind) {
  const GridOptions options{.bits = 3, .narrow_range = true, .symmetric = true};
  const Values values = random_values(500, 13, [](Random& random) { return bell(random) + 0.5; });
  const SquaredError error(values);
  const Range<float> full = widen_symmetric(widen_to_zero(error.extremes()), options);
  double least = error.of(grid_of(full, options));
  for (int i = 1; i < 1000; ++i)
    least = std::min(
        least,
        error.of(grid_of(Range<float>{full.min * static_cast<float>(i) / 1000, full.max * static_cast<float>(i) / 1000},
                         options)));
  EXPECT_LE(error.of(grid_of(least_squares_range(error, options), options)), 1.01 * least);
}

}  // namespace
}  // namespace miniqat::quantize::squared_error_test
