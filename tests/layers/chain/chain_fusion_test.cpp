// What becomes part of a chain, what must not, and that whatever the plan does, the values are those of the reference.
#include "layers/chain/chain_fusion.h"

#include <algorithm>

#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "tests/layers/chain/chain_case.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::chain_fusion_test {
namespace {

using namespace testing;
using quantize::FakeQuantAttributes;
using quantize::RangeKind;

constexpr std::int64_t kChannels = 8;

/// A graph in the making: nodes named by their type, vectors and placeholders as they are wanted.
class ChainFusion : public ::testing::Test {
 protected:
  Output feed(const char* name, const Shape& shape = {4, 4, 4, kChannels}) { return placeholder(g, name, shape); }
  Output vector(const char* name, bool trainable = true) {
    return variable(g, name, {kChannels}, Initializer::constant(0), trainable);
  }
  Output norm(Output x, const BatchNormAttributes& attributes = {.epsilon = 0.5, .decay = 0.75}) {
    return batch_norm(g, "norm", x, vector("gamma"), vector("beta"), vector("mean", false), vector("variance", false),
                      attributes);
  }
  Output quantizer(Output x, const FakeQuantAttributes& attributes = {}, int channel_axes = 0) {
    return quantize::fake_quant(g, "quant", x, attributes, {}, channel_axes);
  }

  /// Values and gradients (of the sum of `loss`, and what is fetched) on both backends, with `loss` any tensor.
  void expect_reference(const std::vector<Output>& fetches, Output loss, bool training = true) {
    RunRequest request = {.fetches = fetches, .gradients_of = loss, .training = training};
    for (const Node* node : g.nodes()) {
      const auto* variable = node->as<Variable>();
      if (node->type() == "Placeholder" || (variable != nullptr && variable->trainable))
        request.gradient_targets.push_back(node->output());
    }
    Session fast(g), reference(g, {.backend = Backend::kReference});
    for (Session* session : {&fast, &reference})
      for (auto& [name, value] : session->variables()) value.assign(numbers(value.shape(), name));
    Feeds feeds;
    for (const Node* node : g.nodes())
      if (node->type() == "Placeholder")
        feeds.emplace_back(node->output(), numbers(node->output().shape(), node->name()));
    for (int round = 0; round < 2; ++round) {
      const RunResult got = fast.run(request, feeds), wanted = reference.run(request, feeds);
      for (std::size_t k = 0; k < fetches.size(); ++k)
        expect_close(got.fetched[k], wanted.fetched[k], fetches[k].name(), 1e-5);
      for (std::size_t k = 0; k < got.gradients.size(); ++k)
        expect_close(got.gradients[k], wanted.gradients[k], "gradient of " + request.gradient_targets[k].node->name(),
                     1e-5);
      const NamedTensors variables = fast.variables();
      for (const auto& [name, value] : reference.variables()) expect_close(variables.at(name), value, name, 1e-5);
    }
    // Working in place, nothing may write over what belongs to others.
    for (auto& [output, tensor] : feeds)
      expect_same_bits(tensor, numbers(output.shape(), output.node->name()), "fed " + output.name());
    for (const auto& [name, value] : fast.variables())
      if (g.find(name) != nullptr && g.find(name)->as<Variable>()->trainable)
        expect_same_bits(value, numbers(value.shape(), name), name);
  }

  /// Multiples of 1/8; those of variances are positive, those of range ends have the end's sign.
  static Tensor numbers(const Shape& shape, const std::string& name) {
    Tensor tensor(shape);
    Random random(hash_text(name));
    const float low = name.ends_with("variance") || name.ends_with("max") ? 1 : name.ends_with("min") ? -24 : -16;
    const std::uint64_t count = name.ends_with("variance") || name.ends_with("max") || name.ends_with("min") ? 20 : 33;
    for (float& value : tensor.values<float>()) value = 0.125f * (low + static_cast<float>(random.below(count)));
    if (name.ends_with("num_updates")) std::ranges::fill(tensor.values<float>(), 0.0f);
    return tensor;
  }

  PlanRequest request(const std::vector<Output>& fetches, std::optional<Output> loss = {}) const {
    PlanRequest request = {.fetches = fetches, .gradients_of = loss, .training = true, .quantization_step = 1};
    if (loss)
      for (const Node* node : g.nodes())
        if (node->type() == "Placeholder") request.gradient_targets.push_back(node->output());
    return request;
  }

