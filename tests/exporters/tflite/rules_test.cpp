// The rules by which TensorFlow Lite derives activations' bounds and paddings, against the windows and clamps they
// must reproduce.

#include "exporters/tflite/rules.h"

#include <gtest/gtest.h>

namespace miniqat::exporters::rules_test {
namespace {

using integer::Grid;
using tflite_schema::Activation;
using tflite_schema::Padding;

void expect_bounds(const TfliteBounds& bounds, Activation activation, std::optional<std::int32_t> at_least,
                   std::optional<std::int32_t> at_most) {
  EXPECT_EQ(bounds.activation, activation);
  EXPECT_EQ(bounds.at_least, at_least);
  EXPECT_EQ(bounds.at_most, at_most);
}

TEST(TfliteRules, ActivationsOfWholeBytes) {
  const Grid grid = {.scale = 0.04f, .zero_point = 30};
  expect_bounds(tflite_bounds(grid, {0, 255}, true), Activation::NONE, {}, {});
  expect_bounds(tflite_bounds(grid, {30, 255}, true), Activation::RELU, {}, {});
  // 30 + 6 / 0.04
  expect_bounds(tflite_bounds(grid, {30, 180}, true), Activation::RELU6, {}, {});
  expect_bounds(tflite_bounds(grid, {30, 179}, true), Activation::RELU6, {}, 179);
  expect_bounds(tflite_bounds(grid, {30, 181}, true), Activation::RELU, {}, 181);
  expect_bounds(tflite_bounds(grid, {29, 255}, true), Activation::NONE, 29, {});
  expect_bounds(tflite_bounds(grid, {31, 200}, true), Activation::RELU, 31, 200);
  expect_bounds(tflite_bounds(grid, {30, 180}, false), Activation::NONE, 30, 180);
}

TEST(TfliteRules, FewerBitsFitWhereRelu6EndsThere) {
  expect_bounds(tflite_bounds({.scale = 0.4f, .zero_point = 0, .bits = 4}, {0, 15}, true), Activation::RELU6, {}, {});
  expect_bounds(tflite_bounds({.scale = 0.3f, .zero_point = 0, .bits = 4}, {0, 15}, true), Activation::RELU6, {}, 15);
  // What cannot leave the bits by itself needs nothing.
  expect_bounds(tflite_bounds({.scale = 0.3f, .zero_point = 3, .bits = 4}, {0, 15}, true, 15), Activation::NONE, {},
                {});
}

TEST(TfliteRules, Relu6IsLeftAloneNearATie) {
  // 6 / scale = 12.5
  expect_bounds(tflite_bounds({.scale = 0.48f, .zero_point = 0, .bits = 4}, {0, 13}, true), Activation::NONE, {}, 13);
}

/// What the format's documentation says of SAME and VALID, as a window.
WindowAxis place(std::int64_t input, std::int64_t window, std::int64_t stride, std::int64_t dilation, Padding padding) {
  const miniqat::WindowAttributes attributes = {
      .window = {window, 1},
      .strides = {stride, 1},
      .dilations = {dilation, 1},
      .padding = padding == Padding::SAME ? miniqat::Padding::kSame : miniqat::Padding::kValid};
  return miniqat::slide({1, input, 1, 1}, attributes).rows;
}

TEST(TfliteRules, PaddingsAreRecognised) {
  for (std::int64_t input = 1; input <= 8; ++input)
    for (std::int64_t window = 1; window <= 5; ++window)
      for (std::int64_t stride = 1; stride <= 3; ++stride)
        for (std::int64_t dilation = 1; dilation <= (stride == 1 ? 2 : 1); ++dilation)
          for (const Padding padding : {Padding::SAME, Padding::VALID}) {
            if (padding == Padding::VALID && (window - 1) * dilation + 1 > input) continue;
            const WindowAxis axis = place(input, window, stride, dilation, padding);
            const std::optional<Padding> found = tflite_padding({.rows = axis, .columns = axis});
            ASSERT_TRUE(found) << input << " " << window << " " << stride;
            const WindowAxis again = place(input, window, stride, dilation, *found);
            EXPECT_EQ(again.output, axis.output);
            EXPECT_EQ(again.pad_before, axis.pad_before);
          }
}

TEST(TfliteRules, OtherPaddingsBecomeBorders) {
  // One pixel before and one behind, where SAME has none before.
  const WindowAxis axis = {.input = 8, .window = 3, .stride = 2, .output = 4, .pad_before = 1, .pad_after = 1};
  const WindowAxis plain = {};
  ASSERT_FALSE(tflite_padding({.rows = axis, .columns = plain}));
  EXPECT_EQ(tflite_borders(axis), (std::array<std::int64_t, 2>{1, 0}));
  const miniqat::Window2d bordered = with_borders({.rows = axis, .columns = plain});
  EXPECT_EQ(bordered.rows.input, 9);
  EXPECT_EQ(tflite_padding(bordered), Padding::VALID);
}

TEST(TfliteRules, OneRuleMustHoldForBothAxes) {
  const WindowAxis same = place(8, 3, 1, 1, Padding::SAME), valid = place(8, 3, 1, 1, Padding::VALID);
  EXPECT_FALSE(tflite_padding({.rows = same, .columns = valid}));
  EXPECT_EQ(tflite_padding(with_borders({.rows = same, .columns = valid})), Padding::VALID);
}

}  // namespace
}  // namespace miniqat::exporters::rules_test
