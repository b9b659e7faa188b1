// One test a pattern of the rewrite: which quantizers appear, under which names, and which edges they take over.
#include <gtest/gtest.h>

#include "quantize/rewrite/rewrite.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::rewrite_patterns_test {
namespace {

using testing::Names;
using testing::ToyGraph;

TEST(RewritePatterns, LayerBiasRelu) {
  ToyGraph toy;
  layers::max_pool(toy.graph, "pool", toy.conv_relu("conv1", toy.images()));
  const RewriteReport report = create_training_graph(toy.graph, {.weight_bits = 4, .activation_bits = 5});
  EXPECT_EQ(report.inserted, (Names{"conv1/weights_quant", "conv1/act_quant"}));
  EXPECT_EQ(toy.input("conv1/Conv2D"), "images");
  EXPECT_EQ(toy.input("conv1/Conv2D", 1), "conv1/weights_quant");
  EXPECT_EQ(toy.input("conv1/weights_quant"), "conv1/weights");
  EXPECT_EQ(toy.input("conv1/BiasAdd"), "conv1/Conv2D");
  EXPECT_EQ(toy.input("conv1/Relu"), "conv1/BiasAdd");
  EXPECT_EQ(toy.input("conv1/act_quant"), "conv1/Relu");
  EXPECT_EQ(toy.input("pool"), "conv1/act_quant");

  const FakeQuantAttributes weights = toy.quantizer("conv1/weights_quant");
  EXPECT_EQ(weights.bits, 4);
  EXPECT_TRUE(weights.narrow_range);
  EXPECT_EQ(weights.range, RangeKind::kLastValue);
  EXPECT_EQ(toy.initial("conv1/weights_quant/min"), -6);
  EXPECT_EQ(toy.initial("conv1/weights_quant/max"), 6);
  const FakeQuantAttributes activations = toy.quantizer("conv1/act_quant");
  EXPECT_EQ(activations.bits, 5);
  EXPECT_FALSE(activations.narrow_range);
  EXPECT_EQ(activations.range, RangeKind::kMovingAverage);
  EXPECT_EQ(toy.initial("conv1/act_quant/min"), 0);
  EXPECT_EQ(toy.initial("conv1/act_quant/max"), 6);
}

TEST(RewritePatterns, DepthwiseWithRelu6) {
  ToyGraph toy;
  const Output x = layers::depthwise_conv2d(toy.graph, "dw/DepthwiseConv2d", toy.images(),
                                            layers::variable(toy.graph, "dw/weights", {1, 1, 2, 1}));
  layers::relu6(toy.graph, "dw/Relu6", toy.bias("dw", x));
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"dw/weights_quant", "dw/act_quant"}));
  EXPECT_EQ(toy.input("dw/act_quant"), "dw/Relu6");
  EXPECT_EQ(toy.initial("dw/act_quant/min"), 0);
}

TEST(RewritePatterns, IdentityIsAnActivation) {
  ToyGraph toy;
  const Output x = layers::identity(toy.graph, "conv1/linear", toy.conv_bias("conv1", toy.images()));
  layers::max_pool(toy.graph, "pool", x);
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"conv1/weights_quant", "conv1/act_quant"}));
  EXPECT_EQ(toy.input("conv1/act_quant"), "conv1/linear");
  EXPECT_EQ(toy.initial("conv1/act_quant/min"), 0);
}

TEST(RewritePatterns, IdentityBesideOtherReadersIsACopy) {
  ToyGraph toy;
  const Output x = toy.conv_bias("conv1", toy.images());
  layers::identity(toy.graph, "copy", x);
  layers::max_pool(toy.graph, "pool", x);
  create_training_graph(toy.graph);
  EXPECT_EQ(toy.input("conv1/act_quant"), "conv1/BiasAdd");
  EXPECT_EQ(toy.input("copy"), "conv1/act_quant");
  EXPECT_EQ(toy.input("pool"), "conv1/act_quant");
}