  Graph g;
};

TEST_F(ChainFusion, WhatIsFetchedEndsAChain) {
  const Output biased = bias_add(g, "biased", feed("x"), vector("bias"));
  const Output clamped = relu(g, "clamped", biased);
  expect_fused(g, request({clamped}), {biased.node, clamped.node});
  expect_alone(g, request({biased, clamped}), clamped);
  expect_reference({biased, clamped}, clamped);
}

TEST_F(ChainFusion, WhatIsReadTwiceEndsAChain) {
  const Output biased = bias_add(g, "biased", feed("x"), vector("bias"));
  const Output clamped = relu(g, "clamped", biased);
  const Output other = square(g, "other", biased);
  expect_alone(g, request({clamped, other}), clamped);
  expect_reference({clamped, other}, sub(g, "loss", clamped, other));
}

TEST_F(ChainFusion, TheLossEndsAChain) {
  const Output biased = bias_add(g, "biased", feed("x"), vector("bias"));
  const Output clamped = relu(g, "clamped", biased);
  expect_alone(g, request({clamped}, biased), clamped);
  expect_reference({clamped}, biased);
}

TEST_F(ChainFusion, ATensorAddedToItselfIsReadTwice) {
  const Output biased = bias_add(g, "biased", feed("x"), vector("bias"));
  const Output doubled = add(g, "doubled", biased, biased);
  const Output clamped = relu(g, "clamped", doubled);
  expect_alone(g, request({clamped}), doubled);
  expect_reference({clamped}, clamped);
}

/// The chain's input is its addend, too.
TEST_F(ChainFusion, AResidualAroundAChainMayBePartOfIt) {
  const Output x = feed("x"), shifted = sub(g, "shifted", x, feed("y"));
  const Output biased = bias_add(g, "biased", shifted, vector("bias"));
  const Output sum = add(g, "sum", shifted, biased);
  const Output rounded = quantizer(relu(g, "clamped", sum));
  expect_fused(g, request({rounded}), {biased.node, sum.node, g.find("clamped"), rounded.node});
  expect_reference({rounded}, mul(g, "loss", rounded, feed("weighting")));
}

TEST_F(ChainFusion, TwoChainsMeetInOneSum) {
  const Output a = bias_add(g, "a", feed("x"), vector("bias_a")), b = bias_add(g, "b", feed("y"), vector("bias_b"));
  const Output sum = add(g, "sum", a, b), clamped = relu(g, "clamped", sum);
  const Output half = mul(g, "half", clamped, feed("weighting"));
  expect_fused(g, request({half}), {a.node, sum.node, clamped.node});
  expect_reference({half}, half);
}

TEST_F(ChainFusion, PoolsThatOverlapOrLeaveTheImageStandAlone) {
  const Output x = feed("x", {2, 5, 5, kChannels});
  for (const PoolAttributes& pool :
       {PoolAttributes{.window = {3, 3}, .strides = {2, 2}}, PoolAttributes{.window = {2, 2}, .strides = {1, 1}},
        PoolAttributes{.window = {2, 2}, .strides = {3, 3}},
        PoolAttributes{.window = {2, 2}, .padding = Padding::kSame},
        PoolAttributes{.window = {2, 2}, .padding = Padding::kExplicit, .pads = {1, 1, 1, 1}}}) {
    const std::string name = "pool" + std::to_string(g.size());
    const Output clamped =
        relu(g, name + "/clamped", bias_add(g, name + "/biased", x, vector((name + "/bias").c_str())));
    const Output pooled = max_pool(g, name, clamped, pool);
    expect_alone(g, request({pooled}), pooled);
    expect_reference({pooled}, mul(g, name + "/loss", pooled, feed((name + "/weighting").c_str(), pooled.shape())));
  }
}

TEST_F(ChainFusion, APoolBehindASumOrANormStandsAlone) {
  const Output sum = add(g, "sum", feed("x"), feed("y"));
  const Output pooled = max_pool(g, "pooled", relu(g, "clamped", sum));
  const Output normal = norm(feed("z"));
  const Output again = max_pool(g, "again", relu(g, "positive", normal));
  expect_fused(g, request({pooled, again}), {sum.node, g.find("clamped")});
  expect_fused(g, request({pooled, again}), {normal.node, g.find("positive")});
  for (const Output& output : {pooled, again}) expect_alone(g, request({pooled, again}), output);
  expect_reference({pooled, again}, sub(g, "loss", pooled, again));
}

TEST_F(ChainFusion, QuantizersPerChannelStandAlone) {
  const Output clamped = relu(g, "clamped", bias_add(g, "biased", feed("x"), vector("bias")));
  const Output rounded = quantizer(clamped, {.bits = 4}, 1);
  expect_alone(g, request({rounded}), rounded);
  expect_reference({rounded}, rounded);
}

/// The ends of a range that is given have gradients themselves.
TEST_F(ChainFusion, QuantizersWithAGivenRangeStandAloneWhileDifferentiating) {
  const Output clamped = relu(g, "clamped", bias_add(g, "biased", feed("x"), vector("bias")));
  const Output min = variable(g, "min", {}), max = variable(g, "max", {});
  const Output rounded =
      g.add("quant", quantize::FakeQuant::make(FakeQuantAttributes{.bits = 3, .range = RangeKind::kFixed}),
            {clamped, min, max})
          .output();
  expect_alone(g, request({rounded}, rounded), rounded);
  expect_fused(g, request({rounded}), {g.find("biased"), clamped.node, rounded.node});
  expect_reference({rounded}, rounded);
}

TEST_F(ChainFusion, ATrainedFactorStandsApartFromANorm) {
  const Output scaled = mul(g, "scaled", feed("x"), vector("factor"));
  const Output clamped = relu(g, "clamped", norm(scaled));
  expect_fused(g, request({clamped}, clamped), {g.find("norm"), clamped.node});
  expect_reference({clamped}, mul(g, "loss", clamped, feed("weighting")));
}

/// Their gradients come back through nodes that are none of the chain's last.
TEST_F(ChainFusion, StatisticsOfANormInAChainHaveGradients) {
  const Output x = sub(g, "x", feed("left"), feed("right"));
  const Output normal = norm(x);
  const Output clamped = relu(g, "clamped", normal);
  expect_fused(g, request({clamped, normal.node->output(1)}), {normal.node, clamped.node});
  const Output row = reshape(g, "row", clamped, {.shape = {-1}});
  expect_reference({clamped}, normal.node->output(1));
  expect_reference({clamped}, square(g, "squares", normal.node->output(2)));
  const Output mixed = mul(g, "mixed", normal.node->output(1), normal.node->output(2));
  expect_reference({row}, concat(g, "all", {row, mixed}));
}

/// What the statistics lead to may come back as an addend: a chain would wait for itself.
TEST_F(ChainFusion, StatisticsThatAreReadKeepTheAddendOut) {
  const Output normal = norm(feed("x", {4, kChannels}));
  const Output wide = add(g, "wide", feed("zeros", {4, kChannels}), square(g, "squared", normal.node->output(2)));
  const Output sum = add(g, "sum", normal, wide);
  const Output clamped = relu(g, "clamped", sum);
  expect_fused(g, request({clamped}), {wide.node, sum.node, clamped.node});
  expect_alone(g, request({clamped}), normal);
  expect_reference({clamped}, mul(g, "loss", clamped, feed("weighting", {4, kChannels})));
}

/// So may a quantizer's range, where it is given.
TEST_F(ChainFusion, StatisticsThatAreReadKeepAGivenRangeOut) {
  const Output normal = norm(feed("x", {4, kChannels}));
  const Output largest = mean(g, "largest", normal.node->output(2), {.axes = {0}});
  const Output least = sub(g, "least", mean(g, "average", normal.node->output(1), {.axes = {0}}), largest);
  const Output rounded =
      g.add("quant", quantize::FakeQuant::make(FakeQuantAttributes{.bits = 3, .range = RangeKind::kFixed}),
            {normal, least, largest})
          .output();
  expect_alone(g, request({rounded}), rounded);
  Session fast(g), reference(g, {.backend = Backend::kReference});
  for (Session* session : {&fast, &reference})
    for (auto& [name, value] : session->variables()) value.assign(numbers(value.shape(), name));
  const Tensor x = numbers({4, kChannels}, "x");
  const RunRequest run = {.fetches = {rounded}, .training = true};
  const Feeds feeds = {{g.find("x")->output(), x}};
  expect_close(fast.run(run, feeds).fetched[0], reference.run(run, feeds).fetched[0], "rounded");
}

TEST_F(ChainFusion, ViewsBeforeAndBehindAChain) {
  const Output x = feed("x", {4, 16 * kChannels});
  const Output image = reshape(g, "image", x, {.shape = {4, 4, 4, kChannels}});
  const Output clamped = relu(g, "clamped", bias_add(g, "biased", image, vector("bias")));
  const Output rounded = quantizer(clamped);
  const Output flat = reshape(g, "flat", rounded, {.shape = {4, -1}});
  const Output next = relu6(g, "next", bias_add(g, "next/biased", flat, variable(g, "wide", {16 * kChannels})));
  expect_fused(g, request({next}), {g.find("biased"), clamped.node, rounded.node});
  expect_reference({next}, mul(g, "loss", next, feed("weighting", next.shape())));
  expect_reference({image, flat, next}, g.find("loss")->output());
}

/// Chains work in place where they may: not on what is fed, not on variables, nor on views of them.
TEST_F(ChainFusion, FeedsAndVariablesStay) {
  const Output weights = variable(g, "weights", {16, kChannels});
  const Output a = relu(g, "a", bias_add(g, "a/biased", weights, vector("a/bias")));
  const Output seen = reshape(g, "seen", weights, {.shape = {4, 4, kChannels}});
  const Output b = relu6(g, "b", bias_add(g, "b/biased", seen, vector("b/bias")));
  const Output c = quantizer(relu(g, "c", add(g, "c/sum", feed("x", {16, kChannels}), feed("y", {16, kChannels}))));
  const Output sum = add(g, "sum", a, c);
  expect_reference({a, b, c, sum}, sum);
  expect_reference({b}, b);
  expect_reference({c}, c, false);
}

TEST_F(ChainFusion, AChainTakesWhatItsInputHasElsewhere) {
  const Output x = sub(g, "x", feed("left"), feed("right"));
  const Output clamped = relu(g, "clamped", bias_add(g, "biased", x, vector("bias")));
  const Output later = mul(g, "later", clamped, x);
  expect_reference({later}, later);
}

}  // namespace
}  // namespace miniqat::layers::chain_fusion_test
