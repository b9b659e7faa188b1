// Conversion of random nets: those that people build convert and agree with their evaluation graphs; whatever else
// there is agrees or is refused in a sentence.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/engine/session.h"
#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "quantize/affine.h"
#include "quantize/convert/convert.h"
#include "quantize/fake_quant.h"
#include "tests/errors.h"
#include "tests/fewer_cases.h"
#include "tests/quantize/convert/integer_check.h"
#include "tests/quantize/fold/folding_ways.h"
#include "tests/quantize/random_net.h"
#include "tests/quantize/trained_net.h"

namespace miniqat::quantize::convert_random_test {
namespace {

using testing::TrainedNet;

const std::uint64_t kSeeds = testing::tries_all_cases() ? 50 : testing::fewer(25);

RewriteOptions random_options(std::uint64_t seed) {
  miniqat::Random random(mix(seed, 3));
  RewriteOptions options;
  options.weight_bits = 2 + static_cast<int>(random.below(7));
  options.activation_bits = 2 + static_cast<int>(random.below(7));
  options.symmetric = random.below(2) == 0;
  options.per_channel = random.below(2) == 0;
  options.quantize_input = random.below(2) == 0;
  options.bn_fold = random.below(2) == 0 ? BnFold::kTf : BnFold::kSingle;
  options.symmetric_weights = random.below(3) == 0;
  testing::draw_late_folding(options, miniqat::Random(mix(seed, hash_text("late"))));
  return options;
}

class ConvertRandom : public ::testing::Test {
 protected:
  void SetUp() override { set_thread_count(1); }
  void TearDown() override {
    EXPECT_LE(static_cast<double>(all_.different), 0.01 * static_cast<double>(all_.elements));
  }

  /// What it is refused with; empty when it converts, and then it must agree.
  std::string convert_and_check(const TrainedNet& net) {
    integer::Model model;
    const std::string refusal =
        testing::error_of([&] { model = convert(net.evaluation, net.variables, {.input = testing::kPictures}); });
    if (!refusal.empty()) return refusal;
    const Tensor images = testing::images_for(net.evaluation, model, 1);
    const auto [elements, different] = testing::expect_faithful(net.evaluation, net.variables, model, images);
    all_.elements += elements;
    all_.different += different;
    return {};
  }

  testing::Agreement all_;
};

TEST_F(ConvertRandom, WellFormedNetsAgree) {
  for (std::uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(concat("seed ", seed));
    const TrainedNet net = testing::train_briefly(testing::well_formed_net(seed), random_options(seed), seed);
    EXPECT_EQ(convert_and_check(net), "");
  }
}

/// Every third range of activations or so becomes [0, 0], as after a Relu that has died; the others become those of
/// what is left: biases alone, in places.
void kill_activations(TrainedNet& net, std::uint64_t seed) {
  miniqat::Random random(mix(seed, 17));
  Graph graph = net.evaluation.clone();
  Session session(graph);
  session.restore({.tensors = net.variables, .metadata = {}}, Session::Restore::kVariables, "test");
  Feeds feeds;
  for (const Node* node : graph.nodes()) {
    if (node->type() != "Placeholder") continue;
    Tensor pictures(node->output().shape());
    for (float& pixel : pictures.values<float>())
      pixel = integer::dequantize(testing::kPictures, static_cast<std::int32_t>(random.below(256)));
    feeds.emplace_back(node->output(), pictures);
  }
  for (const Node* node : graph.topological_order()) {
    const auto* quantizer = node->as<FakeQuant>();
    if (!quantizer || quantizer->range != RangeKind::kMovingAverage) continue;
    Range<float> range;
    if (random.below(3) > 0) {
      const Tensor x = session.run({.fetches = {node->input(0)}}, feeds).fetched[0];
      const auto [min, max] = std::ranges::minmax(x.values<float>());
      range = widen_to_zero(Range<float>{min, max});
    }
    session.set_variable(node->input(1).node->name(), Tensor::scalar(range.min));
    session.set_variable(node->input(2).node->name(), Tensor::scalar(range.max));
  }
  net.variables = session.variables();
}

/// Given equal inputs, nothing is more than a step apart: no scale of an activation that is all zero may count.
TEST_F(ConvertRandom, NetsWithDeadActivationsAgree) {
  int dead = 0;
  for (std::uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(concat("seed ", seed));
    TrainedNet net = testing::train_briefly(testing::well_formed_net(seed), random_options(seed), seed);
    kill_activations(net, seed);
    const integer::Model model = convert(net.evaluation, net.variables, {.input = testing::kPictures});
    const Tensor images = testing::images_for(net.evaluation, model, 1);
    for (const testing::OperationCheck& check : testing::check_operations(net.evaluation, net.variables, model, images))
      EXPECT_LE(check.largest, 1) << check.operation << ": " << check.different << " of " << check.elements;
    dead += static_cast<int>(std::ranges::count_if(
        model.operations, [](const auto& operation) { return operation.clamp.min == operation.clamp.max; }));
  }
  EXPECT_GT(dead, static_cast<int>(kSeeds) / 4);
}

std::set<const Node*> above(const Node& node) {
  std::set<const Node*> found = {&node};
  for (const Output& input : node.inputs()) found.merge(above(*input.node));
  return found;
}

/// The tensor that is made of most, among those that depend on one placeholder.
Output deepest_of_one_input(const Graph& graph) {
  Output deepest;
  std::size_t most = 0;
  for (const Node* node : graph.nodes()) {
    const std::set<const Node*> parts = above(*node);
    const auto inputs = std::ranges::count_if(parts, [](const Node* part) { return part->type() == "Placeholder"; });
    if (inputs != 1 || parts.size() <= most) continue;
    most = parts.size();
    deepest = node->output();
  }
  return deepest;
}

TEST_F(ConvertRandom, AnyNetAgreesOrIsRefused) {
  std::uint64_t converted = 0;
  for (std::uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(concat("seed ", seed));
    Graph graph = testing::random_net(seed);
    graph.set_outputs({deepest_of_one_input(graph)});
    TrainedNet net;
    try {
      net = testing::train_briefly(graph, random_options(seed), seed);
    } catch (const NonFiniteLoss&) {
      continue;
    }
    const std::string refusal = convert_and_check(net);
    if (refusal.empty()) {
      ++converted;
    } else if (!refusal.starts_with("this is a float network")) {
      // (All of its layers reach other outputs.)
      EXPECT_TRUE(testing::mentions(refusal, {"["})) << "no node is named";
    }
  }
  EXPECT_GE(converted, kSeeds / 8);
}

}  // namespace
}  // namespace miniqat::quantize::convert_random_test