TEST(RewritePatterns, IdentityBesideAGraphOutputIsACopy) {
  ToyGraph toy;
  const Output x = toy.conv_bias("conv1", toy.images());
  layers::identity(toy.graph, "copy", x);
  toy.graph.set_outputs({x});
  create_training_graph(toy.graph);
  EXPECT_EQ(toy.input("conv1/act_quant"), "conv1/BiasAdd");
  EXPECT_EQ(toy.graph.outputs().front().name(), "conv1/act_quant");
  EXPECT_TRUE(create_training_graph(toy.graph).inserted.empty());
}

TEST(RewritePatterns, LastLayerIsQuantizedAfterItsBias) {
  ToyGraph toy;
  const Output x = layers::placeholder(toy.graph, "x", {3, 2});
  const Output product = layers::matmul(toy.graph, "fc/MatMul", x, layers::variable(toy.graph, "fc/weights", {2, 2}));
  toy.graph.set_outputs({toy.bias("fc", product)});
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"fc/weights_quant", "fc/act_quant"}));
  EXPECT_EQ(toy.input("fc/act_quant"), "fc/BiasAdd");
  EXPECT_EQ(toy.initial("fc/act_quant/min"), 0);
  EXPECT_EQ(toy.graph.outputs().front().name(), "fc/act_quant");
}

TEST(RewritePatterns, BiasMayBeAnAddOfAVector) {
  for (const bool through_identity : {false, true})
    for (const bool vector_first : {false, true}) {
      ToyGraph toy;
      const Output product = toy.conv("conv1", toy.images());
      Output biases = toy.vector("conv1/biases");
      if (through_identity) biases = layers::identity(toy.graph, "conv1/biases/read", biases);
      const Output sum = vector_first ? layers::add(toy.graph, "conv1/Add", biases, product)
                                      : layers::add(toy.graph, "conv1/Add", product, biases);
      layers::relu(toy.graph, "conv1/Relu", sum);
      EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"conv1/weights_quant", "conv1/act_quant"}));
    }
}

TEST(RewritePatterns, ConstantAndScalarBiasesCount) {
  for (const Shape& shape : {Shape{2}, Shape{}}) {
    ToyGraph toy;
    const Output biases = layers::constant(toy.graph, "conv1/biases", shape, {0.5});
    layers::add(toy.graph, "conv1/Add", toy.conv("conv1", toy.images()), biases);
    EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"conv1/weights_quant", "conv1/act_quant"}));
    EXPECT_EQ(toy.input("conv1/act_quant"), "conv1/Add");
  }
}

TEST(RewritePatterns, BatchToSpaceStandsBeforeTheBias) {
  ToyGraph toy;
  const Output blocks = layers::space_to_batch(toy.graph, "fold", toy.images(), {.block_shape = {2, 2}});
  const Output conv = toy.conv("atrous", blocks);
  const Output unfolded = layers::batch_to_space(toy.graph, "unfold", conv, {.block_shape = {2, 2}});
  layers::relu(toy.graph, "atrous/Relu", toy.bias("atrous", unfolded));
  const RewriteReport report = create_training_graph(toy.graph);
  EXPECT_EQ(report.inserted, (Names{"atrous/weights_quant", "atrous/act_quant"}));
  EXPECT_EQ(toy.input("atrous/act_quant"), "atrous/Relu");
  EXPECT_TRUE(report.matches.front().text.starts_with("layer + BatchToSpaceND + bias + Relu: "));
}

TEST(RewritePatterns, LayerWithoutBiasAndActivation) {
  ToyGraph toy;
  layers::max_pool(toy.graph, "pool", toy.conv("conv1", toy.images()));
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"conv1/weights_quant", "conv1/act_quant"}));
  EXPECT_EQ(toy.input("pool"), "conv1/act_quant");
}

