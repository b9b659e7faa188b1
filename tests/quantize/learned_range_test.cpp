// FakeQuant with learned ranges: the gradients of quantize/range_training.h.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/engine/session.h"
#include "core/graph/op.h"
#include "core/graph/op_queries.h"
#include "core/graph/source_ops.h"
#include "core/tensors/random.h"
#include "layers/layers.h"
#include "optim/sgd.h"
#include "quantize/affine.h"
#include "quantize/quantize.h"
#include "tests/quantize/quantizer_steps.h"

namespace miniqat::quantize::learned_range_test {
namespace {

using testing::Quantizer;
using testing::Way;
using Values = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// On the fast path and on the reference in both precisions.
class LearnedRangeTest : public ::testing::TestWithParam<Way> {
 protected:
  static Quantizer make(FakeQuantAttributes attributes, const Shape& x, const Shape& range = {}) {
    attributes.range = RangeKind::kLearned;
    return Quantizer(attributes, GetParam().backend, GetParam().precision, x, range);
  }
  static void expect_near(const Values& got, const Values& wanted, const std::string& what = "") {
    ASSERT_EQ(got.size(), wanted.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], wanted[i], 1e-6 * (1 + std::abs(wanted[i]))) << what << " " << i;
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, LearnedRangeTest, ::testing::ValuesIn(testing::kWays));

// The grid -1, 0, 1, 2.
const Values kX = {-3, -1, -0.25, 0.75, 1.5, 2, 5};
const Values kDy = {1, 2, 4, 8, 16, 32, 64};

TEST_P(LearnedRangeTest, GradientsByHand) {
  Quantizer quantizer = make({.bits = 2}, {7});
  quantizer.set_range({-1}, {2});
  quantizer.step(kX, true, true, kDy);
  EXPECT_EQ(quantizer.y(), (Values{-1, -1, 0, 1, 2, 2, 2}));
  EXPECT_EQ(quantizer.dx, (Values{0, 2, 4, 8, 16, 32, 0}));
  // Inside: 4 * 0.25 + 8 * 0.25 + 16 * 0.5 = 11, by the width 3.
  expect_near(quantizer.d_min, {1 - 11.0 / 3});
  expect_near(quantizer.d_max, {64 + 11.0 / 3});
  EXPECT_EQ(quantizer.min(), Values{-1}) << "an optimizer moves it, no observation";
  EXPECT_EQ(quantizer.max(), Values{2});
}

TEST_P(LearnedRangeTest, AFixedRangeCountsOnlyWhatIsOutside) {
  Quantizer quantizer({.bits = 2, .range = RangeKind::kFixed}, GetParam().backend, GetParam().precision, {7}, {});
  quantizer.set_range({-1}, {2});
  quantizer.step(kX, true, true, kDy);
  EXPECT_EQ(quantizer.d_min, Values{1});
  EXPECT_EQ(quantizer.d_max, Values{64});
}

TEST_P(LearnedRangeTest, EvaluationGraphsHaveTheSameGradients) {
  for (const bool training : {true, false}) {
    Quantizer quantizer = make({.bits = 2, .is_training = false}, {7});
    quantizer.set_range({-1}, {2});
    quantizer.step(kX, training, true, kDy);
    EXPECT_EQ(quantizer.y(), (Values{-1, -1, 0, 1, 2, 2, 2}));
    expect_near(quantizer.d_max, {64 + 11.0 / 3});
  }
}

TEST_P(LearnedRangeTest, OneSided) {
  Quantizer quantizer = make({.bits = 2}, {5});
  quantizer.set_range({0}, {6});
  quantizer.step({-1, 0, 1.5, 4.5, 7}, true, true, {1, 2, 4, 8, 16});
  EXPECT_EQ(quantizer.y(), (Values{0, 0, 2, 4, 6}));
  // 4 * 0.5 - 8 * 0.5 = -2, by the width 6. LSQ has d_scale = N * 16 above and -2 / 2 inside: 47 = N * d_max.
  expect_near(quantizer.d_min, {1 + 1.0 / 3});
  expect_near(quantizer.d_max, {47.0 / 3});
}

TEST_P(LearnedRangeTest, BothEndsOfASymmetricRangeBearHalf) {
  for (const bool narrow : {true, false}) {
    Quantizer quantizer = make({.bits = 2, .narrow_range = narrow, .symmetric = true}, {5});
    // -2, 0, 2 or -4, -2, 0, 2: the ends are stored so that nothing is widened.
    const double low = narrow ? -2 : -4;
    quantizer.set_range({low}, {2});
    quantizer.step({low - 1, -0.5, 0.5, 1.5, 3}, true, true, {1, 2, 4, 8, 16});
    EXPECT_EQ(quantizer.y(), (Values{low, 0, 0, 2, 2}));
    // Inside: 2 * 0.5 - 4 * 0.5 + 8 * 0.5 = 3, which is the derivative after the logarithm of the width.
    const double of_width = low * 1 + 2 * 16 + 3;
    expect_near(quantizer.d_min, {of_width / (2 * low)});
    expect_near(quantizer.d_max, {of_width / 4});
    EXPECT_EQ(quantizer.min()[0] * quantizer.d_min[0], quantizer.max()[0] * quantizer.d_max[0]);
  }
}

// Jain et al. 2020: the gradient passes straight through the rounding of the scale's logarithm.
TEST_P(LearnedRangeTest, PowersOfTwoMoveWithTheStoredEnds) {
  Quantizer quantizer = make({.bits = 2, .power_of_two = true}, {5});
  // The step is 2, the grid 0, 2, 4, 6.
  quantizer.set_range({0}, {5});
  quantizer.step({-1, 0, 1.5, 4.5, 7}, true, true, {1, 2, 4, 8, 16});
  EXPECT_EQ(quantizer.y(), (Values{0, 0, 2, 4, 6}));
  // After the logarithm: 4 * 0.5 - 8 * 0.5 inside, 16 * 6 above.
  expect_near(quantizer.d_max, {(96 - 2) / 5.0});

  Quantizer weights = make({.bits = 2, .narrow_range = true, .symmetric = true, .power_of_two = true}, {4});
  weights.set_range({-0.75}, {0.75});
  weights.step({-2, -0.75, 0.25, 3}, true, true, {1, 2, 4, 8});
  EXPECT_EQ(weights.y(), (Values{-1, -1, 0, 1}));
  // -1 * 1 + 1 * 8, and 2 * -0.25 + 4 * -0.25 inside.
  const double of_width = 7 - 1.5;
  expect_near(weights.d_min, {of_width / (2 * -0.75)});
  expect_near(weights.d_max, {of_width / (2 * 0.75)});
}

// LSQ of weights (Esser et al. 2020): the derivative after the step size, q_p steps on each side.
TEST_P(LearnedRangeTest, SymmetricRangesHaveTheGradientOfLsq) {
  Random random(5);
  for (int trial = 0; trial < 20; ++trial) {
    const double scale = random.uniform(0.25, 0.5);
    Quantizer quantizer = make({.bits = 4, .narrow_range = true, .symmetric = true}, {60});
    // As float32 has it.
    const double max = static_cast<float>(7 * scale), s = max / 7;
    quantizer.set_range({-max}, {max});
    Values x(60), dy(60);
    double of_scale = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(random.uniform(-4, 4));
      dy[i] = static_cast<float>(random.uniform(-1, 1));
      const double steps = x[i] / s;
      of_scale += dy[i] * (steps <= -7 ? -7 : steps >= 7 ? 7 : std::floor(steps + 0.5) - steps);
    }
    quantizer.step(x, true, true, dy);
    // max = 7 s and min = -7 s.
    const double found = 7 * (quantizer.d_max[0] - quantizer.d_min[0]);
    EXPECT_NEAR(found, of_scale, 1e-4) << trial;
    EXPECT_EQ(quantizer.d_max[0], -quantizer.d_min[0]);
  }
}

TEST_P(LearnedRangeTest, ASymmetricRangeWhoseShorterEndIsNotStored) {
  for (const double stored : {0.0, -0.5}) {
    Quantizer quantizer = make({.bits = 2, .narrow_range = true, .symmetric = true}, {3});
    quantizer.set_range({stored}, {2});
    quantizer.step({-3, 0.5, 3}, true, true, {1, 2, 4});
    EXPECT_EQ(quantizer.y(), (Values{-2, 0, 2}));
    // -2 * 1 + 2 * 4 - 2 * 0.5 = 5, of the range [-2, 2].
    expect_near(quantizer.d_min, {-1.25});
    expect_near(quantizer.d_max, {1.25});
  }
}

TEST_P(LearnedRangeTest, ARangePerChannel) {
  Quantizer quantizer = make({.bits = 2, .per_channel = true}, {3, 2}, {2});
  quantizer.set_range({-1, 0}, {2, 6});
  quantizer.step({-3, -1, 0.75, 4.5, 5, 7}, true, true, {1, 2, 4, 8, 16, 32});
  EXPECT_EQ(quantizer.y(), (Values{-1, 0, 1, 4, 2, 6}));
  expect_near(quantizer.d_min, {1 - 1.0 / 3, 2 + 4.0 / 6});
  expect_near(quantizer.d_max, {16 + 1.0 / 3, 32 - 4.0 / 6});
  Quantizer symmetric = make({.bits = 2, .narrow_range = true, .symmetric = true, .per_channel = true}, {2, 2}, {2});
  symmetric.set_range({-2, -1}, {2, 1});
  symmetric.step({0.5, 3, 3, 0.25}, true, true, {1, 2, 4, 8});
  expect_near(symmetric.d_max, {(8 - 0.5) / 4, (2 - 2) / 2.0});
  expect_near(symmetric.d_min, {-(8 - 0.5) / 4, 0});
}

TEST_P(LearnedRangeTest, AnEmptyRangeHasNoGradientAndLetsThatOfXPass) {
  for (const bool symmetric : {false, true}) {
    Quantizer quantizer = make({.bits = 2, .symmetric = symmetric, .per_channel = true}, {2, 2}, {2});
    quantizer.set_range({0, 0}, {0, 1e-40});
    quantizer.step({-1, 2, 0, 4}, true, true, {1, 2, 4, 8});
    EXPECT_EQ(quantizer.y()[0], 0);
    EXPECT_EQ(quantizer.dx[0], 1);
    EXPECT_EQ(quantizer.d_min[0], 0);
    EXPECT_EQ(quantizer.d_max[0], 0);
    if (GetParam().precision == DType::kFloat64) continue;
    EXPECT_EQ(quantizer.y()[3], 0);
    EXPECT_EQ(quantizer.dx[3], 8);
    EXPECT_EQ(quantizer.d_min[1], 0);
    EXPECT_EQ(quantizer.d_max[1], 0);
  }
}

TEST_P(LearnedRangeTest, NanShowsAndTeachesNothing) {
  Quantizer quantizer = make({.bits = 2}, {3});
  quantizer.set_range({-1}, {2});
  quantizer.step({kNan, 0.75, 5}, true, true, {1, 4, 16});
  EXPECT_TRUE(std::isnan(quantizer.y()[0]));
  EXPECT_EQ(quantizer.dx, (Values{0, 4, 0}));
  expect_near(quantizer.d_min, {-1.0 / 3});
  expect_near(quantizer.d_max, {16 + 1.0 / 3});
  EXPECT_EQ(quantizer.max(), Values{2});
}

TEST_P(LearnedRangeTest, InfinitiesAreOutside) {
  Quantizer quantizer = make({.bits = 2}, {3});
  quantizer.set_range({-1}, {2});
  quantizer.step({-kInfinity, 0, kInfinity}, true, true, {1, 4, 16});
  EXPECT_EQ(quantizer.y(), (Values{-1, 0, 2}));
  EXPECT_EQ(quantizer.d_min, Values{1});
  EXPECT_EQ(quantizer.d_max, Values{16});
}

TEST_P(LearnedRangeTest, BeforeTheDelayEverythingPassesAndNothingIsLearned) {
  Quantizer quantizer = make({.bits = 2, .delay = 5}, {7});
  quantizer.set_range({-1}, {2});
  quantizer.step(kX, true, false, kDy);
  EXPECT_EQ(quantizer.y(), kX);
  EXPECT_EQ(quantizer.dx, kDy);
  EXPECT_EQ(quantizer.d_min, Values{0});
  EXPECT_EQ(quantizer.d_max, Values{0});
  EXPECT_EQ(quantizer.min(), Values{-1}) << "nothing is observed";
}

/// Sum of dy * y where y = x + s * r keeps the rounding r (in steps) that it has at `held`; outside of the range y is
/// its end. The zero point is not rounded.
double with_rounding_held(const Values& x, const Values& dy, const Range<double>& held, const Range<double>& range,
                          const GridOptions& options) {
  const Affine<double> grid = grid_of(held, options);
  const double steps = grid.quant_max - grid.quant_min;
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double y = x[i] < grid.nudged_min ? range.min : range.max;
    if (x[i] >= grid.nudged_min && x[i] <= grid.nudged_max)
      y = x[i] + (fake_quantize(grid, x[i]) - x[i]) / grid.scale * (range.max - range.min) / steps;
    sum += dy[i] * y;
  }
  return sum;
}

