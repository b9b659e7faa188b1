#include "quantize/rewrite/rewrite_report.h"

#include <set>

#include "models/models.h"
#include "quantize/op_roles.h"
#include "tests/quantize/rewrite/rewrite_case.h"

namespace miniqat::quantize::rewrite_report_test {
namespace {

using testing::Names;
using testing::RewriteCase;
using testing::ToyGraph;

TEST(RewriteReport, NamesOfStatuses) {
  EXPECT_EQ(name_of(EdgeStatus::kQuantized), "quantized");
  EXPECT_EQ(name_of(EdgeStatus::kFused), "fused");
  EXPECT_EQ(name_of(EdgeStatus::kPassedThrough), "passed through");
  EXPECT_EQ(name_of(EdgeStatus::kInput), "input");
  EXPECT_EQ(name_of(EdgeStatus::kLeftFloat), "left float");
}

TEST(RewriteReport, TextOfASmallClassifier) {
  ToyGraph toy("images | conv_relu conv1 | MaxPool pool/MaxPool | Reshape flat 1 8 | dense fc 3 | loss");
  EXPECT_EQ(create_training_graph(toy.graph).text(),
            R"(2 layers matched, 0 skipped; 4 quantizers inserted

layers
  conv1/Conv2D  matched  layer + bias + Relu: weights conv1/weights -> conv1/weights_quant, output conv1/Relu -> conv1/act_quant
  fc/MatMul     matched  layer: weights fc/weights -> fc/weights_quant, output fc/MatMul -> fc/act_quant

edges
  images         -> conv1/Conv2D   input           the data set brings scale and zero point
  conv1/weights  -> conv1/Conv2D   quantized       conv1/weights_quant
  conv1/Conv2D   -> conv1/BiasAdd  fused           computed with conv1/Conv2D
  conv1/biases   -> conv1/BiasAdd  fused           bias of conv1/Conv2D
  conv1/BiasAdd  -> conv1/Relu     fused           computed with conv1/Conv2D
  conv1/Relu     -> pool/MaxPool   quantized       conv1/act_quant
  pool/MaxPool   -> flat           passed through  range of conv1/act_quant
  flat           -> fc/MatMul      passed through  range of conv1/act_quant
  fc/weights     -> fc/MatMul      quantized       fc/weights_quant
  fc/MatMul      -> loss           quantized       fc/act_quant
  labels         -> loss           input           int32, nothing to quantize
)");
}

TEST(RewriteReport, EmptyGraph) {
  Graph graph;
  EXPECT_EQ(create_training_graph(graph).text(), "0 layers matched, 0 skipped; 0 quantizers inserted\n");
}

const std::vector<RewriteCase> kRows = {
    {"BypassesAreSpelledOut",
     "images | conv_bias b/conv | Add b/Add images | Relu b/Relu | Add c/Add images | Relu c/Relu",
     {},
     {"b/conv/weights_quant", "b/conv/conv_quant", "b/act_quant", "c/Relu/activation_Relu_quant"},
     {"b/conv/Conv2D: matched: layer + bias + bypass + Relu + post-activation bypass: weights b/conv/weights -> "
      "b/conv/weights_quant, before the bypass b/conv/BiasAdd -> b/conv/conv_quant, output b/Relu -> b/act_quant, "
      "after the bypass c/Add -> no quantizer, a Relu follows",
      "b/conv/BiasAdd -> b/Add: quantized: b/conv/conv_quant", "b/Add -> b/Relu: fused: computed with b/conv/Conv2D",
      "images -> b/Add: input: the data set brings scale and zero point",
      "c/Add -> c/Relu: fused: quantized after c/Relu"}},
    {"FoldedBatchNorm",
     "images | conv_relu a | conv b | batch_norm b | Relu b/Relu",
     {},
     {"a/weights_quant", "a/act_quant", "b/weights_quant", "b/act_quant"},
     {"b/BatchNorm: folded: into b/Conv2D_Fold",
      "b/Conv2D: statistics: kept for the statistics of [BatchNorm \"b/BatchNorm\"]",
      "b/Conv2D_Fold: matched: layer + correction + bias + Relu: weights b/mul_fold -> b/weights_quant, output b/Relu "
      "-> b/act_quant",
      "a/Relu -> b/Conv2D: statistics: for batch norm, while it trains",
      "a/Relu -> b/Conv2D_Fold: quantized: a/act_quant",
      "b/Conv2D -> b/BatchNorm: statistics: for batch norm, while it trains",
      "b/BatchNorm:1 -> b/BatchNorm_Fold: fused: folded batch norm",
      "b/weights -> b/correction_mult: fused: weights of b/Conv2D_Fold",
      "b/Conv2D_Fold -> b/post_conv_mul: fused: computed with b/Conv2D_Fold",
      "b/batch_norm_correction:1 -> b/post_conv_mul: fused: folded batch norm"}},
    {"EveryFloatEdgeHasItsReason",
     "images | Square squared | Mul scaled =[]half | conv_bias a | Relu a/one | conv_bias b | Square b/square |"
     "batch_norm b | MaxPool pool 1 | conv c =[1,1,2,2]c/fixed | Softmax softmax | Square square; a/BiasAdd | Square "
     "a/two",
     {},
     {"a/weights_quant", "a/act_quant", "b/weights_quant", "b/act_quant"},
     {"half -> scaled: left float: a parameter, but no layer's weights",
      "scaled -> a/Conv2D: left float: none of its inputs is quantized",
      "a/BiasAdd -> a/one: fused: computed with a/Conv2D",
      "a/BiasAdd -> a/two: left float: read inside a/Conv2D's match, before the quantizer",
      "b/square -> b/BatchNorm: left float: Square outside of any match stays float",
      "b/gamma -> b/BatchNorm: left float: a parameter of a batch norm that stays float",
      "pool -> c/Conv2D: left float: passes on b/BatchNorm: none of its inputs is quantized",
      "b/BatchNorm: not folded: its input comes from [Square \"b/square\"], not from a layer; left float: none of its "
      "inputs is quantized",
      "c/Conv2D: skipped: its weights come from [Constant \"c/fixed\"], not from a Variable",
      "c/Conv2D -> softmax: left float: its weights come from [Constant \"c/fixed\"], not from a Variable",
      "softmax -> square: left float: Softmax outside of any match stays float",
      "note: 3 edges into layers left float: scaled -> a/Conv2D (none of its inputs is quantized), ..."}},
    {"ScopeIsAReason",
     "images | conv_relu a | conv_relu b",
     {.scope = "b"},
     {"b/weights_quant", "b/act_quant"},
     {"a/Conv2D: skipped: outside scope \"b\"", "a/weights -> a/Conv2D: left float: outside scope \"b\"",
      "a/Relu -> b/Conv2D: left float: outside scope \"b\"",
      "note: 2 edges into layers left float: a/weights -> a/Conv2D (outside scope \"b\"), ..."}},
    {"WeightsOnTheirWayToALayer",
     "[1,1,2,1]first | Concat whole [1,1,2,1]second | Identity read; images | conv a read",
     {},
     {"a/weights_quant", "a/act_quant"},
     {"first -> whole: fused: weights of a/Conv2D", "whole -> read: fused: weights of a/Conv2D",
      "read -> a/Conv2D: quantized: a/weights_quant"}},
    {"MatMulOfTwoActivationsIsSkipped",
     "?[2,2]x | MatMul MatMul x",
     {},
     {},
     {"MatMul: skipped: neither operand comes from a Variable",
      "note: 1 edge into layers left float: x -> MatMul (neither operand comes from a Variable)"}},
    {"FloatReluDoesNotTakeWhatIsBeforeIt",
     "more | conv in/b; images | conv in/a | Add in/sum in/b/Conv2D | Add in/twice in/sum | MaxPool pool | Relu "
     "in/Relu;"
     "in/sum | Add in/left in/sum | Relu out/Relu",
     {.scope = "in"},
     {"in/b/weights_quant", "in/b/conv_quant", "in/add_quant", "in/a/weights_quant", "in/a/conv_quant",
      "in/twice/activation_Add_quant", "in/Relu/activation_Relu_quant"},
     {"in/left -> out/Relu: left float: left to out/Relu, which follows"}},
    {"TensorThatFeedsAQuantizerBesideItsReaders",
     "images | conv_relu a | Identity copy | FakeQuant mine 8; a/Relu | conv b",
     {},
     {"a/weights_quant", "b/weights_quant", "b/act_quant"},
     {"a/Relu -> b/Conv2D: left float: read beside its quantizer mine",
      "note: 1 edge into layers left float: a/Relu -> b/Conv2D (read beside its quantizer mine)"}},
    {"ATargetIsMeasuredAsItIs",
     "images | conv_relu a | MeanSquaredError loss images; ?[1,4,4,2]t | Huber other a/Relu",
     {.quantize_input = true},
     {"images/input_quant", "a/weights_quant", "a/act_quant"},
     {"images -> a/Conv2D: quantized: images/input_quant",
      "images -> loss: input: the target of a loss, nothing to quantize", "a/Relu -> loss: quantized: a/act_quant",
      "a/Relu -> other: input: the target of a loss, nothing to quantize"}},
    {"ALossStaysFloat",
     "images | Square squared | MeanSquaredError loss images | Square more",
     {},
     {},
     {"squared -> loss: left float: the loss is computed in float",
      "images -> loss: input: the target of a loss, nothing to quantize",
      "loss -> more: left float: the loss is computed in float"}},
    {"ALossThatOpsComputeStaysFloat",
     "?[2,3]x | dense fc 4 | bias fc | output;"
     "fc/BiasAdd | Sub error ?[2,4]target | Square squared | Reshape flat 1 4 2 1 | Mean loss",
     {},
     {"fc/weights_quant", "fc/BiasAdd > fc/act_quant > error output"},
     {"fc/BiasAdd -> error: quantized: fc/act_quant",
      "error -> squared: left float: reaches neither an output nor a layer"}},
    {"ALossThatLooksLikeANetworkStaysFloat",
     "images | conv_bias a | output;"
     "a/BiasAdd | Relu hinge | Add shifted images | Mul scaled =[]two | Reshape flat 1 8 4 1 | Mean loss",
     {},
     {"a/weights_quant", "a/BiasAdd > a/act_quant > hinge output"},
     {"hinge -> shifted: left float: reaches neither an output nor a layer",
      "shifted -> scaled: left float: reaches neither an output nor a layer"}},
    {"AHeadBesideTheOutputsIsQuantizedButNotItsLoss",
     "images | conv_relu a | output; a/Relu | AvgPool pool 1 | conv_bias aux | Reshape flat 1 8 4 1 | Mean loss",
     {},
     {"a/weights_quant", "a/Relu > a/act_quant > pool output", "aux/weights_quant",
      "aux/BiasAdd > aux/act_quant > flat", "pool > pool/activation_AvgPool_quant > aux/Conv2D"},
     {"pool -> aux/Conv2D: quantized: pool/activation_AvgPool_quant"}},
};

TEST(RewriteReport, SaysWhatWasDone) { for_rows(kRows, testing::expect_rewrite); }

TEST(RewriteReport, CountsLayersAndBatchNorms) {
  const auto first_line = [](const std::string& chains) {
    ToyGraph toy(chains);
    const std::string text = create_training_graph(toy.graph).text();
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(first_line("?[2,2]x | MatMul MatMul x"), "0 layers matched, 1 skipped; 0 quantizers inserted");
  EXPECT_EQ(first_line("images | conv_relu a | conv b | batch_norm b | Relu b/Relu"),
            "2 layers matched, 0 skipped; 1 batch norm folded; 4 quantizers inserted");
}

Names names_of(const std::vector<QuantizedTensor>& tensors) {
  Names names;
  for (const QuantizedTensor& tensor : tensors) names.push_back(tensor.quantizer);
  return names;
}

/// What a rewrite for evaluation reports; the graph stays as it is.
std::vector<LayerQuantizers> quantizers_of(const Graph& in_float, const RewriteOptions& options = {}) {
  Graph graph = in_float.clone();
  return create_eval_graph(graph, options).quantizers;
}

/// The quantizers of a layer's weights and of its output.
using Quantizers = std::vector<std::pair<Names, Names>>;

Quantizers quantizers_of(const std::string& chains, const RewriteOptions& options = {}) {
  Quantizers quantizers;
  for (const LayerQuantizers& layer : quantizers_of(ToyGraph(chains).graph, options))
    quantizers.emplace_back(names_of(layer.weights), names_of(layer.output));
  return quantizers;
}

TEST(LayerQuantizers, AreThoseOfWeightsAndOutput) {
  const std::string chains = "images | conv_relu a | conv_bias b | output";
  EXPECT_EQ(quantizers_of(chains),
            (Quantizers{{{"a/weights_quant"}, {"a/act_quant"}}, {{"b/weights_quant"}, {"b/act_quant"}}}));
  const std::vector<LayerQuantizers> layers = quantizers_of(ToyGraph(chains).graph);
  EXPECT_EQ(layers[0].layer, "a/Conv2D");
  EXPECT_EQ(layers[0].weights[0].elements, 4);
  EXPECT_EQ(layers[0].output[0].elements, 32);
  EXPECT_EQ(layers[1].layer, "b/Conv2D");
}

TEST(LayerQuantizers, OfASharedTensorBelongToTheFirstLayer) {
  EXPECT_EQ(quantizers_of("[1,1,2,2]weights; images | conv x/a weights; images | conv x/b weights;"
                          "x/a/Conv2D | Add sum x/b/Conv2D | Relu Relu | output"),
            (Quantizers{{{"x/a/weights_quant"}, {"x/a/conv_quant", "x/act_quant"}}, {{}, {"x/b/conv_quant"}}}));
}

TEST(LayerQuantizers, OfAResidualSumAreThatOfTheSumAndThatOfLayers) {
  EXPECT_EQ(
      quantizers_of("images | conv_relu in | conv_bias block/b | Add Add in/Relu | Relu Relu | conv_bias c | output",
                    {.activation_bits = 4, .sums_bits = 8}),
      (Quantizers{{{"in/weights_quant"}, {"in/act_quant", "in/edge_quant"}},
                  {{"block/b/weights_quant"}, {"block/b/conv_quant", "block/act_quant"}},
                  {{"c/weights_quant"}, {"c/act_quant"}}}));
}

/// The rewrite itself is the judge: bits of one layer change these quantizers and no others.
TEST(LayerQuantizers, AreThoseThatTheRewriteChanges) {
  for (const std::string model : {"lenet5", "resnet20", "mobilenet_v1", "mobilenet_v2"}) {
    Graph graph;
    const Output images = layers::placeholder(graph, "images", {2, 32, 32, 3});
    graph.set_outputs({models::find_model(model).build(graph, images, {.outputs = 10, .width = 0.25})});
    const std::vector<LayerQuantizers> layers = quantizers_of(graph);
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

}  // namespace
}  // namespace miniqat::quantize::rewrite_report_test