TEST(RewritePatterns, SeparableConvolution) {
  ToyGraph toy;
  const Output depthwise = layers::depthwise_conv2d(toy.graph, "sep/depthwise/DepthwiseConv2d", toy.images(),
                                                    layers::variable(toy.graph, "sep/depthwise/weights", {1, 1, 2, 1}));
  toy.conv_relu("sep/pointwise", depthwise);
  EXPECT_EQ(create_training_graph(toy.graph).inserted,
            (Names{"sep/depthwise/weights_quant", "sep/depthwise/act_quant", "sep/pointwise/weights_quant",
                   "sep/pointwise/act_quant"}));
  EXPECT_EQ(toy.input("sep/pointwise/Conv2D"), "sep/depthwise/act_quant");
}

TEST(RewritePatterns, BypassWithActivation) {
  ToyGraph toy;
  const Output x = toy.images();
  const Output sum = layers::add(toy.graph, "block/Add", toy.conv_bias("block/conv", x), x);
  layers::max_pool(toy.graph, "pool", layers::relu(toy.graph, "block/Relu", sum));
  EXPECT_EQ(create_training_graph(toy.graph).inserted,
            (Names{"block/conv/weights_quant", "block/conv/conv_quant", "block/act_quant"}));
  EXPECT_EQ(toy.input("block/Add"), "block/conv/conv_quant");
  EXPECT_EQ(toy.input("block/conv/conv_quant"), "block/conv/BiasAdd");
  EXPECT_EQ(toy.input("block/Relu"), "block/Add") << "the Add is computed with its activation";
  EXPECT_EQ(toy.input("pool"), "block/act_quant");
  EXPECT_EQ(toy.initial("block/conv/conv_quant/min"), -6);
  EXPECT_EQ(toy.initial("block/act_quant/min"), 0);
}

TEST(RewritePatterns, BypassWithoutBiasOrActivation) {
  ToyGraph toy;
  const Output x = toy.images();
  toy.graph.set_outputs({layers::add(toy.graph, "block/Add", x, toy.conv("block/conv", x))});
  EXPECT_EQ(create_training_graph(toy.graph).inserted,
            (Names{"block/conv/weights_quant", "block/conv/conv_quant", "block/add_quant"}));
  EXPECT_EQ(toy.input("block/conv/conv_quant"), "block/conv/Conv2D");
  EXPECT_EQ(toy.input("block/add_quant"), "block/Add");
  EXPECT_EQ(toy.graph.outputs().front().name(), "block/add_quant");
}

TEST(RewritePatterns, ScopesEndAtTheTop) {
  ToyGraph toy;
  const Output x = toy.images();
  const Output product = layers::conv2d(toy.graph, "Conv2D", x, toy.filter("weights"));
  layers::relu(toy.graph, "Relu", layers::add(toy.graph, "Add", product, x));
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"weights_quant", "conv_quant", "act_quant"}));
}

TEST(RewritePatterns, BothOperandsOfABypassAreLayers) {
  ToyGraph toy;
  const Output x = toy.images();
  const Output main = toy.conv_bias("block/main", x);
  const Output side = toy.conv_bias("block/side", x);
  const Output sum = layers::add(toy.graph, "block/Add", main, side);
  layers::relu(toy.graph, "block/Relu", sum);
  EXPECT_EQ(create_training_graph(toy.graph).inserted,
            (Names{"block/main/weights_quant", "block/main/conv_quant", "block/act_quant", "block/side/weights_quant",
                   "block/side/conv_quant"}));
  EXPECT_EQ(toy.input("block/Add", 0), "block/main/conv_quant");
  EXPECT_EQ(toy.input("block/Add", 1), "block/side/conv_quant");
}

TEST(RewritePatterns, PostActivationBypass) {
  ToyGraph toy;
  const Output x = toy.images();
  const Output sum = layers::add(toy.graph, "block/Add", toy.conv_relu("block/conv", x), x);
  layers::max_pool(toy.graph, "pool", sum);
  EXPECT_EQ(create_training_graph(toy.graph).inserted,
            (Names{"block/conv/weights_quant", "block/conv/act_quant", "block/post_activation_bypass_quant"}));
  EXPECT_EQ(toy.input("block/Add"), "block/conv/act_quant");
  EXPECT_EQ(toy.input("pool"), "block/post_activation_bypass_quant");
}

