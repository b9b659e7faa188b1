#include "optim/log_adam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "optim/adam.h"
#include "optim/sgd.h"
#include "quantize/affine.h"
#include "tests/errors.h"
#include "tests/optim/trainee.h"

namespace miniqat::optim::log_adam_test {
namespace {

using Floats = std::vector<float>;

using testing::Trainee;

TEST(LogAdam, NamesItsSlots) {
  EXPECT_TRUE(
      std::ranges::equal(LogAdam({}).slot_names(), std::array<std::string_view, 3>{"log_m", "log_v", "log_before"}));
}

TEST(LogAdam, ThreeStepsByHand) {
  const LogAdam optimizer({.learning_rate = 0.5, .beta1 = 0.5, .beta2 = 0.75});
  Trainee trainee({2});
  // g' = 3 * 2; m = 3, corrected 6; v = 0.25 * 36, corrected 36: the factor is exp(-0.5).
  double w = 2 * std::exp(-0.5);
  EXPECT_NEAR(trainee.all_after(optimizer, {3})[0], w, 1e-6);
  // g' = -6: m = -1.5, corrected by 1 - 1/4; v = 0.75 * 9 + 9 = 15.75, corrected by 1 - 9/16.
  const double second = (-1.5 / 0.75) / std::sqrt(15.75 * 16 / 7);
  const float turned = trainee.all_after(optimizer, {static_cast<float>(-6 / w)})[0];
  w *= std::exp(-0.5 * second);
  EXPECT_NEAR(turned, w, 1e-6);
  EXPECT_NEAR(trainee.slots[0].values<float>()[0], -1.5, 1e-5);
  EXPECT_NEAR(trainee.slots[1].values<float>()[0], 15.75, 1e-5);
  // g' = 0: m = -0.75, corrected by 7/8; v = 0.75 * 15.75, corrected by 37/64.
  const double third = (-0.75 / 0.875) / std::sqrt(0.75 * 15.75 * 64 / 37);
  EXPECT_NEAR(trainee.all_after(optimizer, {0})[0], w * std::exp(-0.5 * third), 1e-6);
}

// The range [-w, w] that is too wide: the gradient at both ends points outwards, and both come nearer to 0.
TEST(LogAdam, AFirstStepIsTheRateWhateverSignAndSize) {
  const LogAdam optimizer({.learning_rate = 0.25});
  const Floats start = {1, -1, 3e-6f, -7e8f, 2};
  const Floats after = Trainee(start).all_after(optimizer, {5, -5, 1e3f, 1e-4f, -1e-7f});
  const Floats directions = {-1, -1, -1, 1, 1};
  for (std::size_t i = 0; i < start.size(); ++i)
    EXPECT_NEAR(after[i] / start[i], std::exp(0.25f * directions[i]), 1e-5) << i;
}

// A range that is learned from a delay on has no gradient before; a graph may get it in the middle of a training.
TEST(LogAdam, StepsCountFromTheFirstGradientOn) {
  const LogAdam optimizer({.learning_rate = 0.01});
  Trainee early({1}, 0.5f), delayed({1}, 0.5f), added({1}, 0.5f);
  for (int step = 0; step < 2000; ++step) delayed.after(optimizer, 0);
  added.step = 2000;
  for (int step = 1; step <= 50; ++step) {
    const float g = std::sin(0.4f * static_cast<float>(step)) + 0.3f;
    const float w = early.after(optimizer, g);
    EXPECT_EQ(delayed.after(optimizer, g), w) << step;
    EXPECT_EQ(added.after(optimizer, g), w) << step;
  }
}

TEST(LogAdam, NeitherTheUnitNorTheSizeOfTheGradientMatters) {
  const LogAdam optimizer({.learning_rate = 0.01});
  Trainee plain({0.5f}), other_unit({500}), steeper({0.5f});
  for (int step = 1; step <= 50; ++step) {
    const float g = std::sin(0.4f * static_cast<float>(step)) + 0.3f;
    const float w = plain.all_after(optimizer, {g})[0];
    EXPECT_NEAR(other_unit.all_after(optimizer, {g / 1000})[0] / 1000, w, 1e-6) << step;
    EXPECT_NEAR(steeper.all_after(optimizer, {g * 1000})[0], w, 1e-6) << step;
  }
  EXPECT_LT(plain.value.values<float>()[0], 0.45f);
}

TEST(LogAdam, ZeroStaysZero) {
  Trainee trainee({0, -0.0f, 1});
  for (int step = 0; step < 5; ++step) trainee.all_after(LogAdam({.learning_rate = 100}), {1, -1e30f, 0});
  EXPECT_EQ(trainee.value.values<float>()[0], 0);
  EXPECT_EQ(trainee.value.values<float>()[1], 0);
  EXPECT_EQ(trainee.value.values<float>()[2], 1) << "no gradient, no step";
}

TEST(LogAdam, NoStepsMakeAnElementZeroOrInfiniteOrTurnItsSign) {
  constexpr float kLeast = std::numeric_limits<float>::min(), kMost = std::numeric_limits<float>::max();
  for (const double rate : {0.1, 30.0, 1e38})
    for (const double beta : {0.0, 0.5, 0.999}) {
      const LogAdam optimizer({.learning_rate = rate, .beta1 = beta, .beta2 = 0.1});
      const Floats start = {1, -1, kLeast, -kLeast, kMost, -kMost, 1e-20f, -1e20f};
      Trainee trainee(start);
      for (int step = 0; step < 300; ++step) {
        // One way, both ways, once and then never again, and steps that are too steep for float32's squares.
        const float size = step < 2 || step % 7 == 0 ? kMost : step % 3 == 0 ? 0 : 1e-30f;
        const float sign = step > 100 && step % 2 == 0 ? -1.0f : 1.0f;
        Floats gradient(start.size());
        for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = (i % 3 == 0 ? -sign : sign) * size;
        const Floats after = trainee.all_after(optimizer, gradient);
        for (std::size_t i = 0; i < start.size(); ++i) {
          ASSERT_TRUE(std::isnormal(after[i])) << after[i] << " at " << i << ", step " << step;
          ASSERT_GE(std::abs(after[i]), std::min(std::abs(start[i]), LogAdam::kLeast)) << i << ", step " << step;
          ASSERT_EQ(std::signbit(after[i]), std::signbit(start[i])) << i << ", step " << step;
          ASSERT_TRUE(std::isfinite(trainee.slots[0].values<float>()[i]) &&
                      std::isfinite(trainee.slots[1].values<float>()[i]));
        }
      }
    }
}

TEST(LogAdam, TheSmallestRangeHasAGridOfAnyBits) {
  Trainee trainee({-1, 1});
  const std::span<const float> ends = trainee.value.values<float>();
  for (int step = 0; step < 300; ++step) trainee.all_after(LogAdam({.learning_rate = 0.5}), {1 / ends[0], 1 / ends[1]});
  EXPECT_LT(ends[1], 2 * LogAdam::kLeast) << "as small as it may be";
  for (const int bits : {2, 8, 16})
    EXPECT_TRUE(std::isnormal(quantize::grid_of<float>({ends[0], ends[1]}, {.bits = bits}).scale)) << bits;
}

TEST(LogAdam, AStepBeyondFloat32IsNotDoneAndALaterOneIs) {
  Trainee trainee({2});
  EXPECT_EQ(trainee.all_after(LogAdam({.learning_rate = 1000}), {1})[0], 2);
  EXPECT_LT(trainee.all_after(LogAdam({.learning_rate = 0.5}), {1})[0], 1.5f);
}

TEST(LogAdam, TheScheduleMultipliesTheRate) {
  const LogAdam optimizer({.learning_rate = 0.5}, make_schedule("constant", {.warmup_steps = 2}));
  EXPECT_EQ(optimizer.learning_rate(1), 0.25);
  EXPECT_EQ(optimizer.learning_rate(2), 0.5);
  Trainee trainee({1});
  EXPECT_NEAR(trainee.all_after(optimizer, {1})[0], std::exp(-0.25), 1e-6);
  const float before = trainee.value.values<float>()[0];
  EXPECT_NEAR(trainee.all_after(optimizer, {1 / before})[0], before * std::exp(-0.5), 1e-6);
}

TEST(LogAdam, OptimizersOfWeightsGiveItTheirScheduleAndItsOwnRate) {
  const Schedule schedule = make_schedule("constant", {.warmup_steps = 4});
  const Adam adam({.learning_rate = 3, .schedule = schedule, .ranges = {.learning_rate = 0.5}});
  const Sgd sgd({.learning_rate = 3, .schedule = schedule, .ranges = {.learning_rate = 0.5}});
  const LogAdam alone({.learning_rate = 0.5}, schedule);
  for (const Optimizer* optimizer : {static_cast<const Optimizer*>(&adam), static_cast<const Optimizer*>(&sgd),
                                     static_cast<const Optimizer*>(&alone)}) {
    ASSERT_NE(optimizer->multiplicative(), nullptr);
    EXPECT_EQ(optimizer->multiplicative()->learning_rate(1), 0.125);
    EXPECT_EQ(optimizer->multiplicative()->learning_rate(9), 0.5);
    EXPECT_EQ(optimizer->multiplicative()->slot_names()[0], "log_m");
  }
}

TEST(LogAdam, OptionsOutOfRangeAreNamedWithTheirValue) {
  const auto expect_error = [](const LogAdamOptions& options, const std::string& part) {
    EXPECT_NE(testing::error_of([&] { LogAdam optimizer(options); }).find(part), std::string::npos) << part;
    EXPECT_NE(testing::error_of([&] { Sgd({.ranges = options}); }).find(part), std::string::npos) << part;
    EXPECT_NE(testing::error_of([&] { Adam({.ranges = options}); }).find(part), std::string::npos) << part;
  };
  expect_error({.learning_rate = -0.5}, "range_learning_rate must be a finite number >= 0, is -0.5");
  for (const double bad : {-1e-9, std::nan(""), HUGE_VAL, 1e39})
    expect_error({.learning_rate = bad}, "range_learning_rate");
  for (const double bad : {-0.1, 1.0, 1 - 1e-12, std::nan("")}) {
    expect_error({.beta1 = bad}, "beta1 must be in [0, 1)");
    expect_error({.beta2 = bad}, "beta2 must be in [0, 1)");
  }
  EXPECT_NO_THROW(LogAdam({.learning_rate = 0, .beta1 = 0, .beta2 = 0}));
}

}  // namespace
}  // namespace miniqat::optim::log_adam_test
