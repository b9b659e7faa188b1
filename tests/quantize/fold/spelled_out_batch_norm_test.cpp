#include "quantize/fold/spelled_out_batch_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "core/engine/session.h"
#include "tests/layers/op_runner.h"
#include "tests/quantize/fold/primitive_batch_norm.h"

namespace miniqat::quantize::spelled_out_batch_norm_test {
namespace {

using testing::expect_close;
using testing::Form;
using testing::Order;
using testing::PrimitiveOps;
using testing::random_tensor;
using testing::Statistics;

std::vector<std::string> types(const Graph& graph) {
  std::vector<std::string> found;
  for (const Node* node : graph.nodes()) found.emplace_back(node->type());
  std::ranges::sort(found);
  return found;
}

/// Of a training step in double: y of the node "loss", then the gradients of all trainable variables and of x.
std::vector<Tensor> training_step(Graph& graph) {
  Session session(graph, {.backend = Backend::kReference, .precision = DType::kFloat64});
  const Output loss = graph.at("loss").output();
  RunRequest request = {.fetches = {loss}, .gradients_of = loss, .training = true};
  for (const Node* node : graph.nodes()) {
    const auto* variable = node->as<Variable>();
    if (node->name() == "x" || (variable && variable->trainable)) request.gradient_targets.push_back(node->output());
  }
  const Shape shape = loss.shape();
  const Feeds feeds = {{graph.at("x").output(), random_tensor(shape, 1, -1, 2)},
                       {graph.at("weights").output(), random_tensor(shape, 2)}};
  RunResult result = session.run(request, feeds);
  std::ranges::move(result.gradients, back_inserter(result.fetched));
  return std::move(result.fetched);
}

void expect_none(const Graph& graph) { EXPECT_TRUE(find_unfused_batch_norms(graph).empty()); }

class UnfusedBatchNormForms : public ::testing::TestWithParam<std::tuple<Statistics, Order, bool, bool, bool, bool>> {
 protected:
  Form form() const {
    const auto [statistics, order, scaling, swapped, bias_add, identities] = GetParam();
    return {statistics, order, scaling, swapped, bias_add, identities};
  }
};

TEST_P(UnfusedBatchNormForms, FusedComputesTheSame) {
  // BiasAdd takes no bias that keeps x's dimensions.
  if (form().bias_add && form().statistics == Statistics::kKeptDims && form().order >= Order::kX_RG) return;
  SCOPED_TRACE(form());
  PrimitiveOps p{.form = form()};
  const Output y = p.batch_norm(p.images());
  p.graph.set_outputs({y});
  p.loss(y);
  const std::vector<Tensor> expected = training_step(p.graph);
  ASSERT_EQ(expected.size(), form().scaling ? 4 : 3);

  const auto all = find_unfused_batch_norms(p.graph);
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all[0].x.name(), "x");
  EXPECT_EQ(all[0].gamma, form().scaling ? p.graph.at("bn/gamma").output() : Output{});
  EXPECT_EQ(all[0].beta.name(), "bn/beta");
  EXPECT_EQ(all[0].epsilon, 0.01);
  EXPECT_EQ(all[0].result, y.node);
  ASSERT_EQ(all[0].takes_moments(), form().takes_moments());

  Node& fused = fuse_batch_norm(p.graph, all[0]);
  p.graph.verify();
  EXPECT_EQ(p.graph.outputs().front(), fused.output());
  std::vector<std::string> left = {"BatchNorm", "Mul", "Placeholder", "Placeholder"};
  left.push_back(form().scaling ? "Variable" : "Constant");
  left.insert(left.end(), 3, "Variable");
  std::ranges::sort(left);
  EXPECT_EQ(types(p.graph), left);

