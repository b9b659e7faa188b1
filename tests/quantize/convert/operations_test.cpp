// Slice, Clip and Sub among integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "quantize/calibrate/channel_pairs.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"

namespace miniqat::quantize::operations_test {
namespace {

using testing::EvalNet;
using testing::mentions;
using testing::operations_of;
using testing::Texts;

TEST(ConvertSlice, MovesIntegersOnTheGridOfItsInput) {
  EvalNet net;
  const Output x = net.quantizer("x", net.conv("a", net.images(), 6), {-4, 5});
  const Output y =
      layers::slice(net.graph, "y", x, {.axes = {2, -1}, .starts = {1, 4}, .ends = {6, 6}, .steps = {2, 1}});
  const integer::Model model = net.faithful(y);
  EXPECT_EQ(testing::operations_of(model).back(), "Slice y -> y");
  EXPECT_EQ(model.tensors.back().grid, model.tensors[1].grid);
  const auto& slice = std::get<integer::Slice>(model.operations.back().action);
  EXPECT_EQ(slice.starts, (std::vector<std::int64_t>{0, 1, 4}));
  EXPECT_EQ(slice.steps, (std::vector<std::int64_t>{1, 2, 1}));
}

TEST(ConvertSlice, TheBatchIsNotCut) {
  EvalNet net;
  const Output x = net.quantizer("x", net.conv("a", net.images()), {-4, 5});
  const Output y = layers::slice(net.graph, "y", x, {.axes = {0}, .starts = {0}, .ends = {1}});
  EXPECT_TRUE(mentions(net.refusal(y), {"[Slice \"y\"]", "cannot cut the batch"}));
}

/// Behind a Reshape the channels of a layer take turns; a part of them may begin with another one.
TEST(ChannelPairs, DoNotReachOverASliceOfTheLastAxis) {
  for (const bool of_columns : {false, true}) {
    Graph graph;
    Output x = layers::placeholder(graph, "images", {4, 4, 2, 3});
    x = layers::relu(graph, "first/Relu", testing::conv_bias(graph, "first", x, 3, 2));
    if (!of_columns) x = layers::slice(graph, "Slice", x, {.axes = {1}, .starts = {1}, .ends = {3}});
    x = layers::reshape(graph, "Reshape", x, {.shape = {4, -1}});
    if (of_columns) x = layers::slice(graph, "Slice", x, {.axes = {1}, .starts = {1}, .ends = {9}});
    x = layers::matmul(graph, "second/MatMul", x, layers::variable(graph, "second/weights", {8, 5}));
    graph.set_outputs({x});
    EXPECT_EQ(find_channel_pairs(graph).pairs.size(), of_columns ? 0U : 1U);
  }
}

/// A Clip is a clamp of the operation before it: the integers that the last operation may write.
integer::Clamp clamp_of(const layers::ClipAttributes& bounds, Range<float> range, bool relu = false) {
  EvalNet net;
  Output y = layers::clip(net.graph, "Clip", net.conv("a", net.images()), bounds);
  if (relu) y = layers::relu(net.graph, "Relu", y);
  const integer::Model model = net.faithful(net.quantizer("y", y, range));
  EXPECT_EQ(model.operations.size(), 1U);
  return model.operations.back().clamp;
}

TEST(ConvertClip, ItsBoundsAreTheClamp) {
  // 255 steps of 0.01, real 0 at 100.
  const Range<float> range = {-1, 1.55F};
  using integer::Clamp;
  EXPECT_EQ(clamp_of({}, range), (Clamp{0, 200}));
  EXPECT_EQ(clamp_of({.low = -0.25, .high = 1}, range), (Clamp{75, 200}));
  EXPECT_EQ(clamp_of({.low = 0.5, .high = 9}, range), (Clamp{150, 255}));
  EXPECT_EQ(clamp_of({.low = -0.5, .high = layers::ClipAttributes::kMost}, range), (Clamp{50, 255}));
  // Apart from 0, behind another clamp and on a grid that ends before it.
  EXPECT_EQ(clamp_of({.low = -0.75, .high = -0.25}, range, true), (Clamp{100, 100}));
  EXPECT_EQ(clamp_of({.low = 2, .high = 3}, range), (Clamp{255, 255}));
}

TEST(ConvertClip, OnItsOwnItRescales) {
  EvalNet net;
  const Output x = net.quantizer("x", net.conv("a", net.images()), {-4, 5});
  const integer::Model model =
      net.faithful(net.quantizer("y", layers::clip(net.graph, "Clip", x, {.low = -0.3, .high = 0.4}), {-0.3F, 0.4F}));
  EXPECT_EQ(testing::operations_of(model).back(), "Rescale Clip -> y");
}

/// Both bounds are nearest to ends of the grid of 3 bits, and far from them on the other one.
TEST(ConvertClip, ABoundCountsOnTheGridBehindIt) {
  EvalNet net;
  FakeQuantAttributes few = EvalNet::evaluating();
  few.bits = 3;
  const Output x = net.quantizer("x", net.conv("a", net.images()), {-1.7F, 0.7F}, few);
  const Output clipped = layers::clip(net.graph, "Clip", x, {.low = -1.6, .high = 0.6});
  const integer::Model model = net.faithful(net.quantizer("y", clipped, {-1.9F, 1.1F}));
  EXPECT_EQ(operations_of(model).back(), "Rescale Clip -> y");
  EXPECT_GT(model.operations.back().clamp.min, 0);
  EXPECT_LT(model.operations.back().clamp.max, 255);
  // On the grid that is there it has nothing to do.
  const Output wide = layers::clip(net.graph, "wide", x, {.low = -1.6, .high = 0.6});
  EXPECT_EQ(operations_of(net.convert(net.quantizer("z", wide, {-1.7F, 0.7F}, few))), (Texts{"Conv2D a/Conv2D -> x"}));
}

/// Without a range of its own it keeps its input's grid, which does not hold these numbers.
TEST(ConvertClip, BoundsBeyondTheGridNeedARange) {
  for (const layers::ClipAttributes& bounds :
       {layers::ClipAttributes{.low = 0.8, .high = 2}, {.low = -3, .high = -1.8}}) {
    EvalNet net;
    const Output x = net.quantizer("x", net.conv("a", net.images(), 3), {-1.7F, 0.7F});
    const Output y = layers::add(net.graph, "Add", layers::clip(net.graph, "Clip", x, bounds), x);
    EXPECT_TRUE(mentions(net.refusal(net.quantizer("y", y, {-3, 3})), {"[Add \"Add\"] reads Clip", "no range"}));
  }
}

/// What reads it must not take it for zeros, whose scale means nothing.
TEST(ConvertClip, OfZerosItMayBeAnotherNumber) {
  EvalNet net;
  const Output x = net.quantizer("x", net.conv("a", net.images()), {0, 0});
  const Output y = net.quantizer("y", layers::clip(net.graph, "Clip", x, {.low = 0.5, .high = 1}), {0, 2});
  const integer::Model model = net.faithful(net.quantizer("z", y, {-1, 3}));
  const Tensor result = integer::reference::run(model, testing::images_for(net.graph, model, 1)).back();
  EXPECT_EQ(result.data<std::uint8_t>()[0], 96) << "0.5 of 4, from -1 on";
}

/// The clamp of the layer comes before the Pad: zeros that the Clip moves would stay zeros.
TEST(ConvertClip, BehindAPadItMayHaveToMoveZeros) {
  const layers::PadAttributes borders{.paddings = {{0, 0}, {1, 1}, {0, 2}, {0, 0}}};
  const Range<float> range = {-1, 1.55F};
  const auto clipped = [&](EvalNet& net, Output x, const layers::ClipAttributes& bounds) {
    const Output padded = layers::pad(net.graph, "pad", x, borders);
    return net.quantizer("y", layers::clip(net.graph, "Clip", padded, bounds), range);
  };
  for (const layers::ClipAttributes& bounds :
       {layers::ClipAttributes{.low = 0.5, .high = 1}, {.low = -1, .high = -0.5}}) {
    EvalNet net;
    const Output sum = net.conv("a", net.images());
    EXPECT_TRUE(mentions(net.refusal(clipped(net, sum, bounds)), {"[Clip \"Clip\"] reads pad", "no range"}));
    EvalNet ranged;
    const Output quantized = ranged.quantizer("x", ranged.conv("a", ranged.images()), range);
    ranged.faithful(clipped(ranged, quantized, bounds));
  }
  EvalNet net;
  const Output sum = net.conv("a", net.images());
  EXPECT_EQ(net.faithful(clipped(net, sum, {.low = -0.25, .high = 0.5})).operations.size(), 2U);
}

/// Two quantized tensors of three channels, on grids of so many bits. Their Sub is an Add of the first one and of the
/// second one's mirror image.
struct SubNet : EvalNet {
  explicit SubNet(int bits) : bits(bits) {}