TEST(RewritePatterns, PostActivationBypassBeforeARelu) {
  ToyGraph toy;
  const Output x = toy.images();
  const Output sum = layers::add(toy.graph, "block/Add", toy.conv_relu("block/conv", x), x);
  layers::max_pool(toy.graph, "pool", layers::relu(toy.graph, "block/Relu", sum));
  EXPECT_EQ(create_training_graph(toy.graph).inserted,
            (Names{"block/conv/weights_quant", "block/conv/act_quant", "block/Relu/activation_Relu_quant"}));
  EXPECT_EQ(toy.input("block/Relu"), "block/Add");
  EXPECT_EQ(toy.input("pool"), "block/Relu/activation_Relu_quant");
  EXPECT_EQ(toy.initial("block/Relu/activation_Relu_quant/min"), 0);
}

TEST(RewritePatterns, ReluIsTheBypassOfTheNextBlock) {
  ToyGraph toy;
  const Output first = toy.conv_relu("a", toy.images());
  const Output sum = layers::add(toy.graph, "b/Add", toy.conv_bias("b/conv", first), first);
  layers::relu(toy.graph, "b/Relu", sum);
  EXPECT_EQ(create_training_graph(toy.graph).inserted,
            (Names{"a/weights_quant", "a/act_quant", "b/conv/weights_quant", "b/conv/conv_quant", "b/act_quant"}));
  EXPECT_EQ(toy.input("b/conv/Conv2D"), "a/act_quant");
  EXPECT_EQ(toy.input("b/Add", 1), "a/act_quant");
}

TEST(RewritePatterns, LargestMatchWins) {
  ToyGraph toy;
  const Output x = toy.images();
  const Output product = toy.conv_bias("block/conv", x);
  layers::max_pool(toy.graph, "pool", layers::relu(toy.graph, "other/Relu", product));
  layers::relu(toy.graph, "block/Relu", layers::add(toy.graph, "block/Add", product, x));
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"block/conv/weights_quant", "block/conv/conv_quant",
                                                              "block/act_quant", "other/Relu/activation_Relu_quant"}));
  EXPECT_EQ(toy.input("other/Relu"), "block/conv/conv_quant");
}

/// One with a post-activation bypass would leave late/Add without the integers of a/BiasAdd.
TEST(RewritePatterns, AmongEqualMatchesTheOneThatIsNotReadInsideWins) {
  ToyGraph toy;
  const Output x = toy.images();
  const Output product = toy.conv_bias("a", x);
  layers::relu(toy.graph, "late/Relu", layers::add(toy.graph, "late/Add", product, x));
  layers::add(toy.graph, "Add", layers::relu(toy.graph, "a/Relu", product), x);
  EXPECT_EQ(create_training_graph(toy.graph).inserted,
            (Names{"a/weights_quant", "a/conv_quant", "act_quant", "a/Relu/activation_Relu_quant",
                   "Add/activation_Add_quant"}));
}

TEST(RewritePatterns, WeightsThroughIdentityAndConcat) {
  ToyGraph toy;
  const auto part = [&](const std::string& name) { return layers::variable(toy.graph, name, {1, 1, 2, 1}); };
  const Output read = layers::identity(toy.graph, "a/read", toy.filter("a/weights"));
  const Output a = toy.conv("a", toy.images(), read);
  const Output whole =
      layers::concat(toy.graph, "b/whole", {part("b/1"), layers::identity(toy.graph, "b/2/read", part("b/2"))});
  const Output b = toy.conv("b", a, whole);
  toy.conv("c", b,
           layers::identity(toy.graph, "c/read", layers::concat(toy.graph, "c/whole", {part("c/1"), part("c/2")})));
  create_training_graph(toy.graph);
  EXPECT_EQ(toy.input("a/weights_quant"), "a/read");
  EXPECT_EQ(toy.input("b/weights_quant"), "b/whole");
  EXPECT_EQ(toy.input("c/weights_quant"), "c/read");
  for (const char* layer : {"a", "b", "c"})
    EXPECT_EQ(toy.input(std::string(layer) + "/Conv2D", 1), std::string(layer) + "/weights_quant");
}

