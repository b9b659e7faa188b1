// Blocks of networks, trained and converted: their quantizers, and integers that are those of training.

#include <gtest/gtest.h>

#include "quantize/quantize.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::trained_blocks_test {
namespace {

using testing::Names;

struct Net {
  Graph graph;
  Output images = layers::placeholder(graph, "images", {4, 8, 8, 3});

  /// filter x filter, with a bias.
  Output conv(const std::string& scope, Output x, std::int64_t filter, std::int64_t channels) {
    return testing::conv_bias(graph, scope, x, filter, channels);
  }
  Output conv_relu(const std::string& scope, Output x, std::int64_t filter, std::int64_t channels) {
    return layers::relu(graph, scope + "/Relu", conv(scope, x, filter, channels));
  }
  Output mean(const std::string& name, Output x) { return layers::mean(graph, name, x, {.axes = {1, 2}}); }
};

struct Block {
  std::string name;
  /// Rows, or images; behind these comes a mean, and at the end a dense layer.
  Output (*make)(Net& net);
  /// Lines on quantizers (described() in toy_graph.h), and parts of names that none of them has.
  Names quantizers = {};
  Names others = {};
};

/// MobileNetV3's: the mean of each channel decides how much of it stays.
Output squeeze_and_excitation(Net& net, bool factors_first) {
  Graph& graph = net.graph;
  const Output x = net.conv_relu("stem", net.images, 3, 12);
  Output s = layers::mean(graph, "squeeze/Mean", x, {.axes = {1, 2}, .keep_dims = true});
  s = layers::hard_sigmoid(graph, "excite/HardSigmoid", net.conv("excite", net.conv_relu("squeeze", s, 1, 4), 1, 12));
  return net.conv_relu("project", layers::mul(graph, "excite/Mul", factors_first ? s : x, factors_first ? x : s), 1, 6);
}

/// Of two branches, of a branch and what it began with, of rows, and before a Relu, which takes the quantizer over.
Output differences(Net& net) {
  Graph& graph = net.graph;
  const Output a = net.conv_relu("a", net.images, 3, 6);
  const Output first = layers::sub(graph, "first/Sub", a, net.conv("b", net.images, 3, 6));
  const Output second =
      layers::relu(graph, "second/Relu", layers::sub(graph, "second/Sub", net.conv("c", first, 3, 6), first));
  return layers::sub(graph, "third/Sub", net.mean("Mean", second), net.mean("others/Mean", a));
}

/// Each half of the channels goes its own way, as in a convolution of two groups.
Output split(Net& net) {
  const Output x = net.conv_relu("stem", net.images, 3, 12);
  std::vector<Output> parts;
  for (const std::int64_t first : {0, 5}) {
    const std::string scope = first == 0 ? "left" : "right";
    const Output part =
        layers::slice(net.graph, scope + "/Slice", x, {.axes = {3}, .starts = {first}, .ends = {first == 0 ? 5 : 12}});
    parts.push_back(net.conv_relu(scope, part, 3, 4));
  }
  return layers::concat(net.graph, "Concat", parts);
}

/// 64 steps of three channels: convolutions over them with a bias and with a batch norm, and pools.
Output sequences(Net& net) {
  Graph& graph = net.graph;
  const auto filter = [&](const std::string& scope, const Shape& shape) {
    return layers::variable(graph, scope + "/weights", shape);
  };
  const auto of_channels = [&](const std::string& name, std::int64_t channels, double value, bool trainable = true) {
    return layers::variable(graph, name, {channels}, Initializer::constant(value), trainable);
  };
  Output x = layers::reshape(graph, "sequence", net.images, {.shape = {-1, 64, 3}});
  x = layers::conv1d(graph, "a/Conv2D", x, filter("a", {5, 1, 3, 8}), {.stride = 2});
  x = layers::relu(graph, "a/Relu", layers::bias_add(graph, "a/BiasAdd", x, of_channels("a/biases", 8, 0.1)));
  x = layers::max_pool1d(graph, "pool", x);
  x = layers::depthwise_conv1d(graph, "b/DepthwiseConv2d", x, filter("b", {3, 1, 8, 1}),
                               {.padding = Padding::kExplicit, .dilation = 2, .pads = {4, 0}});
  x = layers::conv1d(graph, "c/Conv2D", x, filter("c", {1, 1, 8, 6}));
  x = layers::batch_norm(graph, "c/BatchNorm", x, of_channels("c/gamma", 6, 1), of_channels("c/beta", 6, 0),
                         of_channels("c/moving_mean", 6, 0, false), of_channels("c/moving_variance", 6, 1, false));
  x = layers::avg_pool1d(graph, "average", layers::relu(graph, "c/Relu", x), {.window = 4});
  return layers::reshape(graph, "flat", x, {.shape = {-1, 24}});
}

const std::vector<Block> kBlocks = {
    // Reshapes lie between a layer and its bias, its batch norm and its activation.
    {"Sequences",
     sequences,
     {"a/Relu > a/act_quant", "b/DepthwiseConv2d > b/act_quant", "c/Relu > c/act_quant",
      "average > average/activation_AvgPool_quant", "dense/act_quant"},
     {"BiasAdd", "BatchNorm_quant"}},
    // As part of a layer a Clip needs no quantizer before it.
    {"Clip",
     [](Net& net) {
       const Output x =
           layers::clip(net.graph, "stem/Clip", net.conv("stem", net.images, 3, 16), {.low = -0.3, .high = 0.4});
       return layers::clip(net.graph, "project/Clip", net.conv("project", x, 1, 6), {.low = 0.05, .high = 2});
     },
     {"stem/Clip > stem/act_quant", "project/Clip > project/act_quant", "dense/act_quant"},
     {"activation_Clip"}},
    // MobileNetV3's in small: convolutions with HardSwish, and a gate of Sigmoid.
    {"HardSwish",
     [](Net& net) {
       Graph& graph = net.graph;
       Output x = layers::hard_swish(graph, "stem/HardSwish", net.conv("stem", net.images, 3, 16));
       x = layers::mul(graph, "gated", x, layers::sigmoid(graph, "gate/Sigmoid", net.conv("gate", x, 1, 16)));
       return layers::hard_swish(graph, "project/HardSwish", net.conv("project", x, 1, 6));
     },
     {"stem/HardSwish > stem/HardSwish/activation_HardSwish_quant: moving_average"}},
    // The layer before it keeps its numbers below 0, and so do the results.
    {"LeakyRelu",
     [](Net& net) {
       const Output x =
           layers::leaky_relu(net.graph, "stem/LeakyRelu", net.conv("stem", net.images, 3, 16), {.alpha = 0.2});
       return layers::leaky_relu(net.graph, "project/LeakyRelu", net.conv("project", x, 1, 6), {.alpha = 0.1});
     },
     {"stem/act_quant", "stem/LeakyRelu/activation_LeakyRelu_quant"}},
    {"SqueezeAndExcitation",
     [](Net& net) { return squeeze_and_excitation(net, false); },
     {"excite/HardSigmoid/activation_HardSigmoid_quant", "excite/Mul/activation_Mul_quant"}},
    {"SqueezeAndExcitationFactorsFirst",
     [](Net& net) { return squeeze_and_excitation(net, true); },
     {"excite/HardSigmoid/activation_HardSigmoid_quant", "excite/Mul/activation_Mul_quant"}},
    {"Split", split, {"left/act_quant", "right/act_quant"}, {"Slice"}},
    {"Differences",
     differences,
     {"first/Sub/activation_Sub_quant", "second/Relu/activation_Relu_quant", "third/Sub/activation_Sub_quant"},
     {"second/Sub/activation"}},
};

TEST(TrainedBlocks, GiveTheIntegersOfTraining) {
  for (const Block& block : kBlocks) {
    SCOPED_TRACE(block.name);
    Net net;
    Output x = block.make(net);
    if (x.shape().rank() == 4) x = net.mean("Mean", x);
    const Output weights = layers::variable(net.graph, "dense/weights", {x.shape().channels(), 5});
    net.graph.set_outputs({layers::matmul(net.graph, "dense/MatMul", x, weights)});
    Graph rewritten = net.graph.clone();
    const RewriteReport report = create_training_graph(rewritten, {.strict = true});
    EXPECT_EQ(testing::described(rewritten, block.quantizers), block.quantizers) << report.text();
    for (const std::string& name : report.inserted)
      for (const std::string& part : block.others) EXPECT_EQ(name.find(part), std::string::npos) << name;
    testing::expect_trained_integers(net.graph);
  }
}

}  // namespace
}  // namespace miniqat::quantize::trained_blocks_test
