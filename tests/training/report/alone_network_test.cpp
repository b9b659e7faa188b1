#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/engine/session.h"
#include "core/graph/source_ops.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "layers/activations.h"
#include "layers/layers.h"
#include "quantize/quantize.h"
#include "quantize/rewrite/rewrite.h"
#include "training/model_source.h"
#include "training/report/quantization_points.h"

namespace miniqat::training::alone_network_test {
namespace {

/// A chain of convolutions with a sum of two of them at its end, rewritten for evaluation.
Graph evaluation_graph(int layers) {
  layers::register_ops();
  quantize::register_ops();
  Graph graph;
  Output x = graph.add("images", Placeholder::make({.shape = {2, 6, 6, 3}}), {}).output();
  std::vector<Output> outputs;
  for (int i = 0; i < layers; ++i) {
    const std::string scope = concat("conv", i);
    Node& weights = graph.add(scope + "/weights", Variable::make({.shape = {3, 3, 3, 3}}), {});
    x = graph.add(scope + "/Conv2D", layers::Conv2d::make({.padding = Padding::kSame}), {x, weights.output()}).output();
    x = graph.add(scope + "/Relu", layers::Relu::make(), {x}).output();
    outputs.push_back(x);
  }
  x = graph.add("sum/Add", layers::Add::make(), {outputs.front(), outputs.back()}).output();
  graph.set_outputs({x});
  quantize::create_eval_graph(graph, {});
  return graph;
}

/// Numbers for all of its variables, so that ranges are ranges.
NamedTensors variables_of(Graph& graph) {
  NamedTensors variables = Session(graph).variables();
  Random random(7);
  for (auto& [name, tensor] : variables)
    for (float& value : tensor.values<float>())
      value = name.ends_with("/min") ? -1.0f : name.ends_with("/max") ? 1.0f : random.uniform() - 0.5f;
  return variables;
}

class Runner {
 public:
  Runner(Graph& graph, const NamedTensors& variables) : graph_(graph), session_(graph) {
    session_.restore({.tensors = variables, .metadata = {}}, Session::Restore::kByName, "the test");
  }
  Tensor run(Output fetch) {
    Tensor images(Shape{2, 6, 6, 3});
    Random random(3);
    for (float& value : images.values<float>()) value = random.uniform();
    return session_.run({.fetches = {fetch}}, {{graph_.at("images").output(), images}}).fetched.front();
  }

 private:
  Graph& graph_;
  Session session_;
};

// Each point beside a network of its own in which only its quantizers work.
TEST(AloneNetworkTest, HasTheNumbersOfANetworkForEachPlace) {
  Graph network = evaluation_graph(4);
  const NamedTensors variables = variables_of(network);
  const std::vector<QuantizationPoint> points = find_quantization_points(network);
  ASSERT_GE(points.size(), 5u);
  AloneNetwork all = alone_network(network, points);
  Runner runner(all.graph, variables);
  Graph in_float = with_quantizers(network, {});
  int differing = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    SCOPED_TRACE(points[i].name);
    std::set<std::string> working;
    for (const Node* quantizer : {points[i].weights, points[i].output})
      if (quantizer != nullptr) working.insert(quantizer->name());
    ASSERT_FALSE(working.empty());
    Graph own = with_quantizers(network, working);
    const Tensor expected = Runner(own, variables).run(own.at(points[i].tap().node->name()).output());
    const Tensor found = runner.run(all.alone[i]), exact = runner.run(all.exact[i]);
    EXPECT_TRUE(std::ranges::equal(found.values<float>(), expected.values<float>()));
    differing += std::ranges::equal(found.values<float>(), exact.values<float>()) ? 0 : 1;
  }
  EXPECT_EQ(differing, static_cast<int>(points.size())) << "quantizers that change nothing show nothing";
}

TEST(AloneNetworkTest, GrowsWithTheNetworkAndNotWithItsSquare) {
  const auto size = [](int layers) {
    const Graph network = evaluation_graph(layers);
    return alone_network(network, find_quantization_points(network)).graph.size();
  };
  const std::size_t one = size(50), twice = size(100);
  EXPECT_LE(twice, 2 * one + 50);
  EXPECT_LE(one, 3 * evaluation_graph(50).size());
}

}  // namespace
}  // namespace miniqat::training::alone_network_test