  const std::vector<Tensor> actual = training_step(p.graph);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    expect_close(actual[i], expected[i], "tensor " + std::to_string(i), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(
    All, UnfusedBatchNormForms,
    ::testing::Combine(::testing::Values(Statistics::kStored, Statistics::kSquare, Statistics::kProduct,
                                         Statistics::kBackward, Statistics::kOfSquares, Statistics::kOfProducts,
                                         Statistics::kKeptDims),
                       ::testing::Values(Order::kDR_G, Order::kDG_R, Order::kD_RG, Order::kX_RG, Order::kXR_G),
                       ::testing::Bool(), ::testing::Bool(), ::testing::Bool(), ::testing::Bool()));

TEST(UnfusedBatchNorm, MomentsGetFreshMovingStatistics) {
  PrimitiveOps p{.scope = "block/bn"};
  p.batch_norm(p.images());
  Node& fused = fuse_batch_norm(p.graph, find_unfused_batch_norms(p.graph).at(0));
  EXPECT_EQ(fused.name(), "block/bn/BatchNorm");
  const auto& attributes = *fused.as<layers::BatchNorm>();
  EXPECT_EQ(attributes.epsilon, 0.01);
  EXPECT_EQ(attributes.decay, 0.99);
  EXPECT_TRUE(attributes.is_training);
  EXPECT_EQ(fused.input(3).name(), "block/bn/moving_mean");
  EXPECT_EQ(fused.input(4).name(), "block/bn/moving_variance");
  for (const auto& [name, value] : {std::pair("moving_mean", 0), {"moving_variance", 1}}) {
    const auto& variable = *p.graph.at(std::string("block/bn/") + name).as<Variable>();
    EXPECT_FALSE(variable.trainable);
    EXPECT_EQ(variable.initializer.kind, Initializer::Kind::kConstant);
    EXPECT_EQ(variable.initializer.value, value);
  }
}

TEST(UnfusedBatchNorm, StoredStatisticsStay) {
  PrimitiveOps p{.form = {.statistics = Statistics::kStored, .scaling = false}};
  p.batch_norm(p.images());
  Node& fused = fuse_batch_norm(p.graph, find_unfused_batch_norms(p.graph).at(0));
  EXPECT_FALSE(fused.as<layers::BatchNorm>()->is_training);
  EXPECT_EQ(fused.input(1).name(), "bn/ones");
  EXPECT_EQ(fused.input(3).name(), "bn/mean");
  EXPECT_EQ(fused.input(4).name(), "bn/variance");
}

TEST(UnfusedBatchNorm, ConstantsMayTakeThePlaceOfVariables) {
  PrimitiveOps p;
  const auto values = [&](const std::string& name) { return layers::constant(p.graph, name, {3}, {1, 2, 3}); };
  const Output rsqrt = layers::rsqrt(p.graph, "Rsqrt", p.add(values("variance"), p.epsilon()));
  p.add(p.mul(p.sub(p.images(), values("mean")), p.mul(rsqrt, values("gamma"))), values("beta"));
  const auto unfused = find_unfused_batch_norms(p.graph);
  const Node& fused = fuse_batch_norm(p.graph, unfused.at(0));
  p.graph.verify();
  EXPECT_EQ(fused.input(1).name(), "gamma");
  EXPECT_EQ(fused.input(2).name(), "beta");
  EXPECT_EQ(fused.input(3).name(), "mean");
  EXPECT_EQ(fused.input(4).name(), "variance");
}

TEST(UnfusedBatchNorm, EpsilonMayBeAVectorOfOneValue) {
  for (const bool uniform : {true, false}) {
    PrimitiveOps p;
    const Output x = p.images();
    const auto [centre, spread] = p.statistics(x);
    p.normalise(x, centre, spread, layers::constant(p.graph, "epsilon", {3}, {0.01, 0.01, uniform ? 0.01 : 0.02}));
    EXPECT_EQ(find_unfused_batch_norms(p.graph).size(), uniform ? 1 : 0);
  }
}

TEST(UnfusedBatchNorm, VarianceThatCouldBeEpsilonIsFoundOnce) {
  PrimitiveOps p;
  const Output variance = layers::constant(p.graph, "variance", {3}, {2});
  p.normalise(p.images(), p.vector("mean", 0, false), variance, layers::constant(p.graph, "epsilon", {3}, {0.01}));
  EXPECT_EQ(find_unfused_batch_norms(p.graph).size(), 1);
}

TEST(UnfusedBatchNorm, RowsOfAMatrix) {
  PrimitiveOps p;
  const Output x = layers::placeholder(p.graph, "x", {5, 3});
  const Output centre = layers::mean(p.graph, "centre", x, {.axes = {0}});
  const Output spread = layers::mean(p.graph, "spread", p.square(p.sub(x, centre)), {.axes = {0}});
  p.normalise(x, centre, spread, p.epsilon());
  EXPECT_EQ(find_unfused_batch_norms(p.graph).size(), 1);
}

TEST(UnfusedBatchNorm, OneRow) {
  // Here nothing tells x from a vector that keeps its dimensions but where it stands.
  for (const bool swapped : {false, true}) {
    PrimitiveOps p{.form = {.order = Order::kX_RG, .swapped = swapped}};
    const Output x = layers::placeholder(p.graph, "x", {1, 1, 1, 3});
    p.batch_norm(x);
    const auto all = find_unfused_batch_norms(p.graph);
    ASSERT_EQ(all.size(), 1);
    EXPECT_EQ(all[0].x, x);
  }
}

TEST(UnfusedBatchNorm, AScaledTensorIsNotTakenApart) {
  PrimitiveOps p{.form = {.order = Order::kX_RG, .scaling = false}};
  const Output x = p.mul(p.images(), p.vector("scale", 2));
  p.batch_norm(x);
  const auto all = find_unfused_batch_norms(p.graph);
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all[0].x, x);
  EXPECT_EQ(all[0].gamma, Output{});
}

TEST(UnfusedBatchNorm, OtherReadersKeepInnerTensors) {
  PrimitiveOps p;
  const Output y = p.batch_norm(p.images());
  const Output centre = p.graph.at("bn/Mean").output();
  const Output monitor = layers::relu(p.graph, "monitor", centre);
  p.graph.set_outputs({p.graph.at("bn/Rsqrt").output(), y});
  fuse_batch_norm(p.graph, find_unfused_batch_norms(p.graph).at(0));
  p.graph.verify();
  EXPECT_EQ(monitor.node->input(0), centre);
  EXPECT_EQ(p.graph.outputs()[0].name(), "bn/Rsqrt");
  EXPECT_EQ(p.graph.outputs()[1].name(), "bn/BatchNorm");
  // The scaling and the shift are gone; what the kept tensors are made of is not.
  EXPECT_EQ(types(p.graph),
            (std::vector<std::string>{"Add", "BatchNorm", "Constant", "Mean", "Mean", "Placeholder", "Relu", "Rsqrt",
                                      "Square", "Sub", "Variable", "Variable", "Variable", "Variable"}));
}

TEST(UnfusedBatchNorm, TwoOfThemOneOnTheOther) {
  for (const Statistics statistics : {Statistics::kOfSquares, Statistics::kStored}) {
    PrimitiveOps p{.form = {.statistics = statistics}};
    const Output first = p.batch_norm(p.images());
    // Moments here would make the gradient of the first beta zero but for rounding.
    p.form.statistics = Statistics::kStored;
    const Output second = p.batch_norm(first);
    p.loss(second);
    const std::vector<Tensor> expected = training_step(p.graph);
    const auto all = find_unfused_batch_norms(p.graph);
    ASSERT_EQ(all.size(), 2);
    EXPECT_EQ(all[0].result, first.node);
    EXPECT_EQ(all[1].x, first);
    const Node& last = fuse_batch_norm(p.graph, all[1]);
    const Node& before = fuse_batch_norm(p.graph, all[0]);
    p.graph.verify();
    EXPECT_EQ(last.input(0), before.output());
    EXPECT_EQ(std::ranges::count(types(p.graph), "Add"), 0);
    const std::vector<Tensor> actual = training_step(p.graph);
    for (std::size_t i = 0; i < actual.size(); ++i)
      expect_close(actual[i], expected[i], "tensor " + std::to_string(i), 1e-9);
  }
}

TEST(UnfusedBatchNorm, TwoShareStatisticsAndEpsilon) {
  PrimitiveOps p;
  const Output x = p.images();
  const auto [centre, spread] = p.statistics(x);
  const Output epsilon = p.epsilon();
  const Output a = p.normalise(x, centre, spread, epsilon);
  const Output b = p.normalise(x, centre, spread, epsilon);
  p.loss(p.mul(a, b));
  const std::vector<Tensor> expected = training_step(p.graph);
  auto all = find_unfused_batch_norms(p.graph);
  ASSERT_EQ(all.size(), 2);
  fuse_batch_norm(p.graph, all[1]);
  p.graph.verify();
  EXPECT_EQ(find_unfused_batch_norms(p.graph).size(), 1);
  fuse_batch_norm(p.graph, all[0]);
  p.graph.verify();
  EXPECT_EQ(std::ranges::count(types(p.graph), "Mean"), 0);
  const std::vector<Tensor> actual = training_step(p.graph);
  for (std::size_t i = 0; i < actual.size(); ++i)
    expect_close(actual[i], expected[i], "tensor " + std::to_string(i), 1e-9);
}

class UnfusedBatchNormRefusals : public ::testing::TestWithParam<Order> {
 protected:
  PrimitiveOps p_ = {.form = {.order = GetParam()}};
  Output x_ = p_.images();
  Output other_ = p_.images("other");
};

TEST_P(UnfusedBatchNormRefusals, MomentsOfAnotherTensor) {
  const auto [centre, spread] = p_.statistics(other_);
  p_.normalise(x_, centre, spread, p_.epsilon());
  p_.normalise(x_, centre, p_.mean(p_.square(p_.sub(x_, centre))), p_.epsilon());
  expect_none(p_.graph);
}

TEST_P(UnfusedBatchNormRefusals, VarianceOfAnotherTensor) {
  for (const Statistics statistics : {Statistics::kSquare, Statistics::kOfSquares}) {
    p_.form.statistics = statistics;
    p_.normalise(x_, p_.statistics(x_).first, p_.statistics(other_).second, p_.epsilon());
  }
  const Output centre = p_.mean(x_);
  p_.normalise(x_, centre, p_.mean(p_.square(p_.sub(other_, centre))), p_.epsilon());
  p_.normalise(x_, centre, p_.sub(p_.mean(p_.square(other_)), p_.square(centre)), p_.epsilon());
  expect_none(p_.graph);
}

TEST_P(UnfusedBatchNormRefusals, VarianceAboutAnotherMean) {
  const Output centre = p_.mean(x_);
  const Output elsewhere = p_.mean(other_);
  p_.normalise(x_, centre, p_.mean(p_.square(p_.sub(x_, elsewhere))), p_.epsilon());
  p_.normalise(x_, centre, p_.sub(p_.mean(p_.square(x_)), p_.square(elsewhere)), p_.epsilon());
  p_.normalise(x_, centre, p_.mean(p_.mul(p_.sub(x_, centre), p_.sub(x_, elsewhere))), p_.epsilon());
  expect_none(p_.graph);
}

TEST_P(UnfusedBatchNormRefusals, WrongAxes) {
  for (const std::vector<std::int64_t>& axes : {std::vector<std::int64_t>{}, {1, 2}, {0, 1, 3}, {0, 1, -1}}) {
    const auto average = [&](Output x) {
      return layers::mean(p_.graph, p_.name("Mean"), x, {.axes = axes, .keep_dims = true});
    };
    for (const bool wrong_mean : {true, false}) {
      const Output centre = wrong_mean ? average(x_) : p_.mean(x_);
      const Output squares = p_.square(p_.sub(x_, centre));
      p_.normalise(x_, centre, wrong_mean ? p_.mean(squares) : average(squares), p_.epsilon());
    }
  }
  expect_none(p_.graph);
}

TEST_P(UnfusedBatchNormRefusals, EpsilonIsNoUsableConstant) {
  const auto [centre, spread] = p_.statistics(x_);
  p_.normalise(x_, centre, spread, layers::variable(p_.graph, "epsilon", {}));
  p_.normalise(x_, centre, spread, layers::placeholder(p_.graph, "fed", {}));
  p_.normalise(x_, centre, spread, layers::constant(p_.graph, "negative", {}, {-0.01}));
  p_.normalise(x_, centre, spread, layers::constant(p_.graph, "several", {4, 2, 2, 3}, {0.01}));
  p_.normalise(x_, centre, spread, layers::constant(p_.graph, "outranks", {1, 1, 1, 1, 3}, {0.01}));
  expect_none(p_.graph);
}

TEST_P(UnfusedBatchNormRefusals, GammaIsNoParameterVector) {
  const auto [centre, spread] = p_.statistics(x_);
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{1, 3}, Shape{2, 3}, Shape{4, 2, 2, 3}})
    p_.normalise(x_, centre, spread, p_.epsilon(), layers::variable(p_.graph, p_.name("gamma"), shape));
  p_.normalise(x_, centre, spread, p_.epsilon(), layers::placeholder(p_.graph, "gamma", {3}));
  expect_none(p_.graph);
}

