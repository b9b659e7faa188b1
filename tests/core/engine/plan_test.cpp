#include "core/engine/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/engine/session.h"
#include "core/tensors/random.h"
#include "layers/layers.h"
#include "tests/errors.h"

namespace miniqat::plan_test {
namespace {

using testing::error_of;
using testing::mentions;

/// Small whole numbers: sums and products of them are exact in whatever order they are computed.
Tensor whole_numbers(const Shape& shape, std::uint64_t key) {
  Random random(key);
  Tensor tensor(shape);
  for (float& value : tensor.values<float>()) value = static_cast<float>(random.below(5)) - 2;
  return tensor;
}

/// All variables with whole numbers, too.
void fill_variables(Session& session) {
  for (auto& [name, value] : session.variables()) value.assign(whole_numbers(value.shape(), hash_text(name)));
}

void expect_equal(const Tensor& fast, const Tensor& reference, const std::string& what) {
  ASSERT_EQ(fast.spec(), reference.spec()) << what;
  float largest = 1;
  for (const float value : reference.values<float>()) largest = std::max(largest, std::abs(value));
  for (std::int64_t i = 0; i < fast.elements(); ++i)
    ASSERT_NEAR(fast.data<float>()[i], reference.data<float>()[i], 1e-5f * largest) << what << ", element " << i;
}

/// whole_numbers() as bytes that stand for them.
Feeds as_bytes(const Feeds& feeds) {
  constexpr std::uint8_t kZeroPoint = 2;
  Feeds coded;
  for (const auto& [output, numbers] : feeds) {
    Tensor codes(numbers.shape(), DType::kUInt8);
    std::ranges::transform(numbers.values<float>(), codes.data<std::uint8_t>(),
                           [](float number) { return static_cast<std::uint8_t>(number + kZeroPoint); });
    coded.emplace_back(output, CodedTensor(codes, {1, kZeroPoint}));
  }
  return coded;
}

/// The fast backend overlays tensors, works in place and shares views, the reference backend gives every tensor memory
/// of its own: both must see the same values. So must a plan that is fed bytes, which it unpacks by itself.
void expect_backends_agree(Graph& graph, const RunRequest& request, const Feeds& feeds) {
  Session fast(graph);
  Session reference(graph, {.backend = Backend::kReference});
  fill_variables(fast);
  fill_variables(reference);
  const RunResult wanted = reference.run(request, feeds);
  for (int round = 0; round < 4; ++round) {
    const RunResult got = fast.run(request, round < 2 ? feeds : as_bytes(feeds));
    for (std::size_t k = 0; k < wanted.fetched.size(); ++k)
      expect_equal(got.fetched[k], wanted.fetched[k], concat("fetch ", request.fetches[k].name(), ", round ", round));
    for (std::size_t k = 0; k < wanted.gradients.size(); ++k)
      expect_equal(got.gradients[k], wanted.gradients[k],
                   concat("gradient of ", request.gradient_targets[k].name(), ", round ", round));
  }
}

/// A matrix product of x with a new variable.
Output dense(Graph& graph, const std::string& name, Output x, std::int64_t width) {
  return layers::matmul(graph, name, x, variable(graph, name + "/weights", {x.shape()[-1], width}));
}

TEST(PlanTest, DeadNodesAreDropped) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2, 3});
  const Output used = layers::relu(graph, "used", x);
  dense(graph, "dead", layers::relu(graph, "dead/relu", used), 7);
  const auto plan = compile_plan(graph, {.fetches = {used}});
  EXPECT_EQ(plan->memory.nodes, 2);
  EXPECT_EQ(plan->memory.dropped_nodes, 3);
  ASSERT_EQ(plan->forward.size(), 1u);
  EXPECT_EQ(plan->forward[0].node, used.node);
  EXPECT_TRUE(plan->variables.empty());
}

TEST(PlanTest, BackwardRunsOnlyBetweenLossAndTargets) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2, 3});
  const Output first = dense(graph, "first", x, 4);
  const Output second = dense(graph, "second", first, 5);
  const Output after = layers::relu(graph, "after", second);
  const Output target = graph.at("second/weights").output();
  const auto plan = compile_plan(graph, {.fetches = {after}, .gradients_of = second, .gradient_targets = {target}});
  ASSERT_EQ(plan->backward.size(), 1u);
  EXPECT_EQ(plan->backward[0].node, second.node);
  EXPECT_EQ(plan->backward[0].context.d_inputs[0], nullptr);
  EXPECT_NE(plan->backward[0].context.d_inputs[1], nullptr);
}