TEST(LearnedRange, DifferencesWithTheRoundingHeld) {
  Random random(11);
  for (int trial = 0; trial < 100; ++trial) {
    const FakeQuantAttributes attributes = {
        .bits = 2 + trial % 5, .narrow_range = trial % 2 == 0, .range = RangeKind::kLearned};
    // Zero lies on the grid as it is, so that the stored ends are those of the grid.
    const GridOptions options = attributes.grid_options();
    const double steps = std::pow(2, options.bits) - (options.narrow_range ? 2 : 1);
    const double scale = random.uniform(0.125, 1);
    const double below = std::floor(random.uniform(0, 1) * steps);
    const Range<double> range = {-below * scale, (steps - below) * scale};
    Values x(30), dy(30);
    for (double& value : x) value = random.uniform(-2, 2) * scale * steps;
    for (double& value : dy) value = random.uniform(-1, 1);
    Quantizer quantizer(attributes, Backend::kReference, DType::kFloat64, {30}, {});
    quantizer.set_range({range.min}, {range.max});
    quantizer.step(x, true, true, dy);
    const double h = 1e-3;
    const auto sum = [&](double low, double high) {
      return with_rounding_held(x, dy, range, {range.min + low, range.max + high}, options);
    };
    EXPECT_NEAR(quantizer.d_min[0], (sum(h, 0) - sum(-h, 0)) / (2 * h), 1e-9) << trial;
    EXPECT_NEAR(quantizer.d_max[0], (sum(0, h) - sum(0, -h)) / (2 * h), 1e-9) << trial;
  }
}

