#include "core/tensors/window.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "core/text/error.h"
#include "tests/errors.h"

namespace miniqat::layers::window_test {
namespace {

WindowAxis axis(std::int64_t input, std::int64_t window, std::int64_t stride, std::int64_t dilation, Padding padding) {
  return slide({1, input, 1, 1},
               {.window = {window, 1}, .strides = {stride, 1}, .dilations = {dilation, 1}, .padding = padding})
      .rows;
}

std::tuple<std::int64_t, std::int64_t, std::int64_t> summary(const WindowAxis& axis) {
  return {axis.output, axis.pad_before, axis.pad_after};
}

using Summary = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

TEST(Padding, SameKeepsSizeAndPadsMoreAfter) {
  EXPECT_EQ(summary(axis(28, 5, 1, 1, Padding::kSame)), Summary(28, 2, 2));
  EXPECT_EQ(summary(axis(4, 2, 1, 1, Padding::kSame)), Summary(4, 0, 1));
  EXPECT_EQ(summary(axis(32, 3, 2, 1, Padding::kSame)), Summary(16, 0, 1));
  EXPECT_EQ(summary(axis(33, 3, 2, 1, Padding::kSame)), Summary(17, 1, 1));
}

TEST(Padding, SameWithWindowBeyondImage) {
  EXPECT_EQ(summary(axis(1, 5, 1, 1, Padding::kSame)), Summary(1, 2, 2));
  EXPECT_EQ(summary(axis(2, 7, 2, 1, Padding::kSame)), Summary(1, 2, 3));
}

TEST(Padding, SameWithStrideBeyondWindowNeedsNoPadding) {
  EXPECT_EQ(summary(axis(10, 1, 3, 1, Padding::kSame)), Summary(4, 0, 0));
  EXPECT_EQ(summary(axis(10, 2, 7, 1, Padding::kSame)), Summary(2, 0, 0));
}

TEST(Padding, SameCountsDilation) { EXPECT_EQ(summary(axis(9, 3, 1, 2, Padding::kSame)), Summary(9, 2, 2)); }

TEST(Padding, Valid) {
  EXPECT_EQ(summary(axis(14, 5, 1, 1, Padding::kValid)), Summary(10, 0, 0));
  EXPECT_EQ(summary(axis(7, 2, 2, 1, Padding::kValid)), Summary(3, 0, 0));
  EXPECT_EQ(summary(axis(7, 3, 1, 3, Padding::kValid)), Summary(1, 0, 0));
  EXPECT_EQ(summary(axis(3, 3, 5, 1, Padding::kValid)), Summary(1, 0, 0));
}

/// Rows with a padding of their own; columns of one pixel.
WindowAxis padded(std::int64_t input, std::int64_t window, std::int64_t stride, std::int64_t dilation,
                  std::int64_t before, std::int64_t after) {
  return slide({1, input, 1, 1}, {.window = {window, 1},
                                  .strides = {stride, 1},
                                  .dilations = {dilation, 1},
                                  .padding = Padding::kExplicit,
                                  .pads = {before, 0, after, 0}})
      .rows;
}

TEST(Padding, Explicit) {
  EXPECT_EQ(summary(padded(28, 5, 1, 1, 2, 2)), Summary(28, 2, 2));
  // PyTorch's 3x3 with stride 2 and padding 1: not SAME on an even extent, and the last row of padding is not read.
  EXPECT_EQ(summary(padded(32, 3, 2, 1, 1, 1)), Summary(16, 1, 0));
  EXPECT_EQ(summary(padded(33, 3, 2, 1, 1, 1)), Summary(17, 1, 1));
  EXPECT_EQ(summary(padded(9, 3, 1, 2, 4, 0)), Summary(9, 4, 0));
  EXPECT_EQ(summary(padded(1, 3, 1, 1, 0, 2)), Summary(1, 0, 2));
  EXPECT_EQ(summary(padded(7, 2, 2, 1, 0, 0)), Summary(3, 0, 0));
  // As many pixels of the image unread as the last stride leaves.
  EXPECT_EQ(summary(padded(8, 3, 3, 1, 0, 0)), Summary(2, 0, 0));
}

TEST(Padding, RefusesWrongPads) {
  const auto complaint = [](const WindowAttributes& attributes) {
    return testing::error_of([&] { slide({1, 6, 5, 1}, attributes); });
  };
  const auto text = complaint({.window = {3, 3}, .padding = Padding::kExplicit, .pads = {1, 3, 1, 1}});
  EXPECT_TRUE(testing::mentions(text, {"spans 3 pixels", "[1,3,1,1] (top, left, bottom, right)"}));
  EXPECT_NE(complaint({.window = {3, 3}, .padding = Padding::kExplicit, .pads = {1, 1, -1, 1}}), "");
  EXPECT_TRUE(
      testing::mentions(complaint({.window = {3, 3}, .pads = {1, 1, 1, 1}}), {"EXPLICIT", "not with \"SAME\""}));
  EXPECT_TRUE(testing::mentions(complaint({.window = {9, 3}, .padding = Padding::kExplicit, .pads = {1, 0, 1, 0}}),
                                {"no window fits", "EXPLICIT"}));
}

TEST(Padding, RefusesWhatDoesNotFit) {
  try {
    slide({2, 4, 3, 8}, {.window = {5, 5}, .padding = Padding::kValid});
    FAIL() << "a 5x5 window on a 4x3 image";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("[2,4,3,8]"), std::string::npos) << text;
    EXPECT_NE(text.find("[5,5]"), std::string::npos) << text;
  }
  EXPECT_THROW(axis(6, 3, 1, 3, Padding::kValid), Error);
  // A division that rounds towards 0 would find room for one window here.
  EXPECT_THROW(axis(3, 5, 4, 1, Padding::kValid), Error);
}

TEST(Padding, RefusesAbsurdNumbers) {
  EXPECT_THROW(axis(4, 0, 1, 1, Padding::kSame), Error);
  EXPECT_THROW(axis(4, 2, 0, 1, Padding::kSame), Error);
  EXPECT_THROW(axis(4, 2, 1, -1, Padding::kSame), Error);
  EXPECT_THROW(axis(4, 2, INT64_MAX, 1, Padding::kSame), Error);
  EXPECT_THROW(axis(4, 2, 1, INT64_MAX, Padding::kSame), Error);
  EXPECT_THROW(axis(4, 60000, 1, 60000, Padding::kSame), Error);
}

TEST(Padding, TapsComeInRowMajorOrderAndSkipPadding) {
  // A 2x2 window with SAME on a 2x2 image pads one row below and one column to the right.
  const Window2d window = slide({1, 2, 2, 1}, {.window = {2, 2}});
  std::vector<std::vector<std::int64_t>> seen(4);
  for_each_tap(1, window, [&](const Tap& tap) {
    seen[tap.output].push_back(tap.input);
    EXPECT_LT(tap.window, 4);
  });
  EXPECT_EQ(seen, (std::vector<std::vector<std::int64_t>>{{0, 1, 2, 3}, {1, 3}, {2, 3}, {3}}));
}

}  // namespace
}  // namespace miniqat::layers::window_test
