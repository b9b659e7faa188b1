// Batch norms that are folded late become scales: gammas of both signs, at 0 and near it.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>

#include "exporters/tflite/tflite.h"
#include "integer/engine.h"
#include "layers/batch_norm.h"
#include "quantize/convert/integer_scale_shift.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"

namespace miniqat::quantize::late_folding_convert_test {
namespace {

using integer::Layer;
using integer::Model;
using testing::EvalNet;
using testing::mentions;

/// Two weights for each of three channels.
Layer layer_of(int bits, std::vector<std::uint8_t> weights, std::vector<std::int32_t> zero_points) {
  Layer layer = {.kind = integer::LayerKind::kFullyConnected, .filter = {2, 3}, .weight_bits = bits};
  layer.weights = std::move(weights);
  layer.weight_scales.assign(zero_points.size(), 0.5f);
  layer.weight_zero_points = std::move(zero_points);
  return layer;
}

/// Row-major [2, 3].
std::vector<float> real_weights(const Layer& layer) {
  std::vector<float> real;
  for (std::size_t i = 0; i < layer.weights.size(); ++i) {
    const auto channel = static_cast<std::int64_t>(i) % 3;
    real.push_back(layer.weight_scale(channel) *
                   static_cast<float>(layer.weights[i] - layer.weight_zero_point(channel)));
  }
  return real;
}

using Reals = std::vector<float>;
using ZeroPoints = std::vector<std::int32_t>;

TEST(ScaleChannels, OneScaleBecomesOneForEachChannel) {
  Layer layer = layer_of(8, {129, 130, 255, 1, 128, 127}, {128});
  scale_channels(layer, std::array{2.0, -1.0, 0.5});
  EXPECT_EQ(real_weights(layer), (Reals{1, -1, 31.75f, -127, 0, -0.25f}));
  EXPECT_EQ(layer.weight_scales, (Reals{1, 0.5f, 0.25f}));
  EXPECT_EQ(layer.weight_zero_points, (ZeroPoints{128, 128, 128})) << "the mirrored weights fit";
}

TEST(ScaleChannels, MovesTheZeroPointWhereMirroredWeightsDoNotFit) {
  // -2 has no counterpart on a symmetric grid of four; beside a zero point of 0 nothing has.
  Layer layer = layer_of(2, {0, 3, 2, 3, 1, 1}, {2, 0, 1});
  scale_channels(layer, std::array{-1.0, -1.0, -1.0});
  EXPECT_EQ(real_weights(layer), (Reals{1, -1.5f, -0.5f, -0.5f, -0.5f, 0}));
  EXPECT_EQ(layer.weight_zero_points, (ZeroPoints{1, 3, 1}));
  EXPECT_TRUE(std::ranges::all_of(layer.weights, [](std::uint8_t weight) { return weight <= 3; }));
}

TEST(ScaleChannels, NothingIsLeftOfAChannelWithoutScale) {
  Layer layer = layer_of(4, {1, 2, 3, 4, 5, 6}, {8, 7, 8});
  scale_channels(layer, std::array{0.0, -double{FLT_MIN}, 1e-30});
  EXPECT_EQ(layer.weights, (std::vector<std::uint8_t>{8, 7, 3, 8, 7, 6}));
  EXPECT_EQ(layer.weight_scales, (Reals{0.5f, 0.5f, 0.5e-30f})) << "half of the least normal number is not normal";
}

TEST(ScaleChannels, RefusesAnInfiniteScale) {
  Layer layer = layer_of(8, {1, 2, 3, 4, 5, 6}, {8});
  EXPECT_TRUE(mentions(testing::error_of([&] { scale_channels(layer, std::array{1.0, 1e39, 1.0}); }), {"channel 1"}));
}

/// A layer by hand: `channels` of its weights' last axes have ranges of their own.
struct LateNet {
  EvalNet net;
  FakeQuantAttributes of_weights{
      .bits = 8, .narrow_range = true, .symmetric = true, .range = RangeKind::kLearned, .is_training = false};
  std::vector<float> gamma = {1.25f, -0.5f, 0, 1e-6f, -1e-30f, -0.8f};
  std::vector<float> variance = {0.5f, 1, 0.7f, 1e-12f, 0, 2};
  layers::BatchNormAttributes attributes{.is_training = false, .folds_late = true};

