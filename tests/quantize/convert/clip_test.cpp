// Clip among integers: a clamp of the operation before it.

#include <gtest/gtest.h>

#include "tests/quantize/eval_net.h"

namespace miniqat::quantize::clip_test {
namespace {

using testing::EvalNet;

/// The integers that the last operation may write.
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

}  // namespace
}  // namespace miniqat::quantize::clip_test
