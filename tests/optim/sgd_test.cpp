#include "optim/sgd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "tests/optim/trainee.h"
#include "tests/thread_counts.h"

namespace miniqat::optim::sgd_test {
namespace {

using testing::Trainee;

TEST(Sgd, PlainDescent) {
  const Sgd optimizer({.learning_rate = 0.5});
  EXPECT_TRUE(optimizer.slot_names().empty());
  Trainee trainee({3}, 1);
  EXPECT_EQ(trainee.after(optimizer, 1), 0.5f);
  EXPECT_EQ(trainee.after(optimizer, -2), 1.5f);
}

TEST(Sgd, MomentumByHand) {
  const Sgd optimizer({.learning_rate = 0.5, .momentum = 0.5});
  EXPECT_TRUE(std::ranges::equal(optimizer.slot_names(), std::array<std::string_view, 1>{"momentum"}));
  Trainee trainee({3}, 1);
  EXPECT_EQ(trainee.after(optimizer, 1), 0.5f);     // v = 1
  EXPECT_EQ(trainee.after(optimizer, 2), -0.75f);   // v = 2.5
  EXPECT_EQ(trainee.after(optimizer, 0), -1.375f);  // v = 1.25
  EXPECT_EQ(trainee.slots[0].values<float>()[2], 1.25f);
}

TEST(Sgd, NesterovByHand) {
  const Sgd optimizer({.learning_rate = 0.5, .momentum = 0.5, .nesterov = true});
  Trainee trainee({3}, 1);
  EXPECT_EQ(trainee.after(optimizer, 1), 0.25f);     // v = 1, w -= 0.5 * (1 + 0.5)
  EXPECT_EQ(trainee.after(optimizer, 2), -1.375f);   // v = 2.5, w -= 0.5 * (2 + 1.25)
  EXPECT_EQ(trainee.after(optimizer, 0), -1.6875f);  // v = 1.25, w -= 0.5 * 0.625
}

TEST(Sgd, WeightDecayEntersTheGradientAndTheMomentum) {
  Trainee plain({2, 2}, 2);
  EXPECT_EQ(plain.after(Sgd({.learning_rate = 0.5, .weight_decay = 0.25}), 1), 1.25f);  // g' = 1.5
  Trainee trainee({2, 2}, 2);
  const Sgd optimizer({.learning_rate = 0.5, .momentum = 0.5, .weight_decay = 0.25});
  EXPECT_EQ(trainee.after(optimizer, 1), 1.25f);     // v = 1.5
  EXPECT_EQ(trainee.after(optimizer, 0), 0.71875f);  // v = 0.75 + 0.3125
  Trainee ahead({2, 2}, 2);
  const Sgd nesterov({.learning_rate = 0.5, .momentum = 0.5, .nesterov = true, .weight_decay = 0.25});
  EXPECT_EQ(ahead.after(nesterov, 1), 0.875f);  // g' = 1.5, v = 1.5, w -= 0.5 * (1.5 + 0.75)
}

TEST(Sgd, BiasesDecayOnlyWhenAsked) {
  const Sgd usual({.learning_rate = 1, .weight_decay = 0.5});
  const Sgd all({.learning_rate = 1, .weight_decay = 0.5, .decay_all = true});
  for (const Shape& shape : {Shape{}, Shape{4}}) {
    EXPECT_EQ(Trainee(shape, 2).after(usual, 0), 2) << shape;
    EXPECT_EQ(Trainee(shape, 2).after(all, 0), 1) << shape;
  }
  EXPECT_EQ(Trainee({1, 4}, 2).after(usual, 0), 1);
  EXPECT_EQ(Trainee({1, 1, 1, 4}, 2).after(usual, 0), 1);
}

TEST(Sgd, TheScheduleMultipliesTheRate) {
  const Sgd optimizer({.learning_rate = 0.5, .schedule = make_schedule("step", {.every = 1, .factor = 0.5})});
  EXPECT_EQ(optimizer.learning_rate(1), 0.5);
  EXPECT_EQ(optimizer.learning_rate(3), 0.125);
  Trainee trainee({1}, 1);
  EXPECT_EQ(trainee.after(optimizer, 1), 0.5f);
  EXPECT_EQ(trainee.after(optimizer, 1), 0.25f);
  EXPECT_EQ(trainee.after(optimizer, 1), 0.125f);
}

TEST(Sgd, OptionsMayBeFloats) {
  const Sgd optimizer({.learning_rate = 0.05f, .momentum = 0.9f});
  EXPECT_FLOAT_EQ(static_cast<float>(optimizer.learning_rate(1)), 0.05f);
}

TEST(Sgd, LargeVariablesAreUpdatedOnceEverywhereWhateverTheThreads) {
  const Shape shape = {3, 20011};
  std::vector<float> gradient(static_cast<std::size_t>(shape.elements()));
  std::iota(gradient.begin(), gradient.end(), 0.0f);
  testing::with_thread_counts([&] {
    for (const bool nesterov : {false, true}) {
      Trainee trainee(shape, 0);
      trainee.all_after(Sgd({.learning_rate = 0.5, .momentum = 0.5, .nesterov = nesterov}), gradient);
      for (std::int64_t i = 0; i < shape.elements(); ++i) {
        ASSERT_EQ(trainee.slots[0].data<float>()[i], gradient[i]) << thread_count();
        ASSERT_EQ(trainee.value.data<float>()[i], (nesterov ? -0.75f : -0.5f) * gradient[i]) << thread_count();
      }
    }
  });
}

TEST(Sgd, AnEmptyVariableIsFine) {
  EXPECT_NO_THROW({
    Tensor empty(Shape{0, 3});
    Sgd({}).apply({.name = "w", .value = &empty, .gradient = &empty, .slots = {}});
  });
}

// The same operations in the same order in plain code: exact, whatever the instruction set.
TEST(Sgd, ExactlyTheFormulaInFloats) {
  constexpr std::int64_t kCount = 1003;
  for (const bool nesterov : {false, true}) {
    Tensor w(Shape{kCount, 1}), velocity(w.shape());
    Tensor gradient(w.shape()), before(w.shape());
    for (std::int64_t i = 0; i < kCount; ++i) {
      before.data<float>()[i] = w.data<float>()[i] = std::sin(static_cast<float>(i));
      velocity.data<float>()[i] = std::sin(3 * static_cast<float>(i));
      gradient.data<float>()[i] = std::cos(0.7f * static_cast<float>(i));
    }
    const Tensor old_velocity = velocity.clone();
    Tensor* slots[] = {&velocity};
    Sgd({.learning_rate = 0.1, .momentum = 0.9, .nesterov = nesterov, .weight_decay = 0.3})
        .apply({.name = "w", .value = &w, .gradient = &gradient, .slots = slots, .step = 1});
    for (std::int64_t i = 0; i < kCount; ++i) {
      const float decayed = gradient.data<float>()[i] + 0.3f * before.data<float>()[i];
      const float v = 0.9f * old_velocity.data<float>()[i] + decayed;
      ASSERT_EQ(velocity.data<float>()[i], v) << i;
      ASSERT_EQ(w.data<float>()[i], before.data<float>()[i] - 0.1f * (nesterov ? decayed + 0.9f * v : v)) << i;
    }
  }
}

TEST(Sgd, OptionsOutOfRangeAreNamedWithTheirValue) {
  const auto expect_error = [](const SgdOptions& options, const std::string& part) {
    try {
      Sgd optimizer(options);
      ADD_FAILURE() << "accepted; " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  expect_error({.learning_rate = -0.5}, "learning_rate must be a finite number >= 0, is -0.5");
  for (const double bad : {-1e-9, std::nan(""), HUGE_VAL, 1e39}) {
    expect_error({.learning_rate = bad}, "learning_rate");
    expect_error({.weight_decay = bad}, "weight_decay");
  }
  for (const double bad : {-0.1, 1.0, 1 - 1e-12, 2.0, std::nan(""), HUGE_VAL})
    expect_error({.momentum = bad}, "momentum must be in [0, 1)");
  expect_error({.learning_rate = 1e-50}, "learning_rate is 1e-50, which is 0 in float32");
  expect_error({.weight_decay = 1e-50}, "weight_decay is 1e-50, which is 0 in float32");
  expect_error({.nesterov = true}, "nesterov needs momentum");
  EXPECT_NO_THROW(Sgd({.learning_rate = 0, .momentum = 0.999}));
}

}  // namespace
}  // namespace miniqat::optim::sgd_test
