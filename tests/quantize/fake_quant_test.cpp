#include "quantize/fake_quant.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/engine/session.h"
#include "core/graph/graph_json.h"
#include "core/graph/op.h"
#include "core/graph/op_queries.h"
#include "core/graph/registry.h"
#include "core/graph/source_ops.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "quantize/affine.h"
#include "quantize/quantize.h"
#include "tests/errors.h"
#include "tests/quantize/quantizer_steps.h"

namespace miniqat::quantize::fake_quant_test {
namespace {

using testing::Quantizer;
using testing::Way;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The semantics hold on the fast path and on the reference in both precisions.
class FakeQuantTest : public ::testing::TestWithParam<Way> {
 protected:
  Quantizer make(FakeQuantAttributes attributes, const Shape& x, const Shape& range = {}) const {
    return Quantizer(attributes, GetParam().backend, GetParam().precision, x, range);
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, FakeQuantTest, ::testing::ValuesIn(testing::kWays));

using Values = std::vector<double>;

TEST_P(FakeQuantTest, LastValueTakesThisStepsRangeAtOnce) {
  Quantizer quantizer = make({.bits = 2, .range = RangeKind::kLastValue}, {5});
  quantizer.set_range({-6}, {6});
  quantizer.step({-0.5, 0.2, 0.3, 0.75, 1}, true, true, {1, 2, 3, 4, 5});
  EXPECT_EQ(quantizer.min(), Values{-0.5});
  EXPECT_EQ(quantizer.max(), Values{1});
  EXPECT_EQ(quantizer.y(), (Values{-0.5, 0, 0.5, 1, 1}));
  EXPECT_EQ(quantizer.dx, (Values{1, 2, 3, 4, 5})) << "nothing lies beyond the new range";
  quantizer.step({0, 0, 0, 0, 3});
  EXPECT_EQ(quantizer.min(), Values{0});
  EXPECT_EQ(quantizer.max(), Values{3});
}

TEST_P(FakeQuantTest, MovingAverageStartsWithTheFirstBatchAndIsUsedInTheSameStep) {
  Quantizer quantizer = make({.bits = 2, .range = RangeKind::kMovingAverage, .ema_decay = 0.5}, {4});
  quantizer.set_range({0}, {6});
  quantizer.step({0, 1, 2, 3});
  EXPECT_EQ(quantizer.max(), Values{3});
  EXPECT_EQ(quantizer.count(), 1);
  EXPECT_EQ(quantizer.y(), (Values{0, 1, 2, 3}));
  quantizer.step({0, 1, 2, 9}, true, true, {1, 1, 1, 1});
  // (0.5 * 0.5 * 3 + 0.5 * 9) / (1 - 0.25) = 7, up to float32's last bit: 3 + 6 * 2/3.
  EXPECT_NEAR(quantizer.max()[0], 7, 1e-6);
  EXPECT_EQ(quantizer.count(), 2);
  EXPECT_NEAR(quantizer.y()[3], 7, 1e-6);
  EXPECT_EQ(quantizer.dx, (Values{1, 1, 1, 0})) << "9 is beyond this step's range, not only the last one's";
}

TEST_P(FakeQuantTest, CountSaturates) {
  Quantizer quantizer = make({.range = RangeKind::kMovingAverage, .ema_decay = 0.5}, {2});
  quantizer.set_range({0}, {1});
  quantizer.set_count(16777216);
  quantizer.step({0, 3});
  EXPECT_EQ(quantizer.count(), 16777216);
  EXPECT_EQ(quantizer.max(), Values{2});
}

TEST_P(FakeQuantTest, AllValuesStartWithTheFirstBatchAndOnlyWiden) {
  Quantizer quantizer = make({.bits = 2, .range = RangeKind::kAllValues}, {4});
  quantizer.set_range({-6}, {6});
  quantizer.step({-1, 0, 1, 2}, true, true, {1, 1, 1, 1});
  EXPECT_EQ(quantizer.min(), Values{-1}) << "the initial range counts for nothing";
  EXPECT_EQ(quantizer.max(), Values{2});
  EXPECT_EQ(quantizer.count(), 1);
  quantizer.step({0, 0.5, 1, 0.25});
  EXPECT_EQ(quantizer.min(), Values{-1}) << "never shrinks";
  EXPECT_EQ(quantizer.max(), Values{2});
  quantizer.step({-0.5, 1, 5, 5}, true, true, {1, 2, 3, 4});
  EXPECT_EQ(quantizer.min(), Values{-1});
  EXPECT_EQ(quantizer.max(), Values{5});
  EXPECT_EQ(quantizer.count(), 3);
  EXPECT_EQ(quantizer.y(), (Values{0, 2, 4, 4})) << "the grid -2, 0, 2, 4 of [-1, 5], in the same step";
  EXPECT_EQ(quantizer.dx, (Values{1, 2, 0, 0}));
  quantizer.step({-9, 0, 0, 9}, false);
  EXPECT_EQ(quantizer.max(), Values{5}) << "no training step";
}

TEST_P(FakeQuantTest, AllValuesWidenARangeThatAlreadyCounts) {
  Quantizer quantizer = make({.range = RangeKind::kAllValues}, {2});
  quantizer.set_range({-3}, {0.5});
  quantizer.set_count(8);
  quantizer.step({-1, 4});
  EXPECT_EQ(quantizer.min(), Values{-3});
  EXPECT_EQ(quantizer.max(), Values{4});
  quantizer.set_range({kNan}, {kNan});
  quantizer.step({-1, 4});
  EXPECT_EQ(quantizer.min(), Values{-1});
  EXPECT_EQ(quantizer.max(), Values{4});
}

TEST_P(FakeQuantTest, ObservesBeforeTheDelayAndPassesThrough) {
  Quantizer quantizer = make({.range = RangeKind::kMovingAverage, .delay = 10}, {3});
  quantizer.set_range({-6}, {6});
  quantizer.step({-1.25, 0.3, 2.5}, true, false, {7, 8, 9});
  EXPECT_EQ(quantizer.min(), Values{-1.25});
  EXPECT_EQ(quantizer.max(), Values{2.5});
  EXPECT_NEAR(quantizer.y()[1], 0.3, 1e-7);
  EXPECT_EQ(quantizer.dx, (Values{7, 8, 9}));
}

TEST_P(FakeQuantTest, WithoutTrainingUsesTheStoredRange) {
  for (bool is_training : {true, false}) {
    Quantizer quantizer = make({.bits = 2, .range = RangeKind::kLastValue, .is_training = is_training}, {3});
    quantizer.set_range({-1}, {2});
    quantizer.step({-5, 0.6, 5}, false, true, {1, 1, 1});
    EXPECT_EQ(quantizer.y(), (Values{-1, 1, 2}));
    EXPECT_EQ(quantizer.dx, (Values{0, 1, 0}));
  }
}

TEST_P(FakeQuantTest, EvaluationGraphsObserveNothingEvenInATrainingRun) {
  Quantizer quantizer = make({.bits = 2, .range = RangeKind::kMovingAverage, .is_training = false}, {3});
  quantizer.set_range({-1}, {2});
  quantizer.step({-5, 0.6, 5}, true, true, {1, 1, 1});
  EXPECT_EQ(quantizer.y(), (Values{-1, 1, 2}));
  EXPECT_EQ(quantizer.dx, (Values{0, 1, 0}));
  EXPECT_EQ(quantizer.min(), Values{-1});
}

TEST_P(FakeQuantTest, SymmetricRangesGiveTheSameGridInTrainingAndFromTheStore) {
  Random random(3);
  for (bool narrow : {false, true}) {
    for (int trial = 0; trial < 50; ++trial) {
      Quantizer quantizer =
          make({.bits = 4, .narrow_range = narrow, .symmetric = true, .range = RangeKind::kLastValue}, {20});
      Values x(20);
      for (double& value : x) value = random.uniform(-1, 2);
      quantizer.step(x);
      const Values trained = quantizer.y();
      EXPECT_LE(quantizer.min()[0], -quantizer.max()[0]);
      quantizer.step(x, false);
      EXPECT_EQ(quantizer.y(), trained);
    }
  }
}

TEST_P(FakeQuantTest, PerChannelRangesFollowTheLastAxes) {
  Quantizer last = make({.bits = 2, .per_channel = true, .range = RangeKind::kLastValue}, {3, 2}, {2});
  last.step({0, 0, 1, -30, 3, 10});
  EXPECT_EQ(last.min(), (Values{0, -30}));
  EXPECT_EQ(last.max(), (Values{3, 10}));
  Quantizer depthwise = make({.bits = 2, .per_channel = true, .range = RangeKind::kLastValue}, {2, 1, 2, 2}, {2, 2});
  depthwise.step({1, 2, 3, 4, -1, -2, -3, -4});
  EXPECT_EQ(depthwise.min(), (Values{-1, -2, -3, -4}));
  EXPECT_EQ(depthwise.max(), (Values{1, 2, 3, 4}));
}

TEST_P(FakeQuantTest, NanAndInfinityShowButAreNotStored) {
  for (RangeKind kind : {RangeKind::kLastValue, RangeKind::kMovingAverage, RangeKind::kAllValues}) {
    for (double bad : {kNan, kInfinity, -kInfinity}) {
      Quantizer quantizer = make({.range = kind}, {3});
      quantizer.step({-1, 0.5, 1});
      const double count = quantizer.count();
      quantizer.step({-1, bad, 1}, true, true, {1, 1, 1});
      for (double y : quantizer.y()) EXPECT_TRUE(std::isnan(y)) << bad;
      EXPECT_EQ(quantizer.dx, (Values{0, 0, 0}));
      EXPECT_EQ(quantizer.min(), Values{-1});
      EXPECT_EQ(quantizer.max(), Values{1});
      EXPECT_EQ(quantizer.count(), count);
    }
  }
}

TEST_P(FakeQuantTest, AllZerosStayZerosAndLetGradientsPass) {
  Quantizer quantizer = make({.range = RangeKind::kLastValue}, {3});
  quantizer.step({0, 0, 0}, true, true, {1, 2, 3});
  EXPECT_EQ(quantizer.y(), (Values{0, 0, 0}));
  EXPECT_EQ(quantizer.dx, (Values{1, 2, 3}));
}

TEST_P(FakeQuantTest, FixedRangesHaveGradients) {
  Quantizer quantizer = make({.bits = 2, .range = RangeKind::kFixed}, {6});
  quantizer.set_range({-1}, {2});
  const Values x = {-3, -2, -1, 0.4, 2, 2.5};
  quantizer.step(x, true, true, {1, 2, 4, 8, 16, 32});
  EXPECT_EQ(quantizer.y(), (Values{-1, -1, -1, 0, 2, 2}));
  EXPECT_EQ(quantizer.dx, (Values{0, 0, 4, 8, 16, 0}));
  EXPECT_EQ(quantizer.d_min, Values{3});
  EXPECT_EQ(quantizer.d_max, Values{32});
  EXPECT_EQ(quantizer.max(), Values{2}) << "fixed";
  quantizer.step(x, true, false, {1, 2, 4, 8, 16, 32});
  EXPECT_EQ(quantizer.dx, (Values{1, 2, 4, 8, 16, 32}));
  EXPECT_EQ(quantizer.d_min, Values{0});
  EXPECT_EQ(quantizer.d_max, Values{0});
  quantizer.set_range({0}, {0});
  quantizer.step(x, true, true, {1, 2, 4, 8, 16, 32});
  EXPECT_EQ(quantizer.y(), Values(6, 0));
  EXPECT_EQ(quantizer.dx, (Values{1, 2, 4, 8, 16, 32}));
  EXPECT_EQ(quantizer.d_min, Values{0});
  EXPECT_EQ(quantizer.d_max, Values{0});
}

TEST_P(FakeQuantTest, FixedRangesPerChannel) {
  Quantizer quantizer = make({.bits = 2, .per_channel = true, .range = RangeKind::kFixed}, {2, 2}, {2});
  quantizer.set_range({-1, -10}, {2, 20});
  quantizer.step({-5, -5, 5, 25}, true, true, {1, 2, 3, 4});
  EXPECT_EQ(quantizer.y(), (Values{-1, 0, 2, 20}));
  EXPECT_EQ(quantizer.dx, (Values{0, 2, 0, 0}));
  EXPECT_EQ(quantizer.d_min, (Values{1, 0}));
  EXPECT_EQ(quantizer.d_max, (Values{3, 4}));
}

TEST_P(FakeQuantTest, TensorsWithoutElementsTeachNothing) {
  Quantizer quantizer = make({.range = RangeKind::kMovingAverage}, {0, 3});
  quantizer.set_range({-6}, {6});
  quantizer.step({});
  EXPECT_EQ(quantizer.max(), Values{6});
  EXPECT_EQ(quantizer.count(), 0);
  make({.per_channel = true, .range = RangeKind::kLastValue}, {3, 0}, {0}).step({});
}

TEST(FakeQuant, FastIsTheReferenceBitForBitOverManySteps) {
  for (bool per_channel : {false, true}) {
    for (RangeKind kind : {RangeKind::kLastValue, RangeKind::kMovingAverage, RangeKind::kAllValues}) {
      const FakeQuantAttributes attributes{.bits = 3, .per_channel = per_channel, .range = kind, .ema_decay = 0.9};
      const Shape x_shape{90, 33}, range = per_channel ? Shape{33} : Shape{};
      Quantizer fast(attributes, Backend::kFast, DType::kFloat32, x_shape, range);
      Quantizer reference(attributes, Backend::kReference, DType::kFloat32, x_shape, range);
      Random random(9);
      for (int step = 0; step < 5; ++step) {
        Values x(x_shape.elements()), dy(x.size());
        for (double& value : x) value = random.normal();
        for (double& value : dy) value = random.normal();
        fast.step(x, true, true, dy);
        reference.step(x, true, true, dy);
        ASSERT_EQ(fast.y(), reference.y());
        ASSERT_EQ(fast.dx, reference.dx);
        ASSERT_EQ(fast.min(), reference.min());
        ASSERT_EQ(fast.max(), reference.max());
      }
    }
  }
}

TEST(FakeQuant, DeclaresWhatBackwardReadsAndWhatItUpdates) {
  const auto traits = [](RangeKind kind, bool is_training) {
    return FakeQuant::make({.range = kind, .is_training = is_training})->traits();
  };
  const std::vector<int> ends = {1, 2};
  EXPECT_EQ(traits(RangeKind::kLastValue, true).updated_inputs, ends);
  EXPECT_EQ(traits(RangeKind::kLastValue, true).no_gradient, ends);
  EXPECT_TRUE(traits(RangeKind::kLastValue, true).forward_in_place);
  EXPECT_TRUE(traits(RangeKind::kLastValue, true).backward_inputs.empty());
  EXPECT_TRUE(traits(RangeKind::kLastValue, false).updated_inputs.empty());
  EXPECT_TRUE(traits(RangeKind::kFixed, true).updated_inputs.empty());
  EXPECT_TRUE(traits(RangeKind::kFixed, true).no_gradient.empty());
  EXPECT_EQ(traits(RangeKind::kFixed, true).backward_inputs, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(traits(RangeKind::kMovingAverage, false).backward_inputs, (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(traits(RangeKind::kMovingAverage, false).no_gradient.empty()) << "the range is an input like any other";
  EXPECT_EQ(delays_of(*FakeQuant::make({.delay = 7})), std::vector<std::int64_t>{7});
  EXPECT_TRUE(delays_of(*FakeQuant::make({.delay = 7, .is_training = false})).empty());
  EXPECT_EQ(state_of(*FakeQuant::make({.range = RangeKind::kMovingAverage})).size(), 1u);
  EXPECT_EQ(state_of(*FakeQuant::make({.range = RangeKind::kMovingAverage, .is_training = false})).size(), 1u)
      << "as in checkpoints";
  EXPECT_EQ(state_of(*FakeQuant::make({.range = RangeKind::kAllValues})).size(), 1u);
  EXPECT_EQ(traits(RangeKind::kAllValues, true).updated_inputs, ends);
  EXPECT_TRUE(state_of(*FakeQuant::make({.range = RangeKind::kLastValue})).empty());
}

std::string refusal(FakeQuantAttributes attributes, const Shape& x, const Shape& min, const Shape& max) {
  try {
    FakeQuant::make(attributes)->infer(std::vector<TensorSpec>{{x}, {min}, {max}});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(FakeQuant, RefusesBadAttributesAndShapes) {
  EXPECT_NE(refusal({.bits = 1}, {2}, {}, {}).find("bits must be 2..16, is 1"), std::string::npos);
  EXPECT_NE(refusal({.bits = 17}, {2}, {}, {}).find("is 17"), std::string::npos);
  for (double decay : {1.0, -0.1, kNan, kInfinity})
    EXPECT_NE(refusal({.ema_decay = decay}, {2}, {}, {}).find("ema_decay"), std::string::npos) << decay;
  EXPECT_NE(refusal({.delay = -1}, {2}, {}, {}).find("delay must not be negative, is -1"), std::string::npos);
  EXPECT_NE(refusal({}, {2, 3}, {3}, {}).find("min of one range per tensor must be a scalar [], is [3]; x [2,3]"),
            std::string::npos);
  EXPECT_NE(refusal({}, {2, 3}, {}, {1}).find("max of one range"), std::string::npos);
  const FakeQuantAttributes per_channel{.per_channel = true};
  EXPECT_NE(refusal(per_channel, {2, 3}, {4}, {3}).find("is [4]; x [2,3]"), std::string::npos);
  EXPECT_NE(refusal(per_channel, {2, 3}, {}, {}).find("is []; x [2,3]"), std::string::npos);
  EXPECT_NE(refusal(per_channel, {5, 2, 3}, {2, 3}, {3}).find("same shape: min [2,3], max [3]"), std::string::npos);
  EXPECT_NE(refusal(per_channel, {5, 2, 3}, {5, 2, 3}, {5, 2, 3}).find("last two"), std::string::npos);
  EXPECT_NE(refusal(per_channel, {3}, {3, 3}, {3, 3}).find("is [3,3]; x [3]"), std::string::npos);
  EXPECT_EQ(refusal({}, {}, {}, {}), "") << "a scalar x is fine per tensor";
  EXPECT_EQ(refusal(per_channel, {3}, {3}, {3}), "");
  EXPECT_EQ(refusal(per_channel, {5, 2, 3}, {2, 3}, {2, 3}), "");
}

TEST(FakeQuant, BuilderAddsVariablesAndSurvivesJson) {
  register_source_ops();
  register_ops();
  Graph graph;
  const Output x = placeholder(graph, "x", {3, 3, 4, 2});
  const FakeQuantAttributes attributes{.bits = 4,
                                       .narrow_range = true,
                                       .symmetric = true,
                                       .range = RangeKind::kLastValue,
                                       .ema_decay = 0.9,
                                       .delay = 12,
                                       .is_training = false};
  const Output y = fake_quant(graph, "conv/weights_quant", x, attributes, {-3, 5}, 2);
  EXPECT_EQ(y.shape(), x.shape());
  const Graph copy = graph_from_json(graph_to_json(graph));
  const FakeQuantAttributes& read = *copy.at("conv/weights_quant").as<FakeQuant>();
  EXPECT_EQ(read.bits, 4);
  EXPECT_TRUE(read.narrow_range && read.symmetric && read.per_channel && !read.is_training);
  EXPECT_EQ(read.range, RangeKind::kLastValue);
  EXPECT_EQ(read.ema_decay, 0.9);
  EXPECT_EQ(read.delay, 12);
  const auto* max = copy.at("conv/weights_quant/max").as<Variable>();
  EXPECT_EQ(max->shape, (std::vector<std::int64_t>{4, 2}));
  EXPECT_FALSE(max->trainable);
  EXPECT_EQ(max->initializer.value, 5);
  EXPECT_EQ(copy.at("conv/weights_quant/min").as<Variable>()->initializer.value, -3);
  EXPECT_THROW(fake_quant(graph, "other", x, {}, {}, 3), Error);
  EXPECT_THROW(fake_quant(graph, "other", placeholder(graph, "scalar", {}), {}, {}, 1), Error);
}

// The session would keep both values under one name.
TEST(FakeQuant, AVariableMayNotHaveTheNameOfItsCount) {
  Graph graph;
  fake_quant(graph, "q", placeholder(graph, "x", {2}), {});
  variable(graph, "q/num_updates", {});
  EXPECT_TRUE(testing::mentions(testing::error_of([&] { Session(graph, {}); }),
                                {"[Variable \"q/num_updates\"] has the name of a state of [FakeQuant \"q\"]"}));
}

}  // namespace
}  // namespace miniqat::quantize::fake_quant_test
