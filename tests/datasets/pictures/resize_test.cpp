#include "datasets/pictures/resize.h"

#include <gtest/gtest.h>

#include "tests/datasets/dataset_files.h"

namespace miniqat::datasets::resize_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

Picture grey(std::int64_t height, std::int64_t width, Bytes pixels) {
  return {.height = height, .width = width, .channels = 1, .pixels = std::move(pixels)};
}

TEST(ResizeTest, ThePictureOfThatSizeStays) {
  const Picture picture = testing::make_picture(5, 7, 3);
  EXPECT_EQ(fit_picture(picture, 5, 7).pixels, picture.pixels);
}

TEST(ResizeTest, ShrinkingAverages) {
  EXPECT_EQ(fit_picture(grey(2, 4, {0, 10, 100, 110, 20, 30, 120, 130}), 1, 2).pixels, (Bytes{15, 115}));
  // Three pixels become two: each covers one and a half.
  EXPECT_EQ(fit_picture(grey(3, 3, {0, 90, 180, 0, 90, 180, 0, 90, 180}), 2, 2).pixels, (Bytes{30, 150, 30, 150}));
}

TEST(ResizeTest, GrowingInterpolates) {
  // Centres of new pixels lie at -0.25, 0.25, 0.75 and 1.25 of the old ones.
  EXPECT_EQ(fit_picture(grey(1, 2, {0, 100}), 2, 4).pixels, (Bytes{0, 25, 75, 100, 0, 25, 75, 100}));
  EXPECT_EQ(fit_picture(grey(1, 1, {7}), 3, 3).pixels, Bytes(9, 7));
}

TEST(ResizeTest, TheMiddleIsCutOut) {
  EXPECT_EQ(fit_picture(grey(1, 5, {1, 2, 3, 4, 5}), 1, 3).pixels, (Bytes{2, 3, 4}));
  EXPECT_EQ(fit_picture(grey(5, 1, {1, 2, 3, 4, 5}), 3, 1).pixels, (Bytes{2, 3, 4}));
  // Without a middle, the pixel before it; none is mixed with its neighbour.
  EXPECT_EQ(fit_picture(grey(1, 4, {1, 2, 30, 4}), 1, 1).pixels, (Bytes{2}));
  // Shrunk to half first: 4 columns of two, of which the middle two stay.
  EXPECT_EQ(fit_picture(grey(2, 8, {0, 0, 10, 10, 20, 20, 30, 30, 0, 0, 10, 10, 20, 20, 30, 30}), 1, 2).pixels,
            (Bytes{10, 20}));
}

TEST(ResizeTest, ConstantPicturesStayConstantAtAnySize) {
  for (std::int64_t from = 1; from < 14; from += 3)
    for (std::int64_t to = 1; to < 14; to += 2)
      for (const int value : {0, 1, 128, 255}) {
        Picture picture{.height = from, .width = 2 * from + 1, .channels = 3, .pixels = {}};
        picture.pixels.assign(picture.shape().elements(), static_cast<std::uint8_t>(value));
        const Picture fitted = fit_picture(picture, to, to + 1);
        EXPECT_EQ(fitted.shape(), (Shape{to, to + 1, 3}));
        EXPECT_EQ(fitted.pixels, Bytes(to * (to + 1) * 3, value)) << from << " to " << to;
      }
}

TEST(ResizeTest, ChannelsStayApart) {
  Picture picture{.height = 4, .width = 4, .channels = 3, .pixels = {}};
  for (int i = 0; i < 16; ++i) picture.pixels.insert(picture.pixels.end(), {10, 20, 30});
  EXPECT_EQ(fit_picture(picture, 3, 2).pixels,
            (Bytes{10, 20, 30, 10, 20, 30, 10, 20, 30, 10, 20, 30, 10, 20, 30, 10, 20, 30}));
}

}  // namespace
}  // namespace miniqat::datasets::resize_test
