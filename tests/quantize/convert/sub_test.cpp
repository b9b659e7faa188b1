// Sub of two computed tensors among integers: an Add of the first one and of the second one's mirror image.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/quantize/eval_net.h"

namespace miniqat::quantize::sub_test {
namespace {

using testing::EvalNet;
using testing::mentions;
using testing::operations_of;
using testing::Texts;

/// Two quantized tensors of three channels, on grids of so many bits.
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
}  // namespace miniqat::quantize::sub_test