TEST(RewritePatterns, FoldedWeightsAreAProductWithAVariable) {
  ToyGraph toy;
  const Output scale = layers::constant(toy.graph, "scale", {2}, {2});
  const Output x = toy.conv("a", toy.images(), layers::mul(toy.graph, "a/mul_fold", scale, toy.filter("a/weights")));
  toy.conv("b", x, layers::mul(toy.graph, "b/mul", scale, layers::constant(toy.graph, "b/fixed", {1, 1, 2, 2}, {1})));
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"a/weights_quant", "a/act_quant"}));
  EXPECT_EQ(toy.input("a/weights_quant"), "a/mul_fold");
  EXPECT_EQ(toy.input("a/Conv2D", 1), "a/weights_quant");
}

TEST(RewritePatterns, MatMulTakesWeightsOnEitherSide) {
  ToyGraph toy;
  const Output x = layers::placeholder(toy.graph, "x", {2, 2});
  const Output y = layers::matmul(toy.graph, "left/MatMul", layers::variable(toy.graph, "left/weights", {2, 2}), x);
  layers::matmul(toy.graph, "right/MatMul", y, layers::variable(toy.graph, "right/weights", {2, 2}));
  EXPECT_EQ(create_training_graph(toy.graph).inserted,
            (Names{"left/weights_quant", "left/act_quant", "right/weights_quant", "right/act_quant"}));
  EXPECT_EQ(toy.input("left/MatMul", 0), "left/weights_quant");
  EXPECT_EQ(toy.input("left/MatMul", 1), "x");
  EXPECT_EQ(toy.input("right/MatMul", 1), "right/weights_quant");
}

TEST(RewritePatterns, AddsAndMulsBetweenLayers) {
  ToyGraph toy;
  const Output a = toy.conv_relu("a", toy.images());
  const Output pooled = layers::max_pool(toy.graph, "pool", a, {.window = {1, 1}, .strides = {1, 1}});
  const Output flat = layers::reshape(toy.graph, "flat", pooled, {.shape = {1, 4, 4, 2}});
  const Output scale = layers::constant(toy.graph, "two", {}, {2});
  const Output product = layers::mul(toy.graph, "product", flat, scale);
  layers::add(toy.graph, "sum", product, layers::dropout(toy.graph, "drop", a));
  EXPECT_EQ(create_training_graph(toy.graph).inserted,
            (Names{"a/weights_quant", "a/act_quant", "product/activation_Mul_quant", "sum/activation_Add_quant"}));
  EXPECT_EQ(toy.input("sum", 0), "product/activation_Mul_quant");
  EXPECT_EQ(toy.input("sum", 1), "drop");
}

TEST(RewritePatterns, AddOrMulBeforeOneReluIsQuantizedAfterIt) {
  ToyGraph toy;
  const Output scale = layers::constant(toy.graph, "two", {}, {2});
  const Output product = layers::mul(toy.graph, "product", toy.conv_relu("a", toy.images()), scale);
  toy.conv("b", layers::relu6(toy.graph, "relu6", product));
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"a/weights_quant", "a/act_quant", "b/weights_quant",
                                                              "b/act_quant", "relu6/activation_Relu6_quant"}));
  EXPECT_EQ(toy.input("relu6"), "product");
  EXPECT_EQ(toy.input("b/Conv2D"), "relu6/activation_Relu6_quant");
}

TEST(RewritePatterns, MulThatIsAGraphOutputIsQuantizedBesideItsRelu) {
  ToyGraph toy;
  const Output a = toy.conv_relu("a", toy.images());
  const Output product = layers::mul(toy.graph, "product", a, a);
  layers::relu(toy.graph, "relu", product);
  toy.graph.set_outputs({product});
  create_training_graph(toy.graph);
  EXPECT_EQ(toy.graph.outputs().front().name(), "product/activation_Mul_quant");
  EXPECT_EQ(toy.input("relu"), "product/activation_Mul_quant");
}

