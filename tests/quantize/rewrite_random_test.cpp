// What must hold of the rewrite whatever the graph looks like.
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "core/graph_json.h"
#include "core/random.h"
#include "quantize/layer_patterns.h"
#include "quantize/quantize.h"
#include "quantize/rewrite.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize {
namespace {

using testing::ToyGraph;

/// Any ops in any order on images of one shape; sources are drawn from all that is there, so tensors get many readers.
ToyGraph random_net(std::uint64_t seed) {
  layers::register_ops();
  register_ops();
  ToyGraph toy;
  Graph& graph = toy.graph;
  Random random(seed);
  const std::vector<Output> filters = {toy.filter("w0"), layers::identity(graph, "w1", toy.filter("w1/stored"))};
  std::vector<Output> tensors = {toy.images()};
  const auto any = [&] { return tensors[random.below(tensors.size())]; };
  using Maker = std::function<Output(const std::string& name, Output x)>;
  const std::vector<Maker> makers = {
      [&](auto name, Output x) { return toy.conv(name, x); },
      [&](auto name, Output x) { return toy.conv(name, x, filters[random.below(2)]); },
      [&](auto name, Output x) { return toy.conv_bias(name, x); },
      [&](auto name, Output x) { return toy.conv_relu(name, x); },
      [&](auto name, Output x) { return toy.batch_norm(name, x); },
      [&](auto name, Output x) { return layers::relu(graph, name, x); },
      [&](auto name, Output x) { return layers::relu6(graph, name, x); },
      [&](auto name, Output x) { return layers::identity(graph, name, x); },
      [&](auto name, Output x) { return layers::softmax(graph, name, x); },
      [&](auto name, Output x) {
        return layers::reshape(graph, name, x, {.shape = {1, 4, 4, 2}});
      },
      [&](auto name, Output x) { return layers::add(graph, name, toy.vector(name + "/v"), x); },
      [&](auto name, Output x) { return layers::add(graph, name, x, any()); },
      [&](auto name, Output x) { return layers::mul(graph, name, x, any()); },
      [&](auto name, Output x) { return fake_quant(graph, name, x, {.bits = 3}); },
  };
  for (int i = 0; i < 24; ++i) {
    const std::string name = concat(i % 3 == 0 ? "net/" : "", "n", i);
    tensors.push_back(makers[random.below(makers.size())](name, any()));
  }
  graph.set_outputs({any(), any()});
  return toy;
}

/// What a node computes from when quantizers and copies are left out.
Output meaning(Output tensor) {
  while (tensor.node->type() == "FakeQuant" || tensor.node->type() == "Identity") tensor = tensor.node->input(0);
  return tensor;
}

bool is_quantized(Output weights) {
  while (weights.node->type() == "Identity") weights = weights.node->input(0);
  return weights.node->type() == "FakeQuant";
}

class RewriteRandom : public ::testing::TestWithParam<int> {
 protected:
  std::uint64_t seed() const { return static_cast<std::uint64_t>(GetParam()); }
  RewriteOptions options() const {
    RewriteOptions options;
    if (seed() % 3 == 0) options.scope = "net";
    options.quantize_input = seed() % 2 == 0;
    return options;
  }
};

TEST_P(RewriteRandom, KeepsWhatTheGraphComputes) {
  ToyGraph toy = random_net(seed());
  const Graph original = toy.graph.clone();
  create_training_graph(toy.graph, options());
  for (const Node* node : original.nodes()) {
    const Node& now = toy.graph.at(node->name());
    for (std::size_t i = 0; i < node->inputs().size(); ++i)
      EXPECT_EQ(meaning(now.inputs()[i]).name(), meaning(node->inputs()[i]).name()) << node->name() << " input " << i;
  }
}

TEST_P(RewriteRandom, MatchedLayersHaveQuantizedWeights) {
  ToyGraph toy = random_net(seed());
  create_training_graph(toy.graph, options());
  for (const LayerMatch& match : find_layers(toy.graph, options().scope).matches)
    EXPECT_TRUE(is_quantized(match.layer->input(match.weight_input))) << match.layer->name();
}

TEST_P(RewriteRandom, TwiceIsTheSameAsOnce) {
  ToyGraph toy = random_net(seed());
  create_training_graph(toy.graph, options());
  const std::string once = graph_to_json(toy.graph);
  EXPECT_TRUE(create_training_graph(toy.graph, options()).inserted.empty());
  EXPECT_EQ(graph_to_json(toy.graph), once);
  EXPECT_TRUE(create_eval_graph(toy.graph, options()).inserted.empty());
}

TEST_P(RewriteRandom, StrictRefusesAllOrNothing) {
  ToyGraph toy = random_net(seed());
  const std::string before = graph_to_json(toy.graph);
  RewriteOptions strict = options();
  strict.strict = true;
  ToyGraph lenient = random_net(seed());
  create_training_graph(lenient.graph, options());
  try {
    create_training_graph(toy.graph, strict);
    EXPECT_EQ(graph_to_json(toy.graph), graph_to_json(lenient.graph));
  } catch (const Error&) {
    EXPECT_EQ(graph_to_json(toy.graph), before);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RewriteRandom, ::testing::Range(0, 40));

}  // namespace
}  // namespace miniqat::quantize
