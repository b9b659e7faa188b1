#include "core/engine/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "layers/layers.h"
#include "optim/sgd.h"
#include "tests/core/observer_op.h"
#include "tests/errors.h"

namespace miniqat::session_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::observer;
using Floats = std::vector<float>;

Floats floats(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

RunRequest fetch(std::vector<Output> fetches, bool training = false) {
  return {.fetches = std::move(fetches), .training = training};
}

std::vector<Floats> gradients(Session& session, Output of, std::vector<Output> targets, const Feeds& feeds) {
  const RunResult result = session.run({.gradients_of = of, .gradient_targets = std::move(targets)}, feeds);
  std::vector<Floats> values;
  for (const Tensor& gradient : result.gradients) values.push_back(floats(gradient));
  return values;
}

/// relu(x w + bias), and its mean over all elements as the loss.
class SessionTest : public ::testing::Test {
 protected:
  Graph graph_;
  Output x_ = placeholder(graph_, "x", {1, 2});
  Output w_ = variable(graph_, "w", {2, 2});
  Output bias_ = variable(graph_, "bias", {2});
  Output y_ = layers::relu(graph_, "y", layers::bias_add(graph_, "sum", layers::matmul(graph_, "xw", x_, w_), bias_));
  Output loss_ = layers::mean(graph_, "loss", y_, {.axes = {0, 1}});
  Tensor fed_ = Tensor::from<float>({1, 2}, {1, 2});
  Feeds feeds_ = {{x_, fed_}};

  void fill(Session& session) {
    session.set_variable("w", Tensor::from<float>({2, 2}, {1, -1, 2, 1}));
    session.set_variable("bias", Tensor::from<float>({2}, {0.5f, -3}));
  }
};

TEST_F(SessionTest, ComputesValuesAndGradients) {
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    Session session(graph_, {.backend = backend});
    fill(session);
    const RunResult result = session.run(fetch({y_, w_, x_}), feeds_);
    EXPECT_EQ(floats(result.fetched[0]), (Floats{5.5f, 0}));
    EXPECT_EQ(floats(result.fetched[1]), (Floats{1, -1, 2, 1}));
    EXPECT_EQ(floats(result.fetched[2]), (Floats{1, 2}));
    EXPECT_EQ(gradients(session, y_, {x_, w_, bias_}, feeds_), (std::vector<Floats>{{1, 2}, {1, 0, 2, 0}, {1, 0}}));
  }
}

TEST_F(SessionTest, ComputesInDoubleOnTheReferenceBackend) {
  Session session(graph_, {.backend = Backend::kReference, .precision = DType::kFloat64});
  fill(session);
  const Tensor y = session.run(fetch({y_}), {{x_, Tensor::from<float>({1, 2}, {0.1f, 0})}}).fetched[0];
  EXPECT_EQ(y.data<double>()[0], static_cast<double>(0.1f) + 0.5);
  Session fast(graph_, {.precision = DType::kFloat64});
  EXPECT_TRUE(mentions(error_of([&] { fast.run(fetch({y_}), feeds_); }), {"float32 only"}));
}

TEST_F(SessionTest, ResultsAreCopies) {
  Session session(graph_);
  fill(session);
  const RunResult first = session.run(fetch({w_, y_}), feeds_);
  session.set_variable("w", Tensor(Shape{2, 2}));
  session.run(fetch({w_, y_}), feeds_);
  EXPECT_EQ(floats(first.fetched[0]), (Floats{1, -1, 2, 1}));
  EXPECT_EQ(floats(first.fetched[1]), (Floats{5.5f, 0}));
}

TEST(SessionGradientTest, GradientsOfAllConsumersAreSummed) {
  Graph graph;
  const Output x = placeholder(graph, "x", {3});
  const Output sum = layers::add(graph, "s1", layers::relu(graph, "relu", x), layers::mul(graph, "square", x, x));
  const Output y = layers::add(graph, "s2", sum, x);
  Session session(graph);
  const Feeds feeds = {{x, Tensor::from<float>({3}, {-1, 2, 3})}};
  EXPECT_EQ(gradients(session, y, {x}, feeds), (std::vector<Floats>{{-1, 6, 8}}));
  EXPECT_EQ(gradients(session, x, {x}, feeds), (std::vector<Floats>{{1, 1, 1}}));
}