// Far outside of the range, and of all nearby ones, y is an end: there the derivative is that of the function itself.
TEST(LearnedRange, DifferencesOfTheFunctionOutside) {
  for (const bool symmetric : {false, true}) {
    const FakeQuantAttributes attributes = {
        .bits = 3, .narrow_range = symmetric, .symmetric = symmetric, .range = RangeKind::kLearned};
    const Range<double> range = {-3, symmetric ? 3.0 : 4.0};
    const Values x = {-50, -20, 30, 10, 90}, dy = {1, -4, 2, 0.5, 16};
    const auto sum = [&](double stretch) {
      Quantizer quantizer(attributes, Backend::kReference, DType::kFloat64, {5}, {});
      quantizer.set_range({range.min * stretch}, {range.max * stretch});
      quantizer.step(x, true, true, dy);
      double total = 0;
      for (std::size_t i = 0; i < x.size(); ++i) total += dy[i] * quantizer.y()[i];
      return std::pair(total, quantizer.min()[0] * quantizer.d_min[0] + quantizer.max()[0] * quantizer.d_max[0]);
    };
    const double h = 1e-4;
    const double differences = (sum(1 + h).first - sum(1 - h).first) / (2 * h);
    EXPECT_NEAR(sum(1).second, differences, 1e-6);
    EXPECT_NEAR(sum(1).second, -3 * (1 - 4) + range.max * (2 + 0.5 + 16), 1e-9);
  }
}