TEST(PlanTest, AChainOfLayersNeedsTwoTensors) {
  Graph graph;
  Output y = placeholder(graph, "x", {16, 16});
  for (int i = 0; i < 10; ++i) y = dense(graph, concat("layer", i), y, 16);
  const auto plan = compile_plan(graph, {.fetches = {y}});
  EXPECT_EQ(plan->memory.unshared, 10u * 16 * 16 * 4);
  EXPECT_EQ(plan->memory.arena, 2u * 16 * 16 * 4);
}

TEST(PlanTest, PointwiseOpsAndViewsShareTheirInputsMemory) {
  Graph graph;
  const Output x = placeholder(graph, "x", {16, 16});
  Output y = dense(graph, "layer", x, 16);
  for (int i = 0; i < 10; ++i) {
    y = layers::relu(graph, concat("relu", i), y);
    y = layers::reshape(graph, concat("reshape", i), y, {.shape = {i % 2 == 0 ? 256 : 16, -1}});
  }
  const auto inference = compile_plan(graph, {.fetches = {y}});
  EXPECT_EQ(inference->memory.unshared, 21u * 16 * 16 * 4);
  EXPECT_EQ(inference->memory.arena, 16u * 16 * 4);
  // With gradients: each relu's output stays for its gradient, which flows in one place.
  const auto training = compile_plan(graph, {.gradients_of = y, .gradient_targets = {x}});
  EXPECT_LE(training->memory.arena, 12u * 16 * 16 * 4);
  EXPECT_GT(training->memory.unshared, 42u * 16 * 16 * 4);
}

TEST(PlanTest, AnOpThatReadsItsInputThroughTwoShapesDoesNotWorkInPlace) {
  Graph graph;
  const Output h = dense(graph, "h", placeholder(graph, "x", {1, 2}), 6);
  const Output sum = layers::add(graph, "sum", h, layers::reshape(graph, "view", h, {.shape = {6}}));
  const Output twice = layers::add(graph, "twice", sum, sum);
  const auto plan = compile_plan(graph, {.fetches = {twice}});
  const ForwardContext& of_sum = plan->forward[2].context;
  const ForwardContext& of_twice = plan->forward[3].context;
  EXPECT_EQ(of_sum.input(0).raw(), of_sum.input(1).raw());
  EXPECT_NE(of_sum.output(0).raw(), of_sum.input(0).raw());
  EXPECT_EQ(of_twice.output(0).raw(), of_twice.input(0).raw());
}

TEST(PlanTest, NothingSharesMemoryInTheReferenceBackend) {
  Graph graph;
  Output y = placeholder(graph, "x", {16});
  for (int i = 0; i < 4; ++i) y = layers::relu(graph, concat("relu", i), y);
  const auto plan = compile_plan(graph, {.fetches = {y}, .backend = Backend::kReference});
  EXPECT_EQ(plan->memory.arena, plan->memory.unshared);
}

TEST(PlanTest, WhatCannotBePlannedIsRefused) {
  Graph graph;
  Graph other;
  const Output x = placeholder(graph, "x", {2, 3});
  const Output y = layers::relu(graph, "y", x);
  const Output foreign = placeholder(other, "x", {2, 3});
  const auto refuse = [&](PlanRequest request, const std::vector<std::string>& parts) {
    EXPECT_TRUE(mentions(error_of([&] { compile_plan(graph, request); }), parts));
  };
  refuse({.fetches = {foreign}}, {"not of this graph"});
  refuse({.fetches = {Output{}}}, {"not of this graph"});
  refuse({.gradients_of = foreign, .gradient_targets = {}}, {"not of this graph"});
  refuse({.gradients_of = y, .gradient_targets = {foreign}}, {"not of this graph"});
  refuse({.fetches = {Output{y.node, 1}}}, {"[Relu \"y\"]", "no output 1"});
  refuse({.gradients_of = y, .gradient_targets = {y}}, {"[Relu \"y\"]", "neither"});
  refuse({.fetches = {y}, .precision = DType::kFloat64}, {"float32 only"});
}

TEST(PlanTest, UpdatedInputsMustBeVariablesOfOneNodeOnly) {
  Graph graph;
  const Output x = placeholder(graph, "x", {4, 3});
  const Output gamma = variable(graph, "gamma", {3});
  const Output beta = variable(graph, "beta", {3});
  const Output mean = variable(graph, "mean", {3}, {}, false);
  const Output var = variable(graph, "var", {3}, {}, false);
  const Output first = layers::batch_norm(graph, "first", x, gamma, beta, mean, var);
  const Output second = layers::batch_norm(graph, "second", first, gamma, beta, mean, var);
  const Output copy = layers::identity(graph, "copy", mean);
  const Output third = layers::batch_norm(graph, "third", x, gamma, beta, copy, var);
  const auto request = [](Output fetch, bool training) {
    return PlanRequest{.fetches = {fetch}, .training = training};
  };
  EXPECT_TRUE(mentions(error_of([&] { compile_plan(graph, request(second, true)); }), {"\"second\"", "\"mean\""}));
  EXPECT_TRUE(mentions(error_of([&] { compile_plan(graph, request(third, true)); }),
                       {"[BatchNorm \"third\"]", "[Identity \"copy\"]"}));
  EXPECT_EQ(compile_plan(graph, request(first, true))->staged.size(), 2u);
  EXPECT_TRUE(compile_plan(graph, request(second, false))->staged.empty());
}