TEST(SessionGradientTest, TargetsThatTheGradientDoesNotReachGetZeros) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2});
  const Output labels = placeholder(graph, "labels", {2}, DType::kInt32);
  const Output aside = variable(graph, "aside", {2, 2}, Initializer::constant(1));
  const Output y = layers::relu(graph, "y", x);
  Session session(graph);
  EXPECT_EQ(gradients(session, y, {aside, x, labels}, {{x, Tensor::from<float>({2}, {1, -1})}}),
            (std::vector<Floats>{{0, 0, 0, 0}, {1, 0}, {0, 0}}));
}

TEST_F(SessionTest, WrongFeedsAreRefused) {
  Graph other;
  const Output foreign = placeholder(other, "x", {1, 2});
  Session session(graph_);
  const auto refuse = [&](const Feeds& feeds, const std::vector<std::string>& parts) {
    EXPECT_TRUE(mentions(error_of([&] { session.run(fetch({y_}, true), feeds); }), parts));
    EXPECT_EQ(session.step(), 0);
  };
  refuse({}, {"[Placeholder \"x\"]", "must be fed", "[1,2]"});
  refuse({{x_, Tensor(Shape{2, 1})}}, {"[Placeholder \"x\"]", "[1,2]", "[2,1]"});
  refuse({{x_, Tensor(Shape{1, 2}, DType::kInt32)}}, {"[Placeholder \"x\"]", "float32", "int32"});
  refuse({{x_, Tensor(Shape{1, 2}, DType::kFloat64)}}, {"[Placeholder \"x\"]", "float32", "float64"});
  refuse({{x_, Tensor()}}, {"[Placeholder \"x\"]", "empty"});
  refuse({{x_, fed_}, {w_, Tensor(Shape{2, 2})}}, {"[Variable \"w\"]", "not a Placeholder"});
  refuse({{x_, fed_}, {foreign, fed_}}, {"not of this graph"});
  refuse({{x_, fed_}, {Output{}, fed_}}, {"not of this graph"});
  refuse({{{x_.node, 1}, CodedTensor(Tensor(Shape{1, 2}, DType::kUInt8), {})}}, {"[Placeholder \"x\"]", "no output 1"});
}

TEST_F(SessionTest, TensorsOfAnotherGraphAreRefusedWhereAPlanHasTheirName) {
  const Graph other = graph_.clone();
  Session session(graph_);
  session.train_step(loss_, optim::Sgd({}), feeds_);
  session.run(fetch({y_}), feeds_);
  for (const Output& y : {other.output_at("y"), Output{}})
    EXPECT_TRUE(mentions(error_of([&] { session.run(fetch({y}), feeds_); }), {"not of this graph"}));
  for (const Output& loss : {other.output_at("loss"), Output{}, Output{loss_.node, 1}})
    EXPECT_NE(error_of([&] { session.train_step(loss, optim::Sgd({}), feeds_); }), "");
}

TEST_F(SessionTest, AFeedThatThisRunDoesNotNeedIsFine) {
  const Output labels = placeholder(graph_, "labels", {1}, DType::kInt32);
  Session session(graph_);
  EXPECT_EQ(session.run(fetch({x_}), {{x_, fed_}, {labels, Tensor(Shape{1}, DType::kInt32)}}).fetched.size(), 1u);
}