TEST(LearnedRange, FastIsTheReferenceOverManySteps) {
  for (const bool per_channel : {false, true})
    for (const bool symmetric : {false, true}) {
      const FakeQuantAttributes attributes{.bits = 4,
                                           .narrow_range = symmetric,
                                           .symmetric = symmetric,
                                           .per_channel = per_channel,
                                           .range = RangeKind::kLearned};
      const Shape x_shape{90, 33}, range = per_channel ? Shape{33} : Shape{};
      Quantizer fast(attributes, Backend::kFast, DType::kFloat32, x_shape, range);
      Quantizer reference(attributes, Backend::kReference, DType::kFloat32, x_shape, range);
      Random random(9);
      for (int step = 0; step < 3; ++step) {
        Values x(x_shape.elements()), dy(x.size()), min(range.elements()), max(min.size());
        for (double& value : x) value = random.normal();
        for (double& value : dy) value = random.normal();
        for (double& value : min) value = random.uniform(-2, -0.5);
        for (double& value : max) value = random.uniform(0.5, 2);
        for (Quantizer* quantizer : {&fast, &reference}) {
          quantizer->set_range(min, max);
          quantizer->step(x, true, true, dy);
        }
        ASSERT_EQ(fast.y(), reference.y());
        ASSERT_EQ(fast.dx, reference.dx);
        for (std::size_t c = 0; c < min.size(); ++c) {
          ASSERT_NEAR(fast.d_min[c], reference.d_min[c], 2e-5 * (per_channel ? 10 : 60)) << c;
          ASSERT_NEAR(fast.d_max[c], reference.d_max[c], 2e-5 * (per_channel ? 10 : 60)) << c;
        }
      }
    }
}

