#include <gtest/gtest.h>
#include <webp/encode.h>

#include <cstdlib>

#include "core/text/error.h"
#include "datasets/pictures/formats.h"
#include "datasets/pictures/orientation.h"
#include "tests/datasets/picture_files.h"
#include "tests/errors.h"

namespace miniqat::datasets::webp_test {
namespace {

using testing::error_of;
using testing::make_picture;
using testing::mentions;
using testing::webp_bytes;

Picture decode(const std::string& bytes) { return decode_picture(bytes, Colour::kAuto, "p"); }

std::string lossy_bytes(const Picture& picture) {
  std::uint8_t* bytes = nullptr;
  const auto width = static_cast<int>(picture.width), height = static_cast<int>(picture.height);
  const std::size_t size = WebPEncodeRGB(picture.pixels.data(), width, height, 3 * width, 90, &bytes);
  std::string result(reinterpret_cast<const char*>(bytes), size);
  WebPFree(bytes);
  return result;
}

TEST(WebpTest, LosslessGivesItsBytes) {
  for (const auto& [height, width] : {std::pair{1, 1}, {5, 3}, {28, 28}, {17, 33}}) {
    const Picture picture = make_picture(height, width, 3), decoded = decode(webp_bytes(picture));
    EXPECT_EQ(decoded.shape(), picture.shape());
    EXPECT_EQ(decoded.pixels, picture.pixels);
    EXPECT_FALSE(picture_header(webp_bytes(picture), "p").grey);
  }
}

TEST(WebpTest, LossyComesNear) {
  Picture picture{.height = 13, .width = 21, .channels = 3, .pixels = {}};
  for (std::int64_t y = 0; y < 13; ++y)
    for (std::int64_t i = 0; i < 21 * 3; ++i)
      picture.pixels.push_back(static_cast<std::uint8_t>(40 + 8 * y + 2 * (i / 3) + 9 * (i % 3)));
  const Picture decoded = decode(lossy_bytes(picture));
  ASSERT_EQ(decoded.shape(), picture.shape());
  for (std::size_t i = 0; i < picture.pixels.size(); ++i) EXPECT_NEAR(decoded.pixels[i], picture.pixels[i], 8) << i;
}

TEST(WebpTest, TransparentPixelsLieOnBlack) {
  const Picture picture{.height = 1, .width = 2, .channels = 4, .pixels = {200, 100, 50, 255, 200, 100, 50, 51}};
  EXPECT_EQ(decode(webp_bytes(picture)).pixels, (std::vector<std::uint8_t>{200, 100, 50, 40, 20, 10}));
}

TEST(WebpTest, TheNotedOrientationCounts) {
  const Picture picture = make_picture(3, 5, 3);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string bytes = testing::turned_webp_bytes(picture, orientation);
    EXPECT_EQ(noted_orientation(bytes), orientation);
    const Picture expected = upright(picture, orientation), decoded = decode(bytes);
    EXPECT_EQ(decoded.shape(), expected.shape()) << orientation;
    EXPECT_EQ(decoded.pixels, expected.pixels) << orientation;
    const PictureHeader header = picture_header(bytes, "p");
    EXPECT_EQ((Shape{header.height, header.width, 3}), expected.shape()) << orientation;
    // The note is at the end: without it nobody knows which side is which.
    EXPECT_THROW(picture_header(bytes.substr(0, bytes.size() - 20), "p"), Error);
  }
}

TEST(WebpTest, EveryTruncationIsAnError) {
  const Picture picture = make_picture(9, 11, 3);
  for (const std::string& bytes : {webp_bytes(picture), lossy_bytes(picture)})
    for (std::size_t length = 0; length < bytes.size(); ++length)
      EXPECT_THROW(decode(bytes.substr(0, length)), Error) << length << " of " << bytes.size();
}

TEST(WebpTest, AnimationsAreRefusedByName) {
  // VP8X with the flag of animation, 4 x 4 pixels, and its colour and number of turns.
  const std::string head("VP8X\x0a\0\0\0\x02\0\0\0\x03\0\0\x03\0\0", 18);
  const std::string content = "WEBP" + head + std::string("ANIM\x06\0\0\0\0\0\0\0\0\0", 14);
  const std::string bytes = "RIFF" + std::string(1, static_cast<char>(content.size())) + std::string(3, '\0') + content;
  EXPECT_TRUE(mentions(error_of([&] { decode(bytes); }), {"\"p\" is an animated WebP"}));
}

}  // namespace
}  // namespace miniqat::datasets::webp_test