TEST_F(SessionTest, OnlyTrainingCommits) {
  const Output seen = observer(graph_, "observer", y_);
  Session session(graph_);
  fill(session);
  session.run(fetch({seen}), feeds_);
  EXPECT_EQ(session.step(), 0);
  EXPECT_EQ(floats(session.variable("observer/total")), (Floats{0}));
  EXPECT_EQ(floats(session.variable("observer/calls")), (Floats{0}));

  // What is fetched is the value from before the update.
  const RunResult result = session.run(fetch({seen, graph_.at("observer/total").output()}, true), feeds_);
  EXPECT_EQ(floats(result.fetched[1]), (Floats{0}));
  EXPECT_EQ(session.step(), 1);
  EXPECT_EQ(floats(session.variable("observer/total")), (Floats{5.5f}));
  session.run(fetch({seen}, true), feeds_);
  EXPECT_EQ(floats(session.variable("observer/total")), (Floats{11}));
  EXPECT_EQ(floats(session.variable("observer/calls")), (Floats{2}));
  EXPECT_EQ(floats(session.variable("w")), (Floats{1, -1, 2, 1}));
}

TEST(SessionTrainingTest, ARunThatThrowsCommitsNothing) {
  Graph graph;
  const Output x = placeholder(graph, "x", {1, 2});
  const Output labels = placeholder(graph, "labels", {1}, DType::kInt32);
  const Output loss = layers::softmax_cross_entropy(graph, observer(graph, "observer", x), labels);
  Session session(graph);
  const Feeds feeds = {{x, Tensor::from<float>({1, 2}, {1, 2})}, {labels, Tensor::from<std::int32_t>({1}, {9})}};
  EXPECT_TRUE(mentions(error_of([&] { session.run(fetch({loss}, true), feeds); }), {"9"}));
  EXPECT_EQ(session.step(), 0);
  EXPECT_EQ(session.quantization_step(), 0);
  EXPECT_EQ(floats(session.variable("observer/total")), (Floats{0}));
  EXPECT_EQ(floats(session.variable("observer/calls")), (Floats{0}));
}

TEST_F(SessionTest, ATrainingStepFollowsTheGradient) {
  const Output frozen = variable(graph_, "frozen", {1, 2}, Initializer::constant(1), false);
  const Output loss = layers::mean(graph_, "loss2", layers::add(graph_, "more", y_, frozen), {.axes = {0, 1}});
  Session session(graph_);
  fill(session);
  const optim::Sgd sgd({.learning_rate = 0.5, .momentum = 0.5});
  EXPECT_EQ(session.train_step(loss, sgd, feeds_), 3.75f);
  // d loss = [0.5, 0.5], of which the relu passes the first.
  EXPECT_EQ(floats(session.variable("w")), (Floats{0.75f, -1, 1.5f, 1}));
  EXPECT_EQ(floats(session.variable("bias")), (Floats{0.25f, -3}));
  EXPECT_EQ(floats(session.variable("frozen")), (Floats{1, 1}));
  EXPECT_EQ(session.step(), 1);
  // The same gradient again: the velocity is 0.5 * 0.5 + 0.5.
  session.train_step(loss, sgd, feeds_);
  EXPECT_EQ(floats(session.variable("bias")), (Floats{-0.125f, -3}));
}

TEST_F(SessionTest, ALossMustBeAScalar) {
  Session session(graph_);
  const optim::Sgd sgd({});
  EXPECT_TRUE(mentions(error_of([&] { session.train_step(y_, sgd, feeds_); }), {"scalar"}));
  EXPECT_TRUE(mentions(error_of([&] { session.train_step({}, sgd, feeds_); }), {"scalar"}));
  EXPECT_EQ(session.step(), 0);
}

