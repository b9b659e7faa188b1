#include "training/quantize/bit_allocation.h"

#include <gtest/gtest.h>

#include <limits>

namespace miniqat::training::bit_allocation_test {
namespace {

const std::vector<std::int64_t> kWidths = {8, 4, 2};

TEST(PackedBytes, AreRoundedUp) {
  EXPECT_EQ(packed_bytes(3, 2), 1);
  EXPECT_EQ(packed_bytes(4, 2), 1);
  EXPECT_EQ(packed_bytes(5, 2), 2);
  EXPECT_EQ(packed_bytes(10, 3), 4);
}

TEST(PredictedLossIncrease, NeverFallsWithFewerBits) {
  const WidthCosts costs{.elements = 1, .loss_increase = {-0.5, 0.25, 0.125}};
  EXPECT_EQ(predicted_loss_increase(costs, 0), 0);
  EXPECT_EQ(predicted_loss_increase(costs, 1), 0.25);
  EXPECT_EQ(predicted_loss_increase(costs, 2), 0.25);
}

/// Steps from 8 to 4 bits and from 4 to 2, in loss a bit: a (10 elements) 0.02/40 and 0.5/20, b (30) 0.03/120 and
/// 0.27/60.
TEST(GreedyFront, TakesTheCheapestBitFirst) {
  const std::vector<WidthCosts> costs = {{.elements = 10, .loss_increase = {0, 0.02, 0.52}},
                                         {.elements = 30, .loss_increase = {0.01, 0.04, 0.31}}};
  const std::vector<FrontPoint> front = greedy_front(costs, kWidths);
  ASSERT_EQ(front.size(), 5u);
  EXPECT_FALSE(front[0].quantizer);
  const std::vector<std::size_t> order = {1, 0, 1, 0};
  const std::vector<std::int64_t> bits = {8, 4, 4, 2, 2}, totals = {320, 200, 160, 100, 80},
                                  bytes = {40, 25, 20, 13, 11};
  const std::vector<double> losses = {0.01, 0.04, 0.06, 0.33, 0.83};
  for (std::size_t i = 0; i < front.size(); ++i) {
    if (i > 0) {
      EXPECT_EQ(front[i].quantizer, order[i - 1]);
    }
    EXPECT_EQ(front[i].bits, bits[i]);
    EXPECT_EQ(front[i].total_bits, totals[i]);
    EXPECT_EQ(front[i].bytes, bytes[i]);
    EXPECT_NEAR(front[i].loss_increase, losses[i], 1e-12);
  }
  EXPECT_EQ(widths_at(front, 0, 2), (std::vector<std::int64_t>{8, 8}));
  EXPECT_EQ(widths_at(front, 3, 2), (std::vector<std::int64_t>{4, 2}));
  EXPECT_EQ(widths_at(front, 4, 2), (std::vector<std::int64_t>{2, 2}));
}

TEST(GreedyFront, OfStepsThatCostNothingTakesTheLargestFirst) {
  const std::vector<WidthCosts> costs = {{.elements = 1, .loss_increase = {0, 0, 0}},
                                         {.elements = 5, .loss_increase = {0, -1, -2}}};
  const std::vector<FrontPoint> front = greedy_front(costs, kWidths);
  EXPECT_EQ(front[1].quantizer, 1u);
  EXPECT_EQ(front[2].quantizer, 1u);
  EXPECT_EQ(front[4].loss_increase, 0);
}

TEST(GreedyFront, LeavesALossThatIsNoNumberForLast) {
  for (const double odd : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const std::vector<WidthCosts> costs = {{.elements = 1000, .loss_increase = {0, odd, odd}},
                                           {.elements = 1, .loss_increase = {0, 5, 50}}};
    const std::vector<FrontPoint> front = greedy_front(costs, kWidths);
    EXPECT_EQ(widths_at(front, 2, 2), (std::vector<std::int64_t>{8, 2}));
    EXPECT_EQ(front[2].loss_increase, 50);
  }
}

/// As TakesTheCheapestBitFirst. Of 150 bits the walk keeps 100 behind its step from 160: a goes back to 8 bits.
TEST(Widened, GivesBackTheRestOfTheBudget) {
  const std::vector<WidthCosts> costs = {{.elements = 10, .loss_increase = {0, 0.02, 0.52}},
                                         {.elements = 30, .loss_increase = {0.01, 0.04, 0.31}}};
  const auto within = [&](std::int64_t most) {
    return widened(costs, kWidths, {4, 2},
                   [=](std::span<const std::int64_t> widths) { return 10 * widths[0] + 30 * widths[1] <= most; });
  };
  using Widths = std::vector<std::int64_t>;
  EXPECT_EQ(within(100), (Widths{4, 2}));
  EXPECT_EQ(within(139), (Widths{4, 2}));
  EXPECT_EQ(within(150), (Widths{8, 2}));
  EXPECT_EQ(within(160), (Widths{4, 4})) << "0.27/60 for b is a greater gain than 0.02/40 for a";
  EXPECT_EQ(within(200), (Widths{8, 4}));
  EXPECT_EQ(within(1000), (Widths{8, 8}));
}

TEST(Widened, PassesAWidthThatGainsNothing) {
  const std::vector<WidthCosts> costs = {{.elements = 1, .loss_increase = {0, 1, 1}},
                                         {.elements = 1, .loss_increase = {0, 0.1, 0.2}}};
  const auto chosen = widened(costs, kWidths, {2, 2}, [](auto widths) { return widths[0] + widths[1] <= 10; });
  EXPECT_EQ(chosen, (std::vector<std::int64_t>{8, 2}));
}

TEST(Widened, GivesBitsThatSeemToGainNothing) {
  const std::vector<WidthCosts> costs = {{.elements = 4, .loss_increase = {0, 0, 0}},
                                         {.elements = 1, .loss_increase = {0, 0, 0}}};
  const auto chosen = widened(costs, kWidths, {2, 2}, [](auto widths) { return 4 * widths[0] + widths[1] <= 24; });
  EXPECT_EQ(chosen, (std::vector<std::int64_t>{4, 8})) << "the smaller one first";
}

TEST(PredictedLossIncrease, OfAllIsTheSum) {
  const std::vector<WidthCosts> costs = {{.elements = 10, .loss_increase = {0, 0.02, 0.52}},
                                         {.elements = 30, .loss_increase = {0.01, 0.04, 0.31}}};
  EXPECT_NEAR(predicted_loss_increase(costs, kWidths, std::vector<std::int64_t>{4, 8}), 0.03, 1e-12);
  EXPECT_NEAR(predicted_loss_increase(costs, kWidths, std::vector<std::int64_t>{2, 2}), 0.83, 1e-12);
}

TEST(GreedyFront, OfNothingIsAPoint) {
  const std::vector<FrontPoint> front = greedy_front({}, kWidths);
  ASSERT_EQ(front.size(), 1u);
  EXPECT_EQ(front[0].total_bits, 0);
}

}  // namespace
}  // namespace miniqat::training::bit_allocation_test
