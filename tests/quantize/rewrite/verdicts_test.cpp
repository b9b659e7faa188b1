#include "quantize/rewrite/verdicts.h"

#include <gtest/gtest.h>

#include <set>

#include "core/text/json.h"
#include "models/models.h"
#include "quantize/fake_quant.h"
#include "quantize/op_roles.h"
#include "quantize/rewrite/layer_bits.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::verdicts_test {
namespace {

using testing::Names;
using testing::ToyGraph;

Names names_of(const std::vector<QuantizedTensor>& tensors) {
  Names names;
  for (const QuantizedTensor& tensor : tensors) names.push_back(tensor.quantizer);
  return names;
}

/// What a rewrite for evaluation reports; the graph stays as it is.
std::vector<LayerQuantizers> quantizers_of(const Graph& in_float, const RewriteOptions& options) {
  Graph graph = in_float.clone();
  return create_eval_graph(graph, options).quantizers;
}

TEST(LayerQuantizers, AreThoseOfWeightsAndOutput) {
  ToyGraph toy;
  toy.graph.set_outputs({toy.conv_bias("b", toy.conv_relu("a", toy.images()))});
  const std::vector<LayerQuantizers> layers = quantizers_of(toy.graph, {});
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].layer, "a/Conv2D");
  EXPECT_EQ(names_of(layers[0].weights), Names{"a/weights_quant"});
  EXPECT_EQ(names_of(layers[0].output), Names{"a/act_quant"});
  EXPECT_EQ(layers[0].weights[0].elements, 4);
  EXPECT_EQ(layers[0].output[0].elements, 32);
  EXPECT_EQ(layers[1].layer, "b/Conv2D");
}

TEST(LayerQuantizers, OfASharedTensorBelongToTheFirstLayer) {
  ToyGraph toy;
  const Output images = toy.images();
  const Output weights = toy.filter("weights");
  const Output a = toy.conv("x/a", images, weights), b = toy.conv("x/b", images, weights);
  const Output sum = layers::add(toy.graph, "sum", a, b);
  toy.graph.set_outputs({layers::relu(toy.graph, "Relu", sum)});
  const std::vector<LayerQuantizers> layers = quantizers_of(toy.graph, {});
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(names_of(layers[0].weights), Names{"x/a/weights_quant"});
  EXPECT_EQ(names_of(layers[0].output), (Names{"x/a/conv_quant", "x/act_quant"}));
  EXPECT_EQ(names_of(layers[1].weights), Names{});
  EXPECT_EQ(names_of(layers[1].output), Names{"x/b/conv_quant"});
}

TEST(LayerQuantizers, OfAResidualSumAreThatOfTheSumAndThatOfLayers) {
  ToyGraph toy;
  const Output x = toy.conv_relu("in", toy.images());
  const Output sum = layers::add(toy.graph, "Add", toy.conv_bias("block/b", x), x);
  toy.graph.set_outputs({toy.conv_bias("c", layers::relu(toy.graph, "Relu", sum))});
  const std::vector<LayerQuantizers> layers = quantizers_of(toy.graph, {.activation_bits = 4, .sums_bits = 8});
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(names_of(layers[0].output), (Names{"in/act_quant", "in/edge_quant"}));
  EXPECT_EQ(names_of(layers[1].output), (Names{"block/b/conv_quant", "block/act_quant"}));
  EXPECT_EQ(names_of(layers[2].output), Names{"c/act_quant"});
}

/// The rewrite itself is the judge: bits of one layer change these quantizers and no others.
TEST(LayerQuantizers, AreThoseThatTheRewriteChanges) {
  for (const std::string model : {"lenet5", "resnet20", "mobilenet_v1", "mobilenet_v2"}) {
    Graph graph;
    const Output images = layers::placeholder(graph, "images", {2, 32, 32, 3});
    graph.set_outputs({models::find_model(model).build(graph, images, {.classes = 10, .width = 0.25})});
    const std::vector<LayerQuantizers> layers = quantizers_of(graph, {});
    EXPECT_GE(layers.size(), 5u);
    for (const LayerQuantizers& layer : layers) {
      Graph rewritten = graph.clone();
      create_eval_graph(
          rewritten,
          {.layer_bits = {{.pattern = pattern_of_layer(layer.layer), .weight_bits = 3, .activation_bits = 5}}});
      std::set<std::string> with_three, with_five;
      for (const Node* node : rewritten.nodes()) {
        if (!is_quantizer(*node)) continue;
        const std::int64_t bits = node->as<FakeQuant>()->bits;
        if (bits == 3) with_three.insert(node->name());
        if (bits == 5) with_five.insert(node->name());
      }
      const Names weights = names_of(layer.weights), output = names_of(layer.output);
      EXPECT_EQ(with_three, std::set(weights.begin(), weights.end())) << model << " " << layer.layer;
      EXPECT_EQ(with_five, std::set(output.begin(), output.end())) << model << " " << layer.layer;
    }
  }
}

TEST(PatternOfLayer, FitsOnlyItsLayer) {
  EXPECT_EQ(pattern_of_layer("conv1/Conv2D"), "conv1/Conv2D");
  EXPECT_EQ(pattern_of_layer("conv1/Conv2D_Fold"), "conv1/Conv2D");
  EXPECT_EQ(unfolded_name("conv1/Conv2D_Fold"), "conv1/Conv2D");
  EXPECT_EQ(pattern_of_layer("a[1]*?\\/Conv2D"), "a\\[1]\\*\\?\\\\/Conv2D");
  for (const std::string name : {"conv1/Conv2D_Fold", "a[1]/Conv2D", "a*/b", "a\\b", "a?"}) {
    EXPECT_TRUE(matches_layer(pattern_of_layer(name), name)) << name;
    EXPECT_EQ(
        layer_bits_from_json(
            layer_bits_to_json(std::vector<LayerBits>{{.pattern = pattern_of_layer(name), .weight_bits = 4}}).dump(),
            "bits")
            .at(0)
            .pattern,
        pattern_of_layer(name));
  }
  EXPECT_FALSE(matches_layer(pattern_of_layer("a*"), "ab"));
  EXPECT_FALSE(matches_layer(pattern_of_layer("a[1]"), "a1"));
}

}  // namespace
}  // namespace miniqat::quantize::verdicts_test