TEST_F(SessionTest, ARewriteBetweenStepsKeepsVariablesAndInitialisesNewOnes) {
  Session session(graph_);
  fill(session);
  const optim::Sgd sgd({.learning_rate = 0.5, .momentum = 0.5});
  session.train_step(loss_, sgd, feeds_);
  const Floats bias = floats(session.variable("bias"));

  const Output scale = variable(graph_, "scale", {1, 2}, Initializer::constant(2));
  const Output scaled = layers::mul(graph_, "scaled", y_, scale);
  graph_.reroute(y_, scaled);
  EXPECT_EQ(floats(session.variable("bias")), bias);
  EXPECT_EQ(floats(session.variable("scale")), (Floats{2, 2}));
  EXPECT_EQ(session.step(), 1);
  // x w + bias is [3.75, 1] + [0.25, -3] by now.
  EXPECT_EQ(session.train_step(loss_, sgd, feeds_), 4.0f);
  // The momentum of the first step (0.5) lives on: 0.5 * 0.5 + 1.
  EXPECT_EQ(floats(session.variable("bias")), (Floats{0.25f - 0.5f * 1.25f, -3}));

  graph_.reroute(scaled, y_);
  graph_.erase(*scaled.node);
  graph_.erase(*scale.node);
  EXPECT_TRUE(mentions(error_of([&] { session.variable("scale"); }), {"no variable \"scale\""}));
  EXPECT_FALSE(session.variables().contains("scale"));
  session.train_step(loss_, sgd, feeds_);
  EXPECT_EQ(session.step(), 3);
}

TEST_F(SessionTest, AnotherGraphMayTakeTheGraphsPlace) {
  Session session(graph_);
  fill(session);
  session.run(fetch({y_}), feeds_);
  graph_ = graph_.clone();
  const Feeds feeds = {{graph_.at("x").output(), fed_}};
  EXPECT_EQ(floats(session.run(fetch({graph_.at("y").output()}), feeds).fetched[0]), (Floats{5.5f, 0}));
}

TEST(SessionSeedTest, TheSeedDeterminesEveryBit) {
  Graph graph;
  const Output x = placeholder(graph, "x", {8, 6});
  const Output w = variable(graph, "w", {6, 6});
  const Output dropped = layers::dropout(graph, "drop", layers::matmul(graph, "xw", x, w), {.rate = 0.5});
  const Output loss = layers::mean(graph, "loss", layers::square(graph, "square", dropped), {.axes = {0, 1}});
  const auto train = [&](std::uint64_t seed) {
    Session session(graph, {.seed = seed});
    const optim::Sgd sgd({.learning_rate = 0.1, .momentum = 0.9});
    Tensor ones(Shape{8, 6});
    std::ranges::fill(ones.values<float>(), 1.0f);
    for (int step = 0; step < 3; ++step) session.train_step(loss, sgd, {{x, ones}});
    return floats(session.variable("w"));
  };
  EXPECT_EQ(train(1), train(1));
  EXPECT_NE(train(1), train(2));
}

TEST(SessionNonFiniteTest, NamesTheStepAndTheFirstNodeAndKeepsNothing) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2});
  const Output w = variable(graph, "w", {2}, Initializer::constant(1));
  const Output fine = layers::mul(graph, "fine", observer(graph, "observer", x), w);
  const Output root = layers::rsqrt(graph, "root", fine);
  const Output loss = layers::mean(graph, "loss", layers::relu(graph, "after", root), {.axes = {0}});
  Session session(graph);
  const optim::Sgd sgd({.learning_rate = 0.5});
  const auto step = [&](float a, float b) { session.train_step(loss, sgd, {{x, Tensor::from<float>({2}, {a, b})}}); };
  step(1, 1);
  const Floats kept = floats(session.variable("w"));

  const auto message_of = [&](float a, float b) -> std::string {
    try {
      step(a, b);
    } catch (const NonFiniteLoss& error) {
      return error.what();
    }
    return "no NonFiniteLoss";
  };
  EXPECT_TRUE(mentions(message_of(-1, 1), {"NaN", "step 2", "[Rsqrt \"root\"]"}));
  EXPECT_TRUE(mentions(message_of(0, 1), {"infinite", "step 2", "[Rsqrt \"root\"]"}));
  EXPECT_TRUE(mentions(message_of(std::numeric_limits<float>::quiet_NaN(), 1), {"step 2", "[Placeholder \"x\"]"}));
  EXPECT_EQ(session.step(), 1);
  EXPECT_EQ(session.quantization_step(), 1);
  EXPECT_EQ(floats(session.variable("w")), kept);
  EXPECT_EQ(floats(session.variable("observer/total")), (Floats{2}));
  EXPECT_EQ(floats(session.variable("observer/calls")), (Floats{1}));
  step(1, 1);
  EXPECT_EQ(session.step(), 2);
}

