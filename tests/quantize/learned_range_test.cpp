// The gradients of learned ranges (quantize/range_gradient.h), by hand.

#include <gtest/gtest.h>

#include <vector>

#include "tests/quantize/quantizer_runner.h"

namespace miniqat::quantize::learned_range_test {
namespace {

using testing::Quantizer;
using testing::Way;
using LearnedRangeTest = testing::QuantizerTest;

INSTANTIATE_TEST_SUITE_P(Ways, LearnedRangeTest,
                         ::testing::Values(Way{Backend::kFast, DType::kFloat32},
                                           Way{Backend::kReference, DType::kFloat32},
                                           Way{Backend::kReference, DType::kFloat64}));

using Values = std::vector<double>;

TEST_P(LearnedRangeTest, LearnedRangesCountTheRoundingInside) {
  Quantizer quantizer = make({.bits = 2, .range = RangeKind::kLearned}, {5});
  quantizer.set_range({0}, {3});
  quantizer.step({-1, 0.25, 1.4, 2.5, 4}, true, true, {1, 2, 4, 8, 16});
  EXPECT_EQ(quantizer.y(), (Values{0, 0, 1, 3, 3}));
  EXPECT_EQ(quantizer.dx, (Values{0, 2, 4, 8, 0}));
  // dy (y - x): 2 * -0.25, 4 * -0.4, 8 * 0.5; the range is 3 wide.
  const double inside = (-0.5 - 1.6 + 4) / 3;
  EXPECT_NEAR(quantizer.d_min[0], 1 - inside, 1e-6);
  EXPECT_NEAR(quantizer.d_max[0], 16 + inside, 1e-6);
  EXPECT_EQ(quantizer.max(), Values{3}) << "only an optimizer moves it";
}

TEST_P(LearnedRangeTest, TheEndsOfALearnedSymmetricRangeShareItsDerivative) {
  Quantizer quantizer = make({.bits = 2, .narrow_range = true, .symmetric = true, .range = RangeKind::kLearned}, {5});
  quantizer.set_range({-1}, {1});
  quantizer.step({-2, -0.6, 0.3, 0.8, 3}, true, true, {1, 2, 4, 8, 16});
  EXPECT_EQ(quantizer.y(), (Values{-1, -1, 0, 1, 1}));
  // Inside: 2 * -0.4 + 4 * -0.3 + 8 * 0.2 = -0.4, over 2. So d_min = 1.2 and d_max = 15.8 if they were apart, and the
  // derivative after the logarithm of the width is 14.6.
  EXPECT_NEAR(quantizer.d_min[0], -7.3, 1e-5);
  EXPECT_NEAR(quantizer.d_max[0], 7.3, 1e-5);
}

TEST_P(LearnedRangeTest, TheEndsOfALearnedFullRangeDiffer) {
  Quantizer quantizer = make({.bits = 2, .symmetric = true, .range = RangeKind::kLearned}, {4});
  quantizer.set_range({-2}, {1});
  quantizer.step({-3, -1.75, 0.25, 3}, true, true, {1, 2, 4, 8});
  EXPECT_EQ(quantizer.y(), (Values{-2, -2, 0, 1}));
  // Inside: 2 * -0.25 + 4 * -0.25 = -1.5, over 3; -2 * (1 + 0.5) + 1 * (8 - 0.5) = 4.5.
  EXPECT_NEAR(quantizer.d_min[0], 4.5 / (2 * -2), 1e-5);
  EXPECT_NEAR(quantizer.d_max[0], 4.5 / 2, 1e-5);
}

TEST_P(LearnedRangeTest, LearnedRangesPerChannelEmptyOrNotYet) {
  Quantizer quantizer = make({.bits = 2, .per_channel = true, .range = RangeKind::kLearned}, {2, 2}, {2});
  quantizer.set_range({0, 0}, {3, 0});
  quantizer.step({1.25, 5, 4, -5}, true, true, {3, 2, 5, 4});
  EXPECT_NEAR(quantizer.d_min[0], 0.25, 1e-6);
  EXPECT_NEAR(quantizer.d_max[0], 5 - 0.25, 1e-6);
  EXPECT_EQ(quantizer.d_min[1], 0) << "of a range of zeros";
  EXPECT_EQ(quantizer.d_max[1], 0);
  quantizer.step({1.25, 5, 4, -5}, true, false, {3, 2, 5, 4});
  EXPECT_EQ(quantizer.d_min, (Values{0, 0})) << "it does not quantize yet";
  EXPECT_EQ(quantizer.d_max, (Values{0, 0}));
}

}  // namespace
}  // namespace miniqat::quantize::learned_range_test
