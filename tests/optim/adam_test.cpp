#include "optim/adam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "tests/optim/trainee.h"
#include "tests/thread_counts.h"

namespace miniqat::optim::adam_test {
namespace {

using testing::Trainee;

TEST(Adam, NamesItsSlots) {
  EXPECT_TRUE(std::ranges::equal(Adam({}).slot_names(), std::array<std::string_view, 2>{"m", "v"}));
}

TEST(Adam, ThreeStepsByHand) {
  const Adam optimizer({.learning_rate = 0.5, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 1});
  Trainee trainee({3}, 1);
  // m = 1, corrected 2; v = 1, corrected 4: w -= 0.5 * 2 / (2 + 1)
  EXPECT_NEAR(trainee.after(optimizer, 2), 1 - 1.0 / 3, 1e-6);
  // m = 0, v = 1.75: w stays
  EXPECT_NEAR(trainee.after(optimizer, -1), 1 - 1.0 / 3, 1e-6);
  EXPECT_EQ(trainee.slots[0].values<float>()[2], 0);
  EXPECT_EQ(trainee.slots[1].values<float>()[2], 1);
  // m = 2, corrected 2 / (7/8); v = 0.75 + 4, corrected 4.75 / (37/64)
  const double third = 0.5 * (2 / 0.875) / (std::sqrt(4.75 * 64 / 37) + 1);
  EXPECT_NEAR(trainee.after(optimizer, 4), 1 - 1.0 / 3 - third, 1e-6);
}

TEST(Adam, FollowsTheAlgorithmInDoubleOverManySteps) {
  const AdamOptions options = {.learning_rate = 0.01, .weight_decay = 0.1};
  const Adam optimizer(options);
  Trainee trainee({2, 5}, 0.5f);
  double w = 0.5;
  double m = 0;
  double v = 0;
  for (int t = 1; t <= 200; ++t) {
    const double g = std::sin(0.37 * t) + 0.2;
    const double decayed = g + options.weight_decay * w;
    m = options.beta1 * m + (1 - options.beta1) * decayed;
    v = options.beta2 * v + (1 - options.beta2) * decayed * decayed;
    const double m_hat = m / (1 - std::pow(options.beta1, t));
    const double v_hat = v / (1 - std::pow(options.beta2, t));
    w -= options.learning_rate * m_hat / (std::sqrt(v_hat) + options.epsilon);
    ASSERT_NEAR(trainee.after(optimizer, static_cast<float>(g)), w, 1e-5) << t;
  }
  EXPECT_LT(w, 0.3);
}

TEST(Adam, TheFirstStepHasTheLengthOfTheRate) {
  for (const float gradient : {1e-4f, 1.0f, -1e4f})
    EXPECT_NEAR(Trainee({1}, 0).after(Adam({.learning_rate = 0.25}), gradient), std::copysign(0.25, -gradient), 1e-4);
}

TEST(Adam, AZeroGradientMovesNothing) {
  Trainee trainee({2, 2}, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(trainee.after(Adam({}), 0), 3);
}

TEST(Adam, BiasesDecayOnlyWhenAsked) {
  const Adam usual({.learning_rate = 0.5, .weight_decay = 0.5});
  const Adam all({.learning_rate = 0.5, .weight_decay = 0.5, .decay_all = true});
  EXPECT_EQ(Trainee({4}, 2).after(usual, 0), 2);
  EXPECT_NEAR(Trainee({4}, 2).after(all, 0), 1.5, 1e-5);
  EXPECT_NEAR(Trainee({1, 4}, 2).after(usual, 0), 1.5, 1e-5);
}

TEST(Adam, TheScheduleMultipliesTheRate) {
  const Adam optimizer({.learning_rate = 0.5, .schedule = make_schedule("constant", {.warmup_steps = 2})});
  EXPECT_EQ(optimizer.learning_rate(1), 0.25);
  EXPECT_EQ(optimizer.learning_rate(2), 0.5);
  Trainee trainee({1}, 0);
  EXPECT_NEAR(trainee.after(optimizer, 1), -0.25, 1e-5);
  EXPECT_NEAR(trainee.after(optimizer, 1), -0.75, 1e-5);
}

TEST(Adam, LargeVariablesAreUpdatedOnceEverywhereWhateverTheThreads) {
  std::vector<float> first;
  testing::with_thread_counts([&] {
    Trainee trainee({3, 20011}, 1);
    const Adam optimizer({.learning_rate = 0.1});
    trainee.after(optimizer, 1);
    const float expected = trainee.after(optimizer, 0.5f);
    for (const float w : trainee.value.values<float>()) ASSERT_NEAR(w, expected, 1e-6) << thread_count();
    const std::vector<float> weights(trainee.value.values<float>().begin(), trainee.value.values<float>().end());
    if (first.empty()) first = weights;
    EXPECT_EQ(weights, first);
  });
}

// The same operations in the same order in plain code: exact, whatever the instruction set.
TEST(Adam, ExactlyTheFormulaInFloats) {
  constexpr std::int64_t kCount = 1003;
  Trainee trainee({kCount, 1}, 0);
  std::vector<float> gradient(kCount);
  for (std::int64_t i = 0; i < kCount; ++i) {
    trainee.value.data<float>()[i] = std::sin(static_cast<float>(i));
    gradient[i] = std::cos(0.7f * static_cast<float>(i));
  }
  const Tensor before = trainee.value.clone();
  const Adam optimizer({.learning_rate = 0.25, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0.125, .weight_decay = 0.5});
  trainee.all_after(optimizer, gradient);
  for (std::int64_t i = 0; i < kCount; ++i) {
    const float w = before.data<float>()[i];
    const float decayed = gradient[i] + 0.5f * w;
    const float first = 0.5f * decayed;
    const float second = 0.25f * decayed * decayed;
    ASSERT_EQ(trainee.slots[0].data<float>()[i], first) << i;
    ASSERT_EQ(trainee.slots[1].data<float>()[i], second) << i;
    ASSERT_EQ(trainee.value.data<float>()[i], w - 0.5f * first / (std::sqrt(second) * 2 + 0.125f)) << i;
  }
}

TEST(Adam, OptionsOutOfRangeAreNamedWithTheirValue) {
  const auto expect_error = [](const AdamOptions& options, const std::string& part) {
    try {
      Adam optimizer(options);
      ADD_FAILURE() << "accepted; " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  expect_error({.learning_rate = -0.5}, "learning_rate must be a finite number >= 0, is -0.5");
  for (const double bad : {-1e-9, std::nan(""), HUGE_VAL, 1e39}) {
    expect_error({.learning_rate = bad}, "learning_rate");
    expect_error({.weight_decay = bad}, "weight_decay");
    expect_error({.epsilon = bad}, "epsilon");
  }
  for (const double bad : {-0.1, 1.0, 1 - 1e-12, 2.0, std::nan(""), HUGE_VAL}) {
    expect_error({.beta1 = bad}, "beta1 must be in [0, 1)");
    expect_error({.beta2 = bad}, "beta2 must be in [0, 1)");
  }
  expect_error({.learning_rate = 1e-50}, "learning_rate is 1e-50, which is 0 in float32");
  expect_error({.weight_decay = 1e-50}, "weight_decay is 1e-50, which is 0 in float32");
  expect_error({.epsilon = 0}, "epsilon must be at least");
  expect_error({.epsilon = 1e-40}, "epsilon must be at least");
  EXPECT_NO_THROW(Adam({.beta1 = 0, .beta2 = 0}));
}

}  // namespace
}  // namespace miniqat::optim::adam_test
