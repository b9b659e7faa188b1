// What conversion refuses, and how it says so.

#include <gtest/gtest.h>

#include <limits>

#include "tests/quantize/eval_net.h"

namespace miniqat::quantize::convert_errors_test {
namespace {

using testing::EvalNet;
using testing::mentions;

constexpr const char* kAdvice = "train with quantization, or `miniqat calibrate`";

TEST(ConvertErrors, FloatNetworks) {
  EvalNet net;
  const Output y = layers::conv2d(net.graph, "Conv2D", net.images(), net.variable("w", {3, 3, 3, 4}));
  EXPECT_TRUE(mentions(net.refusal(y), {"float network", kAdvice}));
}

TEST(ConvertErrors, EdgesWithoutRangeAreNamed) {
  EvalNet net;
  const Output x = net.images();
  const Output a = net.conv("a", x, 3);
  EXPECT_TRUE(mentions(net.refusal(a), {"the output reads a/BiasAdd", "no range"}));
  EXPECT_TRUE(mentions(net.refusal(net.conv("b", a)), {"\"b/Conv2D\"", "reads a/BiasAdd", "no range"}));
  const Output relu = layers::relu(net.graph, "Relu", a);
  EXPECT_TRUE(mentions(net.refusal(net.bias("late", relu)), {"\"late/BiasAdd\"", "reads Relu", "no range"}));
  const Output sum = layers::add(net.graph, "sum", x, relu);
  EXPECT_TRUE(mentions(net.refusal(net.quantizer("sum/q", sum, {0, 1})), {"\"sum\"", "reads Relu", "no range"}));
  const Output pool = layers::avg_pool(net.graph, "pool", x);
  EXPECT_TRUE(mentions(net.refusal(net.conv("c", pool)), {"\"c/Conv2D\"", "reads pool", "no range"}));
  const Output w = net.variable("free/weights", {3, 3, 3, 4});
  const Output free = layers::conv2d(net.graph, "free/Conv2D", x, layers::identity(net.graph, "read", w));
  EXPECT_TRUE(mentions(net.refusal(free), {"\"free/Conv2D\"", "reads free/weights", "no range"}));
  const Output padded = layers::pad(net.graph, "pad", a, {.paddings = {{0, 0}, {1, 1}, {0, 0}, {0, 0}}});
  EXPECT_TRUE(mentions(net.refusal(net.bias("behind", padded)), {"\"behind/BiasAdd\"", "reads pad", "no range"}));
  EvalNet grids;
  const Output images = grids.images();
  const Output q = grids.quantizer("q", images, {0, 1});
  EXPECT_TRUE(
      mentions(grids.refusal(layers::concat(grids.graph, "join", {q, images})), {"the output reads join", "no range"}));
}

TEST(ConvertErrors, OpsThatHaveNoIntegerCounterpart) {
  EvalNet net;
  const Output x = net.images();
  const Output q = net.quantizer("q", net.conv("a", x, 3), {-1, 1});
  const auto refused = [&](Output y) { return net.refusal(net.quantizer(net.graph.unique_name("out"), y, {-1, 1})); };
  EXPECT_TRUE(
      mentions(refused(layers::div(net.graph, "div", q, x)), {"[Div \"div\"]", "cannot be part of an integer model"}));
  EXPECT_TRUE(mentions(refused(layers::square(net.graph, "square", q)),
                       {"[Square \"square\"]", "cannot be part of an integer model"}));
  EXPECT_TRUE(mentions(refused(layers::softmax(net.graph, "softmax", q)), {"softmax", "only be left out at the end"}));
  const Output pixels =
      net.quantizer("pixels/q", layers::mean(net.graph, "pixels", q, {.axes = {1, 2}, .keep_dims = true}), {-1, 1});
  const Output stretched = layers::add(net.graph, "stretched", q, pixels);
  EXPECT_TRUE(mentions(refused(stretched), {"stretched", "pixels/q [2,1,1,3]", "[2,6,6,3]", "one shape"}));
  const Output per_pixel = layers::add(net.graph, "per_pixel", net.conv("b", q, 3), net.variable("map", {6, 6, 3}));
  EXPECT_TRUE(mentions(refused(per_pixel), {"per_pixel", "map [6,6,3]", "not one number for each channel"}));
  const Output rows = layers::mean(net.graph, "rows", q, {.axes = {1}});
  EXPECT_TRUE(mentions(refused(rows), {"rows", "height and width"}));
  const Output examples = layers::mean(net.graph, "examples", q, {.axes = {0, 1, 2}});
  EXPECT_TRUE(mentions(refused(examples), {"examples", "height and width"}));
}

TEST(ConvertErrors, BatchesStayApart) {
  EvalNet net;
  const Output x = net.quantizer("q", net.images(), {-1, 1});
  EXPECT_TRUE(
      mentions(net.refusal(layers::concat(net.graph, "join", {x, x}, {.axis = -4})), {"join", "single examples"}));
  EXPECT_TRUE(
      mentions(net.refusal(layers::reshape(net.graph, "flat", x, {.shape = {-1, 9}})), {"flat", "[2,6,6,3]", "batch"}));
  const Output padded = layers::pad(net.graph, "pad", x, {.paddings = {{0, 1}, {0, 0}, {0, 0}, {0, 0}}});
  EXPECT_TRUE(mentions(net.refusal(padded), {"pad", "single examples"}));
}

TEST(ConvertErrors, LayersOfOtherKinds) {
  EvalNet net;
  const Output x = net.quantizer("q", layers::reshape(net.graph, "flat", net.images(), {.shape = {2, -1}}), {-1, 1});
  const Output left = layers::matmul(net.graph, "left", net.weights("l", {5, 2}), x);
  EXPECT_TRUE(mentions(net.refusal(left), {"left", "weights as input 1"}));
  const Output both = layers::matmul(net.graph, "both", x, x, {.transpose_b = true});
  EXPECT_TRUE(mentions(net.refusal(both), {"both", "weights as input 1"}));
  const Output across = layers::matmul(net.graph, "across", x, net.weights("t", {2, 5}), {.transpose_a = true});
  EXPECT_TRUE(mentions(net.refusal(across), {"across", "transposes the batch"}));
  const Output w = net.channel_quantizer("wq", net.variable("w", {5, 108}), 1, EvalNet::evaluating());
  const Output transposed = layers::matmul(net.graph, "transposed", x, w, {.transpose_b = true});
  EXPECT_TRUE(mentions(net.refusal(transposed), {"wq", "108 ranges", "transposed", "5 output channels"}));
}

TEST(ConvertErrors, Quantizers) {
  EvalNet net;
  const Output y = net.conv("a", net.images(), 3);
  FakeQuantAttributes attributes = EvalNet::evaluating();
  attributes.bits = 9;
  EXPECT_TRUE(mentions(net.refusal(net.quantizer("wide", y, {-1, 1}, attributes)), {"wide", "9 bits", "2 to 8"}));
  const Output w = net.quantizer("wq", net.variable("w", {3, 3, 3, 4}), {-1, 1}, attributes);
  const Output layer = layers::conv2d(net.graph, "b/Conv2D", net.graph.at("images").output(), w);
  EXPECT_TRUE(mentions(net.refusal(layer), {"wq", "9 bits"}));
  attributes.bits = 8;
  attributes.is_training = true;
  EXPECT_TRUE(
      mentions(net.refusal(net.quantizer("training", y, {-1, 1}, attributes)), {"training", "evaluation graph"}));
  const Output channels = net.channel_quantizer("channels", y, 1, EvalNet::evaluating());
  EXPECT_TRUE(mentions(net.refusal(channels), {"channels", "only weights"}));
  EXPECT_TRUE(mentions(net.refusal(net.quantizer("endless", y, {-3e38f, 3e38f})), {"endless", "no grid fits"}));
}

TEST(ConvertErrors, RangesThatDependOnTheInput) {
  EvalNet net;
  FakeQuantAttributes attributes = EvalNet::evaluating();
  attributes.per_channel = true;
  const Output highest = layers::placeholder(net.graph, "highest", {4});
  const Output low = net.variable("low", {4}, {-1, -1, -1, -1});
  const Output w = net.variable("w", {3, 3, 3, 4});
  const Output moving = net.graph.add("moving", FakeQuant::make(attributes), {w, low, highest}).output();
  EXPECT_TRUE(mentions(net.refusal(moving), {"\"highest\"", "depends on the network's input"}));
}

TEST(ConvertErrors, InputsAndOutputs) {
  EvalNet net;
  const Output x = net.images();
  const Output q = net.quantizer("q", net.conv("a", x, 3), {-1, 1});
  net.graph.set_outputs({});
  EXPECT_TRUE(mentions(testing::error_of([&] { convert(net.graph, net.variables); }), {"no output"}));
  net.graph.set_outputs({q, x});
  EXPECT_TRUE(mentions(testing::error_of([&] { convert(net.graph, net.variables); }), {"one output", "q", "images"}));
  const Output other = layers::placeholder(net.graph, "other", {2, 6, 6, 3});
  const Output sum = net.quantizer("sum/q", layers::add(net.graph, "sum", q, other), {-1, 1});
  EXPECT_TRUE(mentions(net.refusal(sum), {"one input", "\"images\"", "\"other\""}));
  EXPECT_TRUE(mentions(net.refusal(net.graph.at("a/weights").output()), {"a/weights", "does not depend"}));
  const Output labels = layers::placeholder(net.graph, "labels", {2}, DType::kInt32);
  EXPECT_TRUE(mentions(net.refusal(labels), {"labels", "int32"}));
  EXPECT_EQ(net.refusal(q), "") << "what the output does not need is nobody's business";
}

TEST(ConvertErrors, InputsThatWereAllEqual) {
  EvalNet net;
  const Output x = net.quantizer("x/q", net.images(), {0, 0});
  net.graph.set_outputs({net.quantizer("q", net.conv("a", x, 3), {-1, 1})});
  EXPECT_TRUE(mentions(testing::error_of([&] { convert(net.graph, net.variables, {.input = std::nullopt}); }),
                       {"\"x/q\"", "has the range [0, 0]: all inputs were equal"}));
}

TEST(ConvertErrors, Variables) {
  EvalNet net;
  const Output q = net.quantizer("q", net.conv("first", net.images(), 3), {-1, 1});
  const NamedTensors all = net.variables;
  net.variables.erase("first/biases");
  net.variables["first/bases"] = Tensor(Shape{3});
  EXPECT_TRUE(mentions(net.refusal(q), {"\"first/biases\" is missing", "did you mean \"first/bases\""}));
  net.variables = all;
  net.variables["first/biases"] = Tensor(Shape{4});
  EXPECT_TRUE(mentions(net.refusal(q), {"first/biases", "[3]", "[4]"}));
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (const char* name : {"first/biases", "q/max", "first/weights_quant/min"}) {
      net.variables = all;
      net.variables[name] = all.at(name).clone();
      net.variables[name].data<float>()[0] = odd;
      EXPECT_TRUE(mentions(net.refusal(q), {name, "not finite"}));
    }
}

TEST(ConvertErrors, PixelsInTheBatch) {
  const auto refused = [](std::array<std::int64_t, 2> strides, std::vector<std::int64_t> back, std::int64_t crop,
                          bool quantized) {
    EvalNet net;
    const Output blocks = layers::space_to_batch(net.graph, "s2b", net.images({2, 6, 6, 3}), {.block_shape = {2, 3}});
    Output y = layers::conv2d(net.graph, "layer", blocks, net.weights("a", {1, 1, 3, 3}), {.strides = strides});
    if (quantized) y = net.quantizer("inside", y, {-1, 1});
    y = layers::batch_to_space(net.graph, "b2s", y, {.block_shape = std::move(back), .crops = {{crop, 0}, {0, 0}}});
    return net.refusal(net.quantizer("q", y, {-1, 1}));
  };
  EXPECT_EQ(refused({1, 1}, {2, 3}, 0, false), "");
  EXPECT_TRUE(mentions(refused({2, 1}, {2, 3}, 0, false), {"b2s", "strides"}));
  EXPECT_TRUE(mentions(refused({1, 1}, {3, 2}, 0, false), {"b2s", "does not undo"}));
  EXPECT_TRUE(mentions(refused({1, 1}, {2, 3}, 1, false), {"b2s", "crops 1"}));
  EXPECT_TRUE(mentions(refused({1, 1}, {2, 3}, 0, true), {"inside", "between SpaceToBatchND"}));
  EvalNet net;
  const Output x = net.quantizer("q", net.images(), {-1, 1});
  const Output blocks = layers::space_to_batch(net.graph, "s2b", x, {.block_shape = {2, 3}});
  EXPECT_TRUE(mentions(net.refusal(blocks), {"the output reads s2b", "between SpaceToBatchND"}));
  EXPECT_TRUE(
      mentions(net.refusal(layers::relu(net.graph, "Relu", blocks)), {"Relu", "s2b", "between SpaceToBatchND"}));
  const Output back = layers::batch_to_space(net.graph, "back", blocks, {.block_shape = {2, 3}});
  EXPECT_TRUE(mentions(net.refusal(back), {"back", "does not follow a convolution"}));
  const Output rows = layers::space_to_batch(net.graph, "rows", x, {.block_shape = {2}});
  EXPECT_TRUE(mentions(net.refusal(rows), {"rows", "height and width"}));
}

/// What is made of the picture without a layer has no range but by quantize_input; other advice would be in vain.
TEST(ConvertErrors, WhatIsComputedFromThePictureWantsAQuantizedPicture) {
  const auto refusal = [](const auto& make) {
    EvalNet net;
    const Output images = net.images();
    return net.refusal(net.quantizer("c/q", net.conv("c", make(net.graph, images)), {-1, 1}));
  };
  for (const std::string& text : {
           refusal([](Graph&g, Output x) { return layers::avg_pool(g, "pool", x); }),
           refusal([](Graph&g, Output x) { return layers::add(g, "sum", x, x); }),
           refusal([](Graph&g, Output x) { return layers::mul(g, "product", x, x); }),
           // The picture may be moved first.
           refusal([](Graph&g, Output x) { return layers::avg_pool(g, "pool", layers::max_pool(g, "max", x)); }),
           refusal([](Graph&g, Output x) {
             const Output padded = layers::pad(g, "pad", x, {{{0, 0}, {1, 1}, {1, 1}, {0, 0}}});
             return layers::avg_pool(g, "pool", padded);
           }),
           refusal([](Graph&g, Output x) {
             const Output twice = layers::concat(g, "twice", {x, x});
             return layers::avg_pool(g, "pool", twice);
           }),
           refusal([](Graph&g, Output x) {
             const Output max = layers::max_pool(g, "max", x);
             return layers::relu(g, "Relu", layers::add(g, "sum", max, max));
           }),
       }) {
    EXPECT_TRUE(
        mentions(text, {"\"c/Conv2D\"] reads", "has no range", "computed from the picture", "`quantize_input`"}))
        << text;
    EXPECT_EQ(text.find("--scope"), std::string::npos);
    EXPECT_EQ(text.find("float_pools"), std::string::npos);
  }
  EvalNet net;
  const Output pool = layers::avg_pool(net.graph, "pool", net.quantizer("q", net.conv("c", net.images()), {-1, 1}));
  EXPECT_EQ(net.refusal(net.conv("d", pool)).find("quantize_input"), std::string::npos);
  // With one input that has a range, the sum would have got one.
  EvalNet mixed;
  const Output images = mixed.images(), known = mixed.quantizer("q", layers::relu(mixed.graph, "Relu", images), {0, 1});
  const std::string text = mixed.refusal(mixed.conv("c", layers::add(mixed.graph, "sum", images, known)));
  EXPECT_NE(text.find("has no range"), std::string::npos) << text;
  EXPECT_EQ(text.find("quantize_input"), std::string::npos) << text;
}

}  // namespace
}  // namespace miniqat::quantize::convert_errors_test
