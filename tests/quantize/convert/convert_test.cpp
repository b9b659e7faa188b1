// What conversion makes of single layers and of what stands around them.

#include "quantize/convert/convert.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/quantize/eval_net.h"

namespace miniqat::quantize::convert_test {
namespace {

using integer::Clamp;
using integer::Grid;
using integer::Model;
using testing::EvalNet;
using testing::operations_of;
using testing::Texts;

const integer::Layer& layer_of(const Model& model, std::size_t i = 0) {
  return std::get<integer::Layer>(model.operations[i].action);
}

TEST(Convert, LayerBiasAndReluAreOneOperation) {
  EvalNet net;
  const Output y = layers::relu(net.graph, "a/Relu", net.conv("a", net.images()));
  const Model model = net.faithful(net.quantizer("a/act_quant", y, {-1, 7}));
  EXPECT_EQ(operations_of(model), Texts{"Conv2D a/Conv2D -> a/act_quant"});
  EXPECT_EQ(model.name, "net");
  EXPECT_EQ(model.tensor(model.input).name, "images");
  EXPECT_EQ(model.tensor(model.input).grid, net.input);
  EXPECT_EQ(model.tensor(model.input).shape, (Shape{6, 6, 3}));
  const Grid grid = {.scale = 8.0f / 255, .zero_point = 32, .bits = 8};
  EXPECT_EQ(model.tensor(model.output).grid, grid);
  EXPECT_EQ(model.operations[0].clamp, (Clamp{32, 255}));
  const integer::Layer& layer = layer_of(model);
  EXPECT_EQ(layer.filter, (Shape{3, 3, 3, 4}));
  EXPECT_EQ(layer.weight_scales, std::vector<float>{2.0f / 254});
  EXPECT_EQ(layer.weight_zero_points, std::vector<std::int32_t>{128});
  const float weight = net.variables.at("a/weights").data<float>()[5];
  EXPECT_NEAR(layer.weight_scale(0) * (layer.weights[5] - 128), weight, layer.weight_scale(0) / 2);
  const double bias = net.variables.at("a/biases").data<float>()[2];
  EXPECT_EQ(layer.bias[2], std::lround(bias / (1.0 / 32 * layer.weight_scale(0))));
  EXPECT_NEAR(layer.multiplier(0).real(), 1.0 / 32 * layer.weight_scale(0) / grid.scale, 1e-9);
}

TEST(Convert, Relu6ClampsWhereTrainingRoundsSix) {
  EvalNet net;
  const Output y = layers::relu6(net.graph, "Relu6", net.conv("a", net.images()));
  const Model model = net.faithful(net.quantizer("q", y, {-2, 8}));
  const float scale = 10.0f / 255;
  EXPECT_EQ(model.operations[0].clamp, (Clamp{51, 51 + static_cast<std::int32_t>(std::lround(6 / scale))}));
}

TEST(Convert, BiasesFromEverySideAddUp) {
  EvalNet net;
  const Output filter = net.weights("a", {3, 3, 3, 4});
  Output y = layers::conv2d(net.graph, "a/Conv2D", net.images(), filter);
  const Output folded = layers::mul(net.graph, "product", net.variable("x", {4}), net.variable("y", {4}));
  y = layers::add(net.graph, "Add", folded, y);
  y = layers::add(net.graph, "Add_1", y, layers::constant(net.graph, "one", {}, {1}));
  y = layers::identity(net.graph, "copy", net.bias("a", y));
  const Model model = net.faithful(net.quantizer("q", y, {-9, 9}));
  EXPECT_EQ(operations_of(model), Texts{"Conv2D a/Conv2D -> q"});
  const auto value = [&](const char* name) { return double{net.variables.at(name).data<float>()[3]}; };
  const double bias = value("x") * value("y") + 1 + value("a/biases");
  EXPECT_NEAR(layer_of(model).bias[3] * double{net.input.scale} * layer_of(model).weight_scale(3), bias, 1e-3);
}

TEST(Convert, RearrangementsWaitForTheRange) {
  EvalNet net;
  Output y = layers::max_pool(net.graph, "pool", net.conv("a", net.images()), {.padding = Padding::kSame});
  y = layers::pad(net.graph, "pad", layers::relu(net.graph, "Relu", y), {.paddings = {{0, 0}, {1, 0}, {0, 2}, {0, 0}}});
  y = layers::dropout(net.graph, "dropout", layers::reshape(net.graph, "flat", y, {.shape = {2, -1}}));
  const Model model = net.faithful(net.quantizer("q", y, {-3, 5}));
  EXPECT_EQ(operations_of(model), (Texts{"Conv2D a/Conv2D -> a/BiasAdd:ahead", "MaxPool pool -> pool:ahead",
                                         "Pad pad -> pad", "Reshape flat -> q"}));
  EXPECT_EQ(model.operations[0].clamp.min, model.tensor(model.output).grid.zero_point);
}

TEST(Convert, QuantizedTensorsAreRearrangedWithoutAnotherGrid) {
  EvalNet net;
  Output y = net.quantizer("q", net.conv("a", net.images()), {-3, 5});
  y = layers::max_pool(net.graph, "pool", y);
  y = net.quantizer("same", layers::reshape(net.graph, "flat", y, {.shape = {2, -1}}), {-3, 5});
  const Model model = net.faithful(y);
  EXPECT_EQ(operations_of(model), (Texts{"Conv2D a/Conv2D -> q", "MaxPool pool -> pool", "Reshape flat -> flat"}));
}

TEST(Convert, ASecondRangeRescales) {
  EvalNet net;
  const Output y = net.quantizer("wide", net.conv("a", net.images()), {-3, 5});
  const Model model = net.faithful(net.quantizer("narrow", y, {-1, 1}));
  EXPECT_EQ(operations_of(model), (Texts{"Conv2D a/Conv2D -> wide", "Rescale narrow -> narrow"}));
}

TEST(Convert, ReluOnItsOwnKeepsTheGridOrTakesOne) {
  EvalNet net;
  const Output x = net.quantizer("q", net.conv("a", net.images()), {-3, 5});
  const Output kept = layers::relu(net.graph, "kept", x);
  const Output taken = net.quantizer("taken", layers::relu(net.graph, "other", x), {0, 4});
  const Model model = net.faithful(net.quantizer("sum", layers::add(net.graph, "Add", kept, taken), {0, 9}));
  EXPECT_EQ(operations_of(model),
            (Texts{"Conv2D a/Conv2D -> q", "Rescale other -> taken", "Rescale kept -> kept", "Add Add -> sum"}));
  EXPECT_EQ(model.tensors[3].grid, model.tensors[1].grid);
  EXPECT_EQ(model.operations[2].clamp.min, model.tensors[1].grid.zero_point);

  EvalNet positive;
  const Output y = positive.quantizer("q", positive.conv("a", positive.images()), {0, 5});
  EXPECT_EQ(positive.faithful(layers::relu(positive.graph, "Relu", y)).operations.size(), 1u) << "nothing is negative";
}

TEST(Convert, ClampsOfSeveralReadersAreApart) {
  EvalNet net;
  const Output y = net.conv("a", net.images());
  const Output linear = net.quantizer("linear", y, {-3, 5});
  const Output clamped = net.quantizer("clamped", layers::relu(net.graph, "Relu", y), {-3, 5});
  const Model model = net.faithful(net.quantizer("sum", layers::add(net.graph, "Add", linear, clamped), {-3, 9}));
  EXPECT_EQ(operations_of(model),
            (Texts{"Conv2D a/Conv2D -> linear", "Conv2D a/Conv2D:again1 -> clamped", "Add Add -> sum"}));
  EXPECT_EQ(model.operations[0].clamp.min, 0);
  EXPECT_GT(model.operations[1].clamp.min, 0);
}

TEST(Convert, EmptyRangesGiveZeroOnly) {
  EvalNet net;
  const Output dead = net.quantizer("dead", net.conv("a", net.images()), {0, 0});
  const Model model = net.faithful(net.quantizer("q", net.conv("b", dead), {-1, 1}));
  const Grid& grid = model.tensors[1].grid;
  EXPECT_EQ(model.operations[0].clamp, (Clamp{grid.zero_point, grid.zero_point}));
}

TEST(Convert, NarrowRangesOfActivationsLeaveOutZero) {
  EvalNet net;
  FakeQuantAttributes narrow = EvalNet::evaluating();
  narrow.narrow_range = true;
  narrow.bits = 3;
  const Output y = net.quantizer("q", net.conv("a", net.images()), {-1, 1}, narrow);
  const Model model = net.faithful(net.quantizer("again", y, {-1, 1}, narrow));
  EXPECT_EQ(model.operations[0].clamp, (Clamp{1, 7}));
  EXPECT_EQ(model.tensor(model.output).grid.bits, 3);
}

TEST(Convert, MatrixProductsMayBeTransposed) {
  EvalNet net;
  const Output x = layers::reshape(net.graph, "flat", net.images(), {.shape = {2, -1}});
  Output y = layers::matmul(net.graph, "a/MatMul", x, net.weights("a", {5, 108}), {.transpose_b = true});
  y = net.quantizer("a/act_quant", net.bias("a", y), {-20, 20});
  y = layers::matmul(net.graph, "b/MatMul", y, net.weights("b", {5, 3}));
  const Model model = net.faithful(layers::softmax(net.graph, "probabilities", net.quantizer("logits", y, {-9, 9})));
  EXPECT_EQ(layer_of(model, 1).filter, (Shape{108, 5}));
  EXPECT_EQ(model.tensor(model.output).name, "logits") << "no softmax among integers";
  const std::string refusal =
      testing::error_of([&] { convert(net.graph, net.variables, {.input = net.input, .leaves_out_softmax = false}); });
  EXPECT_TRUE(testing::mentions(refusal, {"[Softmax \"probabilities\"]", "integers have no Softmax"}));
}

TEST(Convert, WeightsComeFromAnythingThatNoInputReaches) {
  EvalNet net;
  FakeQuantAttributes narrow = EvalNet::evaluating();
  narrow.narrow_range = true;
  const Output parts =
      layers::concat(net.graph, "parts", {net.variable("one", {3, 3, 3, 1}), net.variable("rest", {3, 3, 3, 3})});
  const Output folded = layers::mul(net.graph, "folded", parts, net.variable("factor", {4}));
  const Output w = layers::identity(net.graph, "read", net.quantizer("wq", folded, {-1, 1}, narrow));
  const Output y = layers::conv2d(net.graph, "Conv2D", net.images(), w, {.dilations = {2, 1}});
  net.faithful(net.quantizer("q", y, {-9, 9}));
}

TEST(Convert, RangesOfChannels) {
  for (const bool depthwise : {false, true})
    for (const int axes : {1, 2}) {
      EvalNet net;
      FakeQuantAttributes attributes = EvalNet::evaluating();
      attributes.narrow_range = true;
      attributes.bits = 4;
      const Output x = net.images();
      const Output w = net.variable("w", {3, 3, 3, 2});
      const Output quantized = net.channel_quantizer("wq", w, axes, attributes);
      Tensor& max = net.variables.at("wq/max");
      for (std::int64_t i = 0; i < max.elements(); ++i) max.data<float>()[i] = 0.2f + 0.3f * static_cast<float>(i);
      Output y = depthwise ? layers::depthwise_conv2d(net.graph, "layer", x, quantized)
                           : layers::conv2d(net.graph, "layer", x, quantized);
      y = net.quantizer("q", y, {-9, 9});
      if (!depthwise && axes == 2) {
        EXPECT_TRUE(testing::mentions(net.refusal(y), {"wq", "6 ranges", "2 output channels"}));
        continue;
      }
      const integer::Layer layer = layer_of(net.faithful(y));
      EXPECT_EQ(layer.weight_scales.size(), depthwise ? 6u : 2u);
      EXPECT_EQ(layer.weight_scales[0] == layer.weight_scales.back(), false);
    }
}

TEST(Convert, InputQuantizersAreTheInputsGrid) {
  EvalNet net;
  const Output x = net.quantizer("images/input_quant", net.images(), {-2, 2});
  const Model model = net.faithful(net.quantizer("q", net.conv("a", x), {-9, 9}));
  EXPECT_EQ(model.tensor(model.input).name, "images/input_quant");
  EXPECT_EQ(model.tensor(model.input).grid, (Grid{.scale = 4.0f / 255, .zero_point = 128, .bits = 8}));
  EXPECT_EQ(model.operations.size(), 1u);

  EvalNet two;
  const Output images = two.images();
  const Output other = two.quantizer("other", images, {-2, 2});
  const Output pooled = two.quantizer("q", two.conv("a", images, 3), {-9, 9});
  const Model rescaled = two.faithful(two.quantizer("sum", layers::add(two.graph, "Add", other, pooled), {-9, 9}));
  EXPECT_EQ(rescaled.tensor(rescaled.input).grid, two.input) << "somebody reads it without the quantizer";
}

TEST(Convert, AveragesProductsAndJoins) {
  EvalNet net;
  const Output x = net.images();
  const Output a = net.quantizer("a/q", net.conv("a", x, 3), {-9, 9});
  const Output b =
      layers::avg_pool(net.graph, "pool", a, {.window = {3, 2}, .strides = {1, 1}, .padding = Padding::kSame});
  const Output c =
      net.quantizer("product/q", layers::mul(net.graph, "product", a, net.quantizer("b/q", b, {-4, 4})), {-20, 20});
  const Output d = net.quantizer("joined/q", layers::concat(net.graph, "joined", {a, c, x}, {.axis = 2}), {-9, 9});
  const Output free = layers::concat(net.graph, "free", {d, d}, {.axis = -1});
  const Output e =
      net.quantizer("mean/q", layers::mean(net.graph, "mean", free, {.axes = {-2, 1}, .keep_dims = true}), {-1, 1});
  const Model model = net.faithful(e);
  EXPECT_EQ(operations_of(model),
            (Texts{"Conv2D a/Conv2D -> a/q", "AveragePool pool -> b/q", "Mul product -> product/q",
                   "Concat joined -> joined/q", "Concat free -> free", "AveragePool mean -> mean/q"}));
  EXPECT_EQ(model.tensor(model.output).shape, (Shape{1, 1, 6}));
}

TEST(Convert, DilatedThroughTheBatch) {
  for (const bool cropped : {false, true})
    for (const bool same : {false, true}) {
      EvalNet net;
      const std::int64_t more = cropped ? 2 : 0;
      const Output blocks = layers::space_to_batch(net.graph, "s2b", net.images(),
                                                   {.block_shape = {2, 3}, .paddings = {{2, 2 + more}, {3, 3}}});
      Output y = layers::conv2d(net.graph, "Conv2D", blocks, net.weights("a", {3, 3, 3, 4}),
                                {.padding = same ? Padding::kSame : Padding::kValid});
      y = layers::relu(net.graph, "Relu", net.bias("a", y));
      y = layers::batch_to_space(net.graph, "b2s", y,
                                 {.block_shape = {2, 3}, .crops = {{cropped ? 1 : 0, more}, {0, 0}}});
      const Model model = net.faithful(net.quantizer("q", y, {0, 9}));
      EXPECT_EQ(operations_of(model), Texts{"Conv2D Conv2D -> q"});
      EXPECT_EQ(layer_of(model).window.columns.dilation, 3);
    }
}

/// An activation whose range is [0, 0], as the only input or beside another one, as it is or rearranged.
TEST(Convert, WhatIsAllZeroCostsNobodyItsPrecision) {
  const auto dead = [](EvalNet& net) { return net.quantizer("dead/q", net.conv("dead", net.images()), {0, 0}); };
  const auto alive = [](EvalNet& net) {
    // Of a small scale, beside which that of the empty grid, 1, is a million times too coarse.
    const Output images = net.graph.at("images").output();
    return net.quantizer("alive/q", net.conv("alive", images), {-0.000125, 0.00013});
  };
  const auto expect_exact = [](EvalNet& net, Output y, float size = 0.0002f) {
    const Model model = net.convert(net.quantizer("out/q", y, {-size, size}));
    for (const testing::OperationCheck& check :
         testing::check_operations(net.graph, net.variables, model, testing::images_for(net.graph, model, 1)))
      EXPECT_LE(check.largest, 1) << check.operation;
  };
  {
    EvalNet net;
    expect_exact(net, net.conv("next", dead(net)), 0.05f);
  }
  {
    EvalNet net;
    expect_exact(net, net.conv("next", layers::max_pool(net.graph, "pool", dead(net))), 0.05f);
  }
  {
    EvalNet net;
    const Output zero = dead(net);
    expect_exact(net, layers::add(net.graph, "sum", zero, alive(net)));
  }
  {
    EvalNet net;
    const Output zero = dead(net);
    expect_exact(net, layers::mul(net.graph, "product", alive(net), zero), 0.05f);
  }
  {
    EvalNet net;
    const Output zero = dead(net);
    expect_exact(net, layers::concat(net.graph, "join", {zero, alive(net)}));
  }
  {
    // Without a quantizer of its own, on the empty grid of both.
    EvalNet net;
    const Output zero = dead(net);
    expect_exact(net, net.conv("next", layers::concat(net.graph, "join", {zero, zero})), 0.05f);
  }
  {
    EvalNet net;
    const Output zero = layers::relu(net.graph, "relu", dead(net));
    expect_exact(net, net.conv("next", zero), 0.05f);
  }
  {
    EvalNet net;
    expect_exact(net, net.conv("next", net.quantizer("images/q", net.images(), {0, 0})), 0.05f);
  }
}

}  // namespace
}  // namespace miniqat::quantize::convert_test