TEST(LearnedRange, DeclaresItsEndsAsInputsWithGradientsAndKeepsNoState) {
  for (const bool is_training : {true, false}) {
    const FakeQuantAttributes attributes = {.range = RangeKind::kLearned, .delay = 3, .is_training = is_training};
    const auto op = FakeQuant::make(attributes);
    EXPECT_TRUE(op->traits().updated_inputs.empty());
    EXPECT_TRUE(op->traits().no_gradient.empty());
    EXPECT_EQ(op->traits().backward_inputs, (std::vector<int>{0, 1, 2}));
    EXPECT_TRUE(state_of(*op).empty());
    EXPECT_FALSE(attributes.observes_range());
    EXPECT_EQ(delays_of(*op), is_training ? std::vector<std::int64_t>{3} : std::vector<std::int64_t>{});
  }
}

TEST(LearnedRange, TheBuildersEndsAreTrainableByFactors) {
  Graph graph;
  const Output x = layers::placeholder(graph, "x", {4, 3});
  for (const RangeKind kind : {RangeKind::kLearned, RangeKind::kMovingAverage, RangeKind::kFixed}) {
    const std::string name(traits_of(kind).name);
    fake_quant(graph, name, x, {.range = kind}, {-3, 5}, 1);
    for (const std::string end : {"/min", "/max"}) {
      const Variable::Attributes& variable = *graph.at(name + end).as<Variable>();
      EXPECT_EQ(variable.trainable, kind == RangeKind::kLearned) << name;
      EXPECT_EQ(variable.update,
                kind == RangeKind::kLearned ? VariableUpdateKind::kMultiplicative : VariableUpdateKind::kAdditive);
      EXPECT_EQ(variable.shape, std::vector<std::int64_t>{3});
    }
  }
}

// With half of what it needs the range grows, with twice as much it shrinks, and a symmetric one stays so.
TEST(LearnedRange, TrainingFindsTheRangeOfLeastError) {
  for (const double start : {0.5, 8.0}) {
    Graph graph;
    const Output x = layers::placeholder(graph, "x", {1000});
    const Output y =
        fake_quant(graph, "y", x, {.bits = 4, .narrow_range = true, .symmetric = true, .range = RangeKind::kLearned},
                   {-start, start});
    const Output difference =
        layers::add(graph, "difference", y, layers::mul(graph, "minus", x, layers::constant(graph, "c", {}, {-1})));
    const Output loss = layers::mean(graph, "loss", layers::square(graph, "square", difference), {.axes = {0}});
    Session session(graph);
    const optim::Sgd sgd({.ranges = {.learning_rate = 0.01}});
    Tensor normal(Shape{1000});
    Random random(2);
    for (float& value : normal.values<float>()) value = static_cast<float>(random.normal());
    for (int step = 0; step < 400; ++step) session.train_step(loss, sgd, {{x, normal}});
    const float max = session.variable("y/max").values<float>()[0];
    EXPECT_NEAR(max, 2.35, 0.3) << "15 levels for a normal distribution, from " << start;
    EXPECT_FLOAT_EQ(session.variable("y/min").values<float>()[0], -max);
  }
}

}  // namespace
}  // namespace miniqat::quantize::learned_range_test