  Output quantized(const std::string& name, Output x, Range<float> range) {
    FakeQuantAttributes attributes = evaluating();
    attributes.bits = bits;
    return quantizer(name, x, range, attributes);
  }

  int bits;
  Output x = images();
  Output a = quantized("a", conv("first", x, 3), {-3.1f, 5.2f});
  Output b = quantized("b", conv("second", x, 3), {-1.3f, 6.4f});
};

std::int32_t integer_of(const Tensor& tensor, std::int64_t i) { return tensor.data<std::uint8_t>()[i]; }

TEST(ConvertSub, IsRoundedOnce) {
  for (const int bits : {8, 4}) {
    SubNet net(bits);
    const Output y = layers::sub(net.graph, "difference", net.a, net.b);
    const integer::Model model = net.faithful(net.quantized("y", y, {-7.7f, 4.9f}));
    EXPECT_EQ(operations_of(model), (Texts{"Conv2D first/Conv2D -> a", "Conv2D second/Conv2D -> b",
                                           "Lookup b:negated -> b:negated", "Add difference -> y"}));
    const Tensor images = testing::images_for(net.graph, model, 1);
    const std::vector<Tensor> integers = integer::reference::run(model, images);
    const Tensor &a = integers[1], &b = integers[2], &found = integers[4];
    const auto grid = [&](std::size_t i) { return model.tensors[i].grid; };
    for (std::int64_t i = 0; i < found.elements(); ++i) {
      const double real = double{grid(1).scale} * (integer_of(a, i) - grid(1).zero_point) -
                          double{grid(2).scale} * (integer_of(b, i) - grid(2).zero_point);
      const double place = std::clamp(real / double{grid(4).scale} + grid(4).zero_point, 0.0, std::exp2(bits) - 1);
      // Half a step, and what the Add's multipliers of 21 bits make.
      ASSERT_NEAR(integer_of(found, i), place, 0.501) << i;
    }
  }
}

/// Behind a Relu, twice of one tensor, and of a tensor and itself.
TEST(ConvertSub, ReadersShareTheMirror) {
  SubNet net(8);
  const Output first =
      net.quantizer("c", layers::relu(net.graph, "Relu", layers::sub(net.graph, "one", net.a, net.b)), {0, 4.1f});
  const Output second = net.quantizer("d", layers::sub(net.graph, "two", first, net.b), {-5, 4});
  const integer::Model model =
      net.faithful(net.quantizer("y", layers::sub(net.graph, "three", second, second), {-1, 1}));
  EXPECT_EQ(operations_of(model),
            (Texts{"Conv2D first/Conv2D -> a", "Conv2D second/Conv2D -> b", "Lookup b:negated -> b:negated",
                   "Add one -> c", "Add two -> d", "Lookup d:negated -> d:negated", "Add three -> y"}));
  const std::vector<Tensor> integers = integer::reference::run(model, testing::images_for(net.graph, model, 1));
  const Tensor& nothing = integers.back();
  for (std::int64_t i = 0; i < nothing.elements(); ++i)
    ASSERT_EQ(integer_of(nothing, i), model.tensors.back().grid.zero_point) << i;
}

/// The scale of a tensor that holds zeros only says nothing, and must not cost the other one its precision.
TEST(ConvertSub, OfZerosIsTheFirstOperand) {
  SubNet net(8);
  const Output zeros = net.quantizer("zeros", layers::relu(net.graph, "Relu", net.b), {-1e6f, 0});
  const Output y = layers::sub(net.graph, "difference", net.a, zeros);
  const integer::Model model = net.faithful(net.quantizer("y", y, {-3.1f, 5.2f}));
  const auto& sum = std::get<integer::Add>(model.operations.back().action);
  EXPECT_EQ(sum.multipliers.mantissas, (std::vector<std::int32_t>{1 << 20, 0}));
}

TEST(ConvertSub, AStretchedOperandIsRefused) {
  SubNet net(8);
  const Output means = layers::mean(net.graph, "Mean", net.a, {.axes = {1, 2}, .keep_dims = true});
  const Output y = layers::sub(net.graph, "centred", net.a, net.quantizer("m", means, {-4, 5}));
  EXPECT_TRUE(mentions(net.refusal(net.quantizer("y", y, {-4, 5})),
                       {"[Sub \"centred\"]", "stretches m [2,1,1,3]", "one shape"}));
}

}  // namespace
}  // namespace miniqat::quantize::operations_test