/// Of a training step; "" when it passes.
std::string non_finite_update(Session& session, Output loss, const Optimizer& optimizer, const Feeds& feeds) {
  try {
    session.train_step(loss, optimizer, feeds);
  } catch (const NonFiniteUpdate& error) {
    return error.what();
  }
  return "";
}

// Behind the relu nothing of the infinite root is seen but in the gradient: 0 * infinity.
TEST(SessionNonFiniteTest, AGradientThatIsNotFiniteNamesItsVariableAndKeepsNothing) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2});
  const Output fine = variable(graph, "fine", {2}, Initializer::constant(1));
  const Output w = variable(graph, "w", {2}, Initializer::constant(1));
  const Output seen = observer(graph, "observer", layers::mul(graph, "xw", x, w));
  const Output hidden = layers::relu(
      graph, "hidden",
      layers::sub(graph, "minus", fine, layers::rsqrt(graph, "root", layers::square(graph, "square", seen))));
  const Output loss = layers::mean(graph, "loss", hidden, {.axes = {0}});
  Session session(graph);
  const optim::Sgd sgd({.learning_rate = 0.5, .momentum = 0.5});
  const auto feeds = [&](float a) { return Feeds{{x, Tensor::from<float>({2}, {a, 2})}}; };
  EXPECT_EQ(non_finite_update(session, loss, sgd, feeds(2)), "");
  const Safetensors before = session.checkpoint();
  const std::string message = non_finite_update(session, loss, sgd, feeds(0));
  EXPECT_TRUE(mentions(message, {"gradient of variable \"w\"", "NaN", "step 2", "loss was finite"})) << message;
  const Safetensors after = session.checkpoint();
  for (const auto& [name, tensor] : before.tensors)
    EXPECT_EQ(std::memcmp(tensor.raw(), after.tensors.at(name).raw(), tensor.bytes()), 0) << name;
  EXPECT_EQ(non_finite_update(session, loss, sgd, feeds(2)), "");
  EXPECT_EQ(session.step(), 2);
}

TEST(SessionNonFiniteTest, AnUpdatedVariableThatIsNotFiniteIsNamedAndKeepsNothing) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2});
  const Output w = variable(graph, "w", {2}, Initializer::constant(1));
  const Output seen = observer(graph, "observer", x);
  const Output loss =
      layers::mean(graph, "loss", layers::relu(graph, "hidden", layers::mul(graph, "y", seen, w)), {.axes = {0}});
  Session session(graph);
  const optim::Sgd sgd({.learning_rate = 0.5});
  // The observer adds them up.
  const std::string message = non_finite_update(session, loss, sgd, {{x, Tensor::from<float>({2}, {-3e38f, -3e38f})}});
  EXPECT_TRUE(mentions(message, {"new value of variable \"observer/total\"", "infinite", "step 1"})) << message;
  EXPECT_EQ(floats(session.variable("observer/total")), (Floats{0}));
  EXPECT_EQ(floats(session.variable("w")), (Floats{1, 1}));
  EXPECT_EQ(session.step(), 0);
}