TEST(PlanKeyTest, DifferentRequestsHaveDifferentKeys) {
  Graph graph;
  const Output d = placeholder(graph, "d", {2});
  const Output y = layers::relu(graph, "y", d);
  const std::vector<PlanRequest> requests = {{.fetches = {d, y}},
                                             {.fetches = {y, d}},
                                             {.fetches = {y}},
                                             {.gradients_of = y, .gradient_targets = {}},
                                             {.gradients_of = y, .gradient_targets = {d}},
                                             {.fetches = {d}, .gradients_of = y, .gradient_targets = {}},
                                             {.fetches = {y}, .training = true}};
  const Delays delays(graph);
  for (std::size_t i = 0; i < requests.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_NE(plan_key(delays, requests[i]), plan_key(delays, requests[j])) << i << " and " << j;
}

TEST(PlanValuesTest, AnOpInPlaceSparesTensorsThatAreStillRead) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2, 3});
  const Output h = dense(graph, "h", x, 3);
  const Output positive = layers::relu(graph, "positive", h);
  // Both read h after the relu that could have overwritten it.
  const Output sum = layers::add(graph, "sum", h, positive);
  const Output product = layers::mul(graph, "product", sum, h);
  const RunRequest request{.fetches = {product, h, positive},
                           .gradients_of = product,
                           .gradient_targets = {x, graph.at("h/weights").output()}};
  expect_backends_agree(graph, request, {{x, whole_numbers(x.shape(), 1)}});
  expect_backends_agree(graph, {.fetches = {product}}, {{x, whole_numbers(x.shape(), 2)}});
}

TEST(PlanValuesTest, FetchesOfTensorsThatWouldBeOverwritten) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2, 3});
  const Output h = dense(graph, "h", x, 6);
  const Output flat = layers::reshape(graph, "flat", h, {.shape = {12}});
  const Output relu = layers::relu(graph, "relu", flat);
  const Output six = layers::relu6(graph, "six", relu);
  for (const Output fetch : {h, flat, relu, six})
    expect_backends_agree(graph, {.fetches = {six, fetch}, .gradients_of = six, .gradient_targets = {x}},
                          {{x, whole_numbers(x.shape(), 3)}});
}

TEST(PlanValuesTest, ATensorTakenTwiceByOneOp) {
  Graph graph;
  const Output x = placeholder(graph, "x", {3, 3});
  const Output h = dense(graph, "h", x, 3);
  const Output twice = layers::add(graph, "twice", h, h);
  const Output square = layers::mul(graph, "square", twice, twice);
  const Output product = layers::matmul(graph, "product", square, square);
  expect_backends_agree(graph, {.fetches = {product}, .gradients_of = product, .gradient_targets = {x}},
                        {{x, whole_numbers(x.shape(), 4)}});
  expect_backends_agree(graph, {.fetches = {square}}, {{x, whole_numbers(x.shape(), 5)}});
}

// A sum that the plan lacks would be missing in both backends.
TEST(PlanValuesTest, TheGradientOfATensorWithSeveralReadersIsTheirSum) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2});
  const Output y = layers::add(graph, "y", layers::mul(graph, "square", x, x), x);
  const Tensor fed = Tensor::from<float>({2}, std::vector<float>{3, -5});
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    Session session(graph, {.backend = backend});
    const RunResult result = session.run({.fetches = {}, .gradients_of = y, .gradient_targets = {x}}, {{x, fed}});
    expect_equal(result.gradients[0], Tensor::from<float>({2}, std::vector<float>{7, -9}), "2x + 1");
  }
}

// relu must not write over h, which `sum` still reads through another shape.
TEST(PlanValuesTest, ViewsKeepWhatTheyLookAt) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2, 3});
  const Output h = dense(graph, "h", x, 6);
  const Output view = layers::reshape(graph, "view", h, {.shape = {6, 2}});
  const Output relu = layers::relu(graph, "relu", h);
  const Output back = layers::reshape(graph, "back", view, {.shape = {2, 6}});
  const Output sum = layers::add(graph, "sum", relu, back);
  expect_backends_agree(graph, {.fetches = {sum}, .gradients_of = sum, .gradient_targets = {x}},
                        {{x, whole_numbers(x.shape(), 6)}});
}