TEST_P(UnfusedBatchNormRefusals, StatisticsThatAreNotStored) {
  const Output mean = p_.vector("mean", 0, false);
  const Output variance = p_.vector("variance", 1, false);
  const auto [centre, spread] = p_.statistics(x_);
  const auto scalar = [&] { return layers::variable(p_.graph, p_.name("scalar"), {}, {}, false); };
  p_.normalise(x_, p_.vector("trained", 0), variance, p_.epsilon());
  p_.normalise(x_, mean, p_.vector("trained", 1), p_.epsilon());
  p_.normalise(x_, mean, layers::placeholder(p_.graph, "fed", {3}), p_.epsilon());
  p_.normalise(x_, centre, variance, p_.epsilon());
  p_.normalise(x_, mean, spread, p_.epsilon());
  p_.normalise(x_, scalar(), variance, p_.epsilon());
  p_.normalise(x_, mean, scalar(), p_.epsilon());
  expect_none(p_.graph);
}

INSTANTIATE_TEST_SUITE_P(Orders, UnfusedBatchNormRefusals, ::testing::Values(Order::kDR_G, Order::kD_RG, Order::kX_RG));

TEST(UnfusedBatchNorm, ShiftByOtherFactorsIsNone) {
  PrimitiveOps p{.form = {.order = Order::kX_RG}};
  const Output x = p.images();
  const auto [centre, spread] = p.statistics(x);
  const auto rsqrt = [&, spread = spread] {
    return layers::rsqrt(p.graph, p.name("Rsqrt"), p.add(spread, p.epsilon()));
  };
  const auto shifted = [&, centre = centre](Output slope, Output of_mean) {
    p.add(p.mul(x, slope), p.sub(p.vector("beta", 0), p.mul(centre, of_mean)));
  };
  const Output shared = rsqrt();
  const Output gamma = p.vector("gamma", 1);
  shifted(p.mul(shared, gamma), p.mul(shared, p.vector("gamma", 1)));
  shifted(p.mul(shared, gamma), shared);
  shifted(shared, p.mul(shared, gamma));
  shifted(shared, layers::rsqrt(p.graph, p.name("Rsqrt"), p.add(p.square(spread), p.epsilon())));
  // Backwards: mean * slope - beta.
  p.add(p.mul(x, shared), p.sub(p.mul(centre, shared), p.vector("beta", 0)));
  expect_none(p.graph);
}