TEST(RewritePatterns, AddReadByReluAndOthersIsQuantizedItself) {
  ToyGraph toy;
  const Output x = toy.images();
  const Output sum = layers::add(toy.graph, "block/Add", toy.conv_bias("block/conv", x), x);
  layers::relu(toy.graph, "block/Relu", sum);
  layers::max_pool(toy.graph, "pool", sum);
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"block/conv/weights_quant", "block/conv/conv_quant",
                                                              "block/act_quant", "block/Add/activation_Add_quant"}));
  EXPECT_EQ(toy.input("pool"), "block/Add/activation_Add_quant");
}

TEST(RewritePatterns, FloatAddsAndMulsStayFloat) {
  ToyGraph toy;
  const Output x = toy.images();
  const Output squared = layers::mul(toy.graph, "squared", x, x);
  toy.conv("a", layers::add(toy.graph, "shifted", squared, x));
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"a/weights_quant", "a/act_quant"}));
}

TEST(RewritePatterns, PoolsMeansAndConcatsGetNewRangesAndMaxPoolsKeepTheirs) {
  ToyGraph toy;
  const Output a = toy.conv_relu("a", toy.images());
  const Output b = layers::max_pool(toy.graph, "max", a);
  const Output c = layers::avg_pool(toy.graph, "avg", a);
  const Output both = layers::concat(toy.graph, "both", {b, c});
  layers::mean(toy.graph, "mean", layers::pad(toy.graph, "pad", both, {.paddings = {{0, 0}, {1, 1}, {1, 1}, {0, 0}}}),
               {.axes = {1, 2}});
  EXPECT_EQ(create_training_graph(toy.graph).inserted,
            (Names{"a/weights_quant", "a/act_quant", "avg/activation_AvgPool_quant", "both/activation_Concat_quant",
                   "mean/activation_Mean_quant"}));
  EXPECT_EQ(toy.input("both", 0), "max");
  EXPECT_EQ(toy.input("both", 1), "avg/activation_AvgPool_quant");
  EXPECT_EQ(toy.input("pad"), "both/activation_Concat_quant");
}

TEST(RewritePatterns, ReluAfterAPoolGetsItsOwnRange) {
  ToyGraph toy;
  toy.conv("b", layers::relu(toy.graph, "relu", layers::max_pool(toy.graph, "pool", toy.conv_bias("a", toy.images()))));
  create_training_graph(toy.graph);
  EXPECT_EQ(toy.input("a/act_quant"), "a/BiasAdd");
  EXPECT_EQ(toy.input("b/Conv2D"), "relu/activation_Relu_quant");
}

/// Each has a quantizer: the batch norm is not part of the layer.
TEST(RewritePatterns, LayerBeforeABatchNormThatCannotBeFolded) {
  for (const bool with_identity : {false, true}) {
    ToyGraph toy;
    Output x = toy.conv_bias("a", toy.images());
    if (with_identity) x = layers::identity(toy.graph, "a/copy", x);
    x = layers::relu(toy.graph, "a/Relu", toy.batch_norm("a", x));
    toy.conv_relu("b", x);
    const RewriteReport report = create_training_graph(toy.graph);
    EXPECT_EQ(report.inserted, (Names{"a/weights_quant", "a/act_quant", "b/weights_quant", "b/act_quant",
                                      "a/Relu/activation_Relu_quant"}));
    EXPECT_EQ(toy.input("a/act_quant"), with_identity ? "a/copy" : "a/BiasAdd");
  }
}

TEST(RewritePatterns, BatchNormAfterTheActivationIsNoReasonToSkip) {
  ToyGraph toy;
  toy.batch_norm("a", toy.conv_relu("a", toy.images()));
  EXPECT_EQ(create_training_graph(toy.graph).inserted, (Names{"a/weights_quant", "a/act_quant"})) << "nobody reads it";
  EXPECT_EQ(toy.input("a/BatchNorm"), "a/act_quant");
}

}  // namespace
}  // namespace miniqat::quantize::rewrite_patterns_test