// Feeds, variables and constants belong to others: a view of them is read, never written.
TEST(PlanValuesTest, ViewsOfFeedsVariablesAndConstantsAreNotWritten) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2, 3});
  const Output w = variable(graph, "w", {6});
  const Output c = constant(graph, "c", {3, 2}, {-1, 1, -2, 2, -3, 3});
  const auto positive = [&](const std::string& name, Output source) {
    const Output view = layers::reshape(graph, name + "/view", source, {.shape = {1, 6}});
    return layers::relu(graph, name + "/relu", layers::identity(graph, name + "/copy", view));
  };
  const Output sum =
      layers::add(graph, "sum", layers::add(graph, "xw", positive("a", x), positive("b", w)), positive("d", c));
  const Tensor fed = whole_numbers(x.shape(), 7);
  const Tensor before = fed.clone();
  expect_backends_agree(graph, {.fetches = {sum, x, w, c}, .gradients_of = sum, .gradient_targets = {x, w}},
                        {{x, fed}});
  expect_equal(fed, before, "the fed tensor");
}

/// Grows a random graph of matrices: branches, shared tensors, views of views, ops that work in place.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t key) : random_(key) {
    for (int i = 0; i < 2; ++i) {
      pool_.push_back(placeholder(graph, concat("x", i), {pick_extent(), pick_extent()}));
      sources.push_back(pool_.back());
    }
    const int length = 4 + static_cast<int>(random_.below(12));
    for (int i = 0; i < length; ++i) grow(concat("n", i));
  }

  Output pick() { return pool_[random_.below(pool_.size())]; }
  Output last() const { return pool_.back(); }

  Graph graph;
  std::vector<Output> sources;

 private:
  std::int64_t pick_extent() { return 1 + static_cast<std::int64_t>(random_.below(4)); }

  Output new_variable(const std::string& name, const Shape& shape) {
    sources.push_back(variable(graph, name, shape));
    return sources.back();
  }

  /// Another tensor of the pool with that shape, or a new variable.
  Output like(const std::string& name, const Shape& shape) {
    for (int attempt = 0; attempt < 4; ++attempt)
      if (const Output other = pick(); other.shape() == shape) return other;
    return new_variable(name + "/w", shape);
  }

  void grow(const std::string& name) {
    // Half of the time from the newest tensor, so that chains arise and not only bushes.
    const Output x = random_.below(2) == 0 ? last() : pick();
    const Shape& shape = x.shape();
    switch (random_.below(9)) {
      case 0:
        pool_.push_back(layers::matmul(graph, name, x, like(name, {shape[1], pick_extent()})));
        break;
      case 1:
        pool_.push_back(layers::add(graph, name, x, like(name, shape)));
        break;
      case 2:
        pool_.push_back(layers::mul(graph, name, x, like(name, shape)));
        break;
      case 3:
        pool_.push_back(layers::relu(graph, name, x));
        break;
      case 4:
        pool_.push_back(layers::reshape(graph, name, x, {.shape = {shape[1], shape[0]}}));
        break;
      case 5:
        pool_.push_back(layers::identity(graph, name, x));
        break;
      case 6:
        pool_.push_back(layers::bias_add(graph, name, x, new_variable(name + "/bias", {shape[1]})));
        break;
      case 7:
        pool_.push_back(layers::concat(graph, name, {x, like(name, shape), x}, {.axis = 0}));
        break;
      default:
        pool_.push_back(layers::relu6(graph, name, x));
    }
  }

  Random random_;
  std::vector<Output> pool_;
};

TEST(PlanValuesTest, RandomGraphsGiveTheReferencesValuesAndGradients) {
  std::size_t arena = 0;
  std::size_t unshared = 0;
  for (std::uint64_t key = 0; key < 200; ++key) {
    RandomGraph random(key);
    RunRequest request{.fetches = {}};
    for (std::uint64_t i = 0; i < 1 + key % 3; ++i) request.fetches.push_back(random.pick());
    Feeds feeds;
    for (const Output& source : random.sources)
      if (source.node->as<Placeholder>() != nullptr) feeds.emplace_back(source, whole_numbers(source.shape(), key));
    expect_backends_agree(random.graph, request, feeds);
    request.gradients_of = random.last();
    request.gradient_targets = random.sources;
    expect_backends_agree(random.graph, request, feeds);
    if (::testing::Test::HasFailure()) FAIL() << "in the graph of key " << key;

    const auto plan = compile_plan(random.graph, {.fetches = request.fetches,
                                                  .gradients_of = request.gradients_of,
                                                  .gradient_targets = request.gradient_targets});
    arena += plan->memory.arena;
    unshared += plan->memory.unshared;
  }
  EXPECT_LT(arena, unshared);
}

}  // namespace
}  // namespace miniqat::plan_test