TEST(UnfusedBatchNorm, MeanLessXIsNone) {
  PrimitiveOps p;
  const Output x = p.images();
  const auto [centre, spread] = p.statistics(x);
  const Output rsqrt = layers::rsqrt(p.graph, "Rsqrt", p.add(spread, p.epsilon()));
  p.add(p.mul(p.sub(centre, x), rsqrt), p.vector("beta", 0));
  expect_none(p.graph);
}

TEST(UnfusedBatchNorm, BetaMustBeAParameterVector) {
  PrimitiveOps p;
  const Output x = p.images();
  const auto [centre, spread] = p.statistics(x);
  const Output rsqrt = layers::rsqrt(p.graph, "Rsqrt", p.add(spread, p.epsilon()));
  const Output normalised = p.mul(p.sub(x, centre), rsqrt);
  p.add(normalised, x);
  p.add(normalised, layers::variable(p.graph, "scalar", {}));
  p.add(normalised, layers::variable(p.graph, "map", {2, 2, 3}));
  p.add(normalised, layers::placeholder(p.graph, "fed", {3}));
  expect_none(p.graph);
}

TEST(UnfusedBatchNorm, PlainBiasAndAffineAreNone) {
  PrimitiveOps p;
  const Output x = p.images();
  p.add(x, p.vector("beta", 0));
  layers::bias_add(p.graph, "BiasAdd", x, p.vector("beta", 0));
  p.add(p.mul(x, p.vector("gamma", 1)), p.vector("beta", 0));
  p.add(p.mul(p.sub(x, p.mean(x)), p.vector("gamma", 1)), p.vector("beta", 0));
  expect_none(p.graph);
}

TEST(UnfusedBatchNorm, VectorsAlongOneRowOnly) {
  // x [3] has no axes to take moments of.
  PrimitiveOps p{.form = {.statistics = Statistics::kStored}};
  p.batch_norm(layers::placeholder(p.graph, "x", {3}));
  expect_none(p.graph);
}

}  // namespace
}  // namespace miniqat::quantize::spelled_out_batch_norm_test
