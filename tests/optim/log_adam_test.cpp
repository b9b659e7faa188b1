#include "optim/log_adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/engine/session.h"
#include "core/graph/graph_json.h"
#include "layers/layers.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/errors.h"

namespace miniqat::optim::log_adam_test {
namespace {

using testing::error_of;
using testing::mentions;

/// A variable with its slots, stepped by an optimizer.
struct Trainee {
  Tensor value, m, v;
  std::int64_t step = 0;

  explicit Trainee(const std::vector<double>& start)
      : value(Tensor::from({static_cast<std::int64_t>(start.size())}, start).to(DType::kFloat32)),
        m(value.shape()),
        v(value.shape()) {}

  std::span<float> after(const LogAdam& optimizer, const std::vector<double>& gradient) {
    const Tensor d = Tensor::from(value.shape(), gradient).to(DType::kFloat32);
    Tensor* slots[] = {&m, &v};
    optimizer.apply({.name = "w", .value = &value, .gradient = &d, .slots = slots, .step = ++step});
    return value.values<float>();
  }
};

TEST(LogAdam, ByHand) {
  const LogAdam optimizer({.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.75});
  Trainee trainee({2});
  // g' = 6; both corrected averages are those of the one gradient: a step of the rate, whatever its size.
  EXPECT_NEAR(trainee.after(optimizer, {3})[0], 2 * std::exp(-0.1), 1e-6);
  const double w = 2 * std::exp(-0.1), slope = -w;
  const double m = 0.5 * 3 + 0.5 * slope, v = 0.75 * 9 + 0.25 * slope * slope;
  const double wanted = w * std::exp(-0.1 * m / (1 - 0.25) / std::sqrt(v / (1 - 0.75 * 0.75)));
  EXPECT_NEAR(trainee.after(optimizer, {-1})[0], wanted, 1e-6);
}

TEST(LogAdam, SignsStayAndZeroStaysZero) {
  const LogAdam optimizer({.learning_rate = 5});
  Trainee trainee({-2, 0, 3, -1e-30, 1e30});
  for (int step = 0; step < 300; ++step) {
    const std::span<float> w = trainee.after(optimizer, {1e6, 1, -1e-6, -1e20, -1});
    ASSERT_TRUE(w[0] < 0 && w[1] == 0 && w[2] > 0 && w[3] < 0 && w[4] > 0) << step;
    for (const float value : w) ASSERT_TRUE(value == 0 || std::isnormal(value)) << step;
  }
}

TEST(LogAdam, TheUnitOfAVariableDoesNotMatter) {
  const LogAdam optimizer({.learning_rate = 0.01});
  Trainee small({0.5, -0.25}), large({512, -256});
  for (int step = 0; step < 20; ++step) {
    const double g = std::sin(step);
    small.after(optimizer, {g, 2 * g});
    large.after(optimizer, {g / 1024, 2 * g / 1024});
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(large.value.data<float>()[i], 1024 * small.value.data<float>()[i]);
  EXPECT_NE(small.value.data<float>()[0], 0.5f);
}

TEST(LogAdam, OptionsOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double rate : {-1.0, nan}) {
    EXPECT_TRUE(mentions(error_of([&] { LogAdam({.learning_rate = rate}); }), {"range_learning_rate"}));
    EXPECT_TRUE(mentions(error_of([&] { Sgd({.ranges = {.learning_rate = rate}}); }), {"range_learning_rate"}));
    EXPECT_TRUE(mentions(error_of([&] { Adam({.ranges = {.learning_rate = rate}}); }), {"range_learning_rate"}));
  }
  EXPECT_TRUE(mentions(error_of([] { LogAdam({.beta1 = 1}); }), {"beta1"}));
  EXPECT_TRUE(mentions(error_of([] { LogAdam({.beta2 = -0.1}); }), {"beta2"}));
}

/// loss = sum of (range * x), range a scalar with multiplicative updates beside a vector with usual ones.
struct Net {
  Graph graph;
  Output x, loss;

  Net() {
    using namespace layers;
    x = placeholder(graph, "x", {4});
    const Output range =
        graph
            .add("range",
                 std::make_unique<Variable>(Variable::Attributes{.shape = {4},
                                                                 .initializer = Initializer::constant(-2),
                                                                 .update = VariableUpdateKind::kMultiplicative}),
                 {})
            .output();
    const Output bias = variable(graph, "bias", {4}, Initializer::constant(1));
    loss = mean(graph, "loss", add(graph, "sum", mul(graph, "mul", range, x), bias), {.axes = {0}});
  }

  Feeds feeds() const { return {{x, Tensor::from({4}, std::vector<float>{1, 2, -3, 4})}}; }
};

TEST(MultiplicativeVariables, EveryOptimizerChangesThemByLogAdam) {
  const Sgd sgd({.learning_rate = 0.5, .weight_decay = 0.5, .decay_all = true, .ranges = {.learning_rate = 0.125}});
  const Adam adam({.weight_decay = 0.5, .decay_all = true, .ranges = {.learning_rate = 0.125}});
  for (const Optimizer* optimizer : {static_cast<const Optimizer*>(&sgd), static_cast<const Optimizer*>(&adam)}) {
    Net net;
    Session session(net.graph);
    session.train_step(net.loss, *optimizer, net.feeds());
    const Tensor range = session.variable("range");
    // The loss grows with x * range: down it goes by making -2 larger where x is positive. No decay.
    const double up = std::exp(0.125), down = std::exp(-0.125);
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(range.data<float>()[i], -2 * (i == 2 ? down : up), 1e-5) << i;
    const Safetensors content = session.checkpoint();
    EXPECT_TRUE(content.tensors.contains("optimizer:log_m/range"));
    EXPECT_TRUE(content.tensors.contains("optimizer:log_v/range"));
    EXPECT_FALSE(content.tensors.contains("optimizer:log_m/bias"));
    Session other(net.graph);
    other.restore(content, Session::Restore::kExact, "the first session");
    const float first = session.train_step(net.loss, *optimizer, net.feeds());
    EXPECT_EQ(other.train_step(net.loss, *optimizer, net.feeds()), first);
    EXPECT_EQ(other.variable("range").data<float>()[1], session.variable("range").data<float>()[1]);
  }
}

TEST(MultiplicativeVariables, AnOptimizerThatCannotSaysSo) {
  struct Plain : Optimizer {
    std::span<const std::string_view> slot_names() const override { return {}; }
    void apply(const VariableUpdate&) const override {}
    double learning_rate(std::int64_t) const override { return 1; }
  };
  Net net;
  Session session(net.graph);
  EXPECT_TRUE(
      mentions(error_of([&] { session.train_step(net.loss, Plain(), net.feeds()); }), {"\"range\"", "multiplicative"}));
}

TEST(MultiplicativeVariables, GraphJson) {
  const Net net;
  layers::register_ops();
  const std::string text = graph_to_json(net.graph);
  EXPECT_EQ(text.find("\"update\""), text.rfind("\"update\"")) << "only where it is not the usual one";
  const Graph again = graph_from_json(text, "again");
  EXPECT_EQ(graph_to_json(again), text);
  EXPECT_EQ(again.at("range").as<Variable>()->attributes().update, VariableUpdateKind::kMultiplicative);
}

}  // namespace
}  // namespace miniqat::optim::log_adam_test