  Output weights(const Shape& shape, int channel_axes) {
    return net.channel_quantizer("layer/weights_quant", net.variable("layer/weights", shape), channel_axes, of_weights);
  }
  Output normalised(Output x) {
    const Shape channels = {6};
    return layers::batch_norm(net.graph, "layer/BatchNorm", x, net.variable("layer/gamma", channels, gamma),
                              net.variable("layer/beta", channels, {0.3f, -0.2f, 0.6f, -0.4f, 0.5f, 1}),
                              net.variable("layer/mean", channels), net.variable("layer/variance", channels, variance),
                              attributes);
  }
  Output finished(Output x) {
    const Output y = layers::relu6(net.graph, "layer/Relu6", normalised(x));
    return net.quantizer("layer/act_quant", y, {0, 3});
  }
  Output conv() { return finished(layers::conv2d(net.graph, "layer/Conv2D", net.images(), weights({3, 3, 3, 6}, 1))); }
};

const Layer& only_layer(const Model& model) { return std::get<Layer>(model.operations.at(0).action); }

/// The engine gives what the reference loops give.
void expect_fast(const Model& model, const Tensor& images) {
  integer::Engine engine(model);
  const std::vector<Tensor> expected = integer::reference::run(model, images), found = engine.run_all(images);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(expected[i].values<std::uint8_t>(), found[i].values<std::uint8_t>())) << i;
}

void expect_converted(LateNet& late, Output y) {
  const Model model = late.net.faithful(y);
  ASSERT_EQ(model.operations.size(), 1u);
  expect_fast(model, testing::images_for(late.net.graph, model, 3));
  const Layer& layer = only_layer(model);
  ASSERT_EQ(layer.weight_scales.size(), 6u);
  // gamma 0: the integers are all the zero point, and what comes out is beta.
  const auto channels = static_cast<std::size_t>(layer.output_channels());
  for (std::size_t i = 2; i < layer.weights.size(); i += channels)
    EXPECT_EQ(layer.weights[i], layer.weight_zero_points[2]) << i;
  const Tensor images = testing::images_for(late.net.graph, model, 2);
  const Tensor result = integer::reference::run(model, images).back();
  for (std::int64_t i = 2; i < result.elements(); i += 6) EXPECT_EQ(result.data<std::uint8_t>()[i], 51) << "0.6 of 3";
}

TEST(LateFoldingConvert, EveryKindOfLayer) {
  LateNet conv;
  expect_converted(conv, conv.conv());
  LateNet depthwise;
  expect_converted(depthwise, depthwise.finished(layers::depthwise_conv2d(depthwise.net.graph, "layer/Depthwise",
                                                                          depthwise.net.images(),
                                                                          depthwise.weights({3, 3, 3, 2}, 2))));
  LateNet product;
  expect_converted(product, product.finished(layers::matmul(product.net.graph, "layer/MatMul",
                                                            product.net.images({9, 7}), product.weights({7, 6}, 1))));
  // These weights have one range: their last axis is not the output channel.
  LateNet transposed;
  const Output weights = transposed.net.quantizer(
      "layer/weights_quant", transposed.net.variable("layer/weights", {6, 7}), {-1, 1}, transposed.of_weights);
  expect_converted(transposed,
                   transposed.finished(layers::matmul(transposed.net.graph, "layer/MatMul",
                                                      transposed.net.images({9, 7}), weights, {.transpose_b = true})));
}

TEST(LateFoldingConvert, EveryGridOfWeights) {
  for (const int bits : {2, 3, 4, 8})
    for (const bool narrow : {true, false})
      for (const bool symmetric : {true, false}) {
        SCOPED_TRACE(concat(bits, " bits", narrow ? ", narrow" : "", symmetric ? ", symmetric" : ""));
        LateNet late;
        late.of_weights.bits = bits;
        late.of_weights.narrow_range = narrow;
        late.of_weights.symmetric = symmetric;
        expect_converted(late, late.conv());
      }
}

TEST(LateFoldingConvert, BetweenLayerAndBatchNorm) {
  LateNet late;
  const Output product =
      layers::matmul(late.net.graph, "layer/MatMul", late.net.images({9, 7}), late.weights({7, 6}, 1));
  const Output y = late.finished(layers::reshape(late.net.graph, "layer/Reshape", product, {.shape = {9, 1, 1, 6}}));
  const Model model = late.net.faithful(y);
  EXPECT_EQ(model.tensor(model.output).shape, (Shape{1, 1, 6}));
}

TEST(LateFoldingConvert, BesideAResidualSum) {
  LateNet late;
  const Output images = late.net.images();
  const Output first = late.net.quantizer("first/act_quant", late.net.conv("first", images, 6), {-1, 1});
  const Output sum =
      late.normalised(layers::conv2d(late.net.graph, "layer/Conv2D", first, late.weights({3, 3, 6, 6}, 1)));
  const Output branch = late.net.quantizer("layer/conv_quant", sum, {-1.5f, 2});
  const Output y = layers::relu(late.net.graph, "Relu", layers::add(late.net.graph, "Add", branch, first));
  late.net.faithful(late.net.quantizer("act_quant", y, {0, 2}));
}

TEST(LateFoldingConvert, RefusesByName) {
  LateNet infinite;
  infinite.attributes.epsilon = 0;
  EXPECT_TRUE(
      mentions(infinite.net.refusal(infinite.conv()), {"[BatchNorm \"layer/BatchNorm\"]", "channel 4", "root of 0"}));
  LateNet training;
  training.attributes.is_training = true;
  EXPECT_TRUE(mentions(training.net.refusal(training.conv()), {"[BatchNorm \"layer/BatchNorm\"]", "for training"}));
  LateNet huge;
  huge.gamma[3] = 3e38f;
  huge.attributes.epsilon = 1e-12;
  EXPECT_TRUE(mentions(huge.net.refusal(huge.conv()), {"[BatchNorm \"layer/BatchNorm\"]", "channel 3"}));
  LateNet apart;
  apart.attributes.folds_late = false;
  EXPECT_TRUE(
      mentions(apart.net.refusal(apart.conv()), {"[BatchNorm \"layer/BatchNorm\"] reads layer/Conv2D", "no range"}));
  LateNet clamped;
  const Output sum =
      layers::conv2d(clamped.net.graph, "layer/Conv2D", clamped.net.images(), clamped.weights({3, 3, 3, 6}, 1));
  EXPECT_TRUE(mentions(clamped.net.refusal(clamped.finished(layers::relu(clamped.net.graph, "layer/Relu", sum))),
                       {"[BatchNorm \"layer/BatchNorm\"] reads layer/Relu", "no range"}));
}

/// The largest of numbers that a negative gamma mirrors would be the least.
TEST(LateFoldingConvert, BehindAMaxPoolGammasMustNotBeNegative) {
  const auto pooled = [](LateNet& late) {
    const Output sum = layers::conv2d(late.net.graph, "layer/Conv2D", late.net.images(), late.weights({3, 3, 3, 6}, 1));
    return late.finished(layers::max_pool(late.net.graph, "layer/MaxPool", sum, {.window = {2, 2}}));
  };
  LateNet late;
  EXPECT_TRUE(
      mentions(late.net.refusal(pooled(late)), {"[BatchNorm \"layer/BatchNorm\"] reads layer/MaxPool", "no range"}));
  LateNet positive;
  for (float& gamma : positive.gamma) gamma = std::abs(gamma);
  positive.net.faithful(pooled(positive));
}

/// Mirrored symmetric weights keep their zero point, which TensorFlow Lite's int8 weights must have.
TEST(LateFoldingConvert, TensorFlowLiteTakesMirroredWeights) {
  LateNet late;
  const Model model = late.net.faithful(late.conv());
  EXPECT_TRUE(std::ranges::all_of(only_layer(model).weight_zero_points, [](int zero) { return zero == 128; }));
  EXPECT_NO_THROW(exporters::tflite(model));
}

Output random_norm(Graph& graph, const std::string& scope, Output x) {
  const auto vector = [&](const char* name, const Initializer& initializer, bool trainable) {
    return layers::variable(graph, scope + name, {x.shape().channels()}, initializer, trainable);
  };
  return layers::batch_norm(graph, scope + "/BatchNorm", x, vector("/gamma", Initializer::truncated_normal(1), true),
                            vector("/beta", Initializer::truncated_normal(1), true),
                            vector("/mean", Initializer::constant(0), false),
                            vector("/variance", Initializer::constant(1), false), {.decay = 0.5});
}

/// Gammas of both signs; engine and C, too.
TEST(LateFoldingConvert, TrainedNets) {
  Graph graph;
  Output y = layers::placeholder(graph, "images", {4, 8, 8, 3});
  y = layers::conv2d(graph, "first/Conv2D", y, layers::variable(graph, "first/weights", {3, 3, 3, 8}));
  const Output before = layers::relu(graph, "first/Relu", random_norm(graph, "first", y));
  y = layers::depthwise_conv2d(graph, "second/Depthwise", before,
                               layers::variable(graph, "second/weights", {3, 3, 8, 1}));
  y = random_norm(graph, "second", y);
  y = layers::relu6(graph, "second/Relu6", layers::add(graph, "second/Add", y, before));
  y = layers::mean(graph, "Mean", y, {.axes = {1, 2}});
  y = layers::matmul(graph, "third/MatMul", y, layers::variable(graph, "third/weights", {8, 5}));
  graph.set_outputs({random_norm(graph, "third", y)});
  for (const RangeChoice ranges : {RangeChoice::kObserved, RangeChoice::kLearned})
    testing::expect_trained_integers(graph, {.ranges = ranges, .bn_fold = BnFold::kLate});
}

}  // namespace
}  // namespace miniqat::quantize::late_folding_convert_test