TEST(SessionNonFiniteTest, ARunInTrainingThatOverflowsKeepsNothing) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2});
  const Output seen = observer(graph, "observer", x);
  Session session(graph);
  const auto message_of = [&](float value) -> std::string {
    try {
      session.run(fetch({seen}, true), {{x, Tensor::from<float>({2}, {value, value})}});
    } catch (const NonFiniteUpdate& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_TRUE(mentions(message_of(-3e38f), {"new value of variable \"observer/total\" became infinite in step 1"}));
  EXPECT_TRUE(mentions(message_of(std::numeric_limits<float>::quiet_NaN()), {"\"observer/total\" became NaN"}));
  EXPECT_EQ(floats(session.variable("observer/total")), (Floats{0}));
  EXPECT_EQ(floats(session.variable("observer/calls")), (Floats{0}));
  EXPECT_EQ(session.step(), 0);
  EXPECT_EQ(message_of(1), "");
  EXPECT_EQ(session.step(), 1);
  session.checkpoint();
}

TEST(SessionNonFiniteTest, AnUpdateThatOverflowsNeverReachesACheckpoint) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2});
  const Output w = variable(graph, "w", {2}, Initializer::constant(1));
  const Output loss = layers::mean(graph, "loss", layers::mul(graph, "y", x, w), {.axes = {0}});
  Session session(graph);
  session.train_step(loss, optim::Sgd({.learning_rate = 1e30}), {{x, Tensor::from<float>({2}, {1e30f, 0})}});
  EXPECT_TRUE(mentions(error_of([&] { session.checkpoint(); }), {"\"w\"", "not finite", "step 1"}));
}

TEST_F(SessionTest, SetVariableChecksNameShapeAndValues) {
  Session session(graph_);
  fill(session);
  const auto refuse = [&](const std::string& name, const Tensor& value, const std::vector<std::string>& parts) {
    EXPECT_TRUE(mentions(error_of([&] { session.set_variable(name, value); }), parts));
    EXPECT_EQ(floats(session.variable("bias")), (Floats{0.5f, -3}));
  };
  refuse("bia", Tensor(Shape{2}), {"no variable \"bia\""});
  refuse("x", Tensor(Shape{1, 2}), {"no variable \"x\""});
  refuse("bias", Tensor(Shape{3}), {"\"bias\"", "[2]", "[3]"});
  refuse("bias", Tensor(), {"\"bias\"", "empty"});
  refuse("bias", Tensor(Shape{2}, DType::kInt32), {"int32", "float32"});
  refuse("bias", Tensor::from<float>({2}, {1, NAN}), {"\"bias\"", "not finite"});
  refuse("bias", Tensor::from<double>({2}, {1, 1e300}), {"\"bias\"", "not finite"});
  session.set_variable("bias", Tensor::from<double>({2}, {1, 2}));
  EXPECT_EQ(floats(session.variable("bias")), (Floats{1, 2}));
}

TEST_F(SessionTest, PlanMemoryIsThatOfTheLastRun) {
  Session session(graph_);
  EXPECT_EQ(session.plan_memory().nodes, 0);
  session.run(fetch({y_}), feeds_);
  EXPECT_EQ(session.plan_memory().nodes, 6);
  EXPECT_EQ(session.plan_memory().dropped_nodes, 1);
  EXPECT_GT(session.plan_memory().arena, 0u);
}

// The counter runs from the step in which the graph first has a quantizer; the step with counter >= delay quantizes.
TEST_F(SessionTest, QuantizersWaitForTheirDelay) {
  Session session(graph_);
  fill(session);
  session.run(fetch({y_}, true), feeds_);
  const Output late = observer(graph_, "late", y_, {.delay = 2});
  const auto value = [&](bool training) { return floats(session.run(fetch({late}, training), feeds_).fetched[0])[0]; };
  EXPECT_EQ(value(true), 5.5f);
  EXPECT_EQ(value(false), 5.5f);
  EXPECT_EQ(session.quantization_step(), 1);
  EXPECT_EQ(value(true), -5.5f);
  EXPECT_EQ(value(false), -5.5f);
  EXPECT_EQ(session.step(), 3);
  EXPECT_EQ(session.quantization_step(), 2);
  session.set_quantization_step(0);
  EXPECT_EQ(value(false), 5.5f);
  EXPECT_THROW(session.set_quantization_step(-5), std::invalid_argument);
  EXPECT_EQ(session.quantization_step(), 0);
}

}  // namespace
}  // namespace miniqat::session_test
