#include "datasets/pictures/formats.h"

#include <gtest/gtest.h>
#include <webp/encode.h>

#include "core/text/error.h"
#include "datasets/pictures/orientation.h"
#include "tests/datasets/dataset_files.h"
#include "tests/errors.h"

namespace miniqat::datasets::formats_test {
namespace {

using testing::bmp_bytes;
using testing::error_of;
using testing::make_picture;
using testing::mentions;

Picture decode(const std::string& bytes) { return decode_picture(bytes, Colour::kAuto, "p"); }

/// Sets a little-endian number in the file.
void put_number(std::string& bytes, std::size_t place, std::uint32_t value, int size) {
  for (int i = 0; i < size; ++i) bytes[place + static_cast<std::size_t>(i)] = static_cast<char>(value >> 8 * i & 255);
}

constexpr std::size_t kBits = 28, kCompression = 30, kColours = 46, kFirstRow = 10, kHeader = 14;

TEST(BmpTest, ColoursGiveTheirBytes) {
  for (const int bits : {24, 32})
    for (const bool masks : {false, true})
      for (const bool top_down : {false, true})
        for (const auto& [height, width] : {std::pair{1, 1}, {5, 3}, {17, 33}}) {
          if (masks && bits == 24) continue;
          const Picture picture = make_picture(height, width, 3);
          const Picture decoded = decode(bmp_bytes(picture, {.bits = bits, .masks = masks, .top_down = top_down}));
          EXPECT_EQ(decoded.shape(), picture.shape());
          EXPECT_EQ(decoded.pixels, picture.pixels) << bits << " bits, " << masks << top_down;
        }
}

TEST(BmpTest, FiveBitsASideAreScaledToBytes) {
  const Picture picture = make_picture(4, 5, 3), decoded = decode(bmp_bytes(picture, {.bits = 16}));
  for (std::size_t i = 0; i < picture.pixels.size(); ++i)
    EXPECT_EQ(decoded.pixels[i], (picture.pixels[i] / 8 * 255 + 15) / 31) << i;
}

TEST(BmpTest, PalettesAreGreyIfAllTheirColoursAre) {
  for (const int bits : {1, 4, 8})
    for (const bool top_down : {false, true}) {
      const Picture picture = make_picture(7, 13, 1);
      const int most = (1 << bits) - 1;
      const std::string grey = bmp_bytes(picture, {.bits = bits, .top_down = top_down});
      EXPECT_TRUE(picture_header(grey, "p").grey);
      const Picture decoded = decode(grey);
      ASSERT_EQ(decoded.shape(), picture.shape());
      const Picture blue = decode(bmp_bytes(picture, {.bits = bits, .top_down = top_down, .blue = true}));
      ASSERT_EQ(blue.shape(), (Shape{7, 13, 3}));
      for (std::size_t i = 0; i < picture.pixels.size(); ++i) {
        const int level = (picture.pixels[i] & most) * 255 / most;
        EXPECT_EQ(decoded.pixels[i], level) << bits << " bits, pixel " << i;
        EXPECT_EQ((std::vector<int>{blue.pixels[3 * i], blue.pixels[3 * i + 1], blue.pixels[3 * i + 2]}),
                  (std::vector<int>{0, 0, level}));
      }
    }
}

TEST(BmpTest, OldHeadersHavePalettesOfThreeBytes) {
  // BITMAPCOREHEADER: 12 bytes, of 1 bit a pixel; the palette is black and red.
  std::string bytes = "BM" + std::string(12, '\0') + std::string(12, '\0') + std::string("\0\0\0\0\0\xff", 6);
  put_number(bytes, kFirstRow, 32, 4);
  put_number(bytes, kHeader, 12, 4);
  put_number(bytes, kHeader + 4, 3, 2);
  put_number(bytes, kHeader + 6, 1, 2);
  put_number(bytes, kHeader + 8, 1, 2);
  put_number(bytes, kHeader + 10, 1, 2);
  bytes += std::string("\x40\0\0\0", 4);
  const Picture decoded = decode(bytes);
  ASSERT_EQ(decoded.shape(), (Shape{1, 3, 3}));
  EXPECT_EQ(decoded.pixels, (std::vector<std::uint8_t>{0, 0, 0, 255, 0, 0, 0, 0, 0}));
}

TEST(BmpTest, TransparentPixelsLieOnBlackUnlessAllAre) {
  const Picture half{.height = 1, .width = 2, .channels = 4, .pixels = {200, 100, 50, 255, 200, 100, 50, 51}};
  EXPECT_EQ(decode(bmp_bytes(half, {.bits = 32, .masks = true})).pixels,
            (std::vector<std::uint8_t>{200, 100, 50, 40, 20, 10}));
  const Picture none{.height = 1, .width = 2, .channels = 4, .pixels = {200, 100, 50, 0, 1, 2, 3, 0}};
  EXPECT_EQ(decode(bmp_bytes(none, {.bits = 32, .masks = true})).pixels,
            (std::vector<std::uint8_t>{200, 100, 50, 1, 2, 3}));
}

TEST(BmpTest, EveryTruncationIsAnError) {
  const Picture colour = make_picture(5, 8, 3), grey = make_picture(5, 8, 1);
  for (const std::string& bytes : {bmp_bytes(colour), bmp_bytes(grey, {.bits = 8}), bmp_bytes(colour, {.bits = 16})})
    for (std::size_t length = 0; length < bytes.size(); ++length)
      EXPECT_THROW(decode(bytes.substr(0, length)), Error) << length << " of " << bytes.size();
}

TEST(BmpTest, CompressedKindsAreRefusedByName) {
  const std::pair<std::uint32_t, const char*> kinds[] = {
      {1, "run lengths"}, {2, "run lengths"}, {4, "a JPEG"}, {5, "a PNG"}};
  for (const auto& [kind, name] : kinds) {
    std::string bytes = bmp_bytes(make_picture(4, 4, 1), {.bits = 8});
    put_number(bytes, kCompression, kind, 4);
    EXPECT_TRUE(mentions(error_of([&] { decode(bytes); }), {"\"p\" is a compressed BMP", name, "convert it to PNG"}));
  }
}

TEST(BmpTest, DamagedHeadersAreNamed) {
  const std::string whole = bmp_bytes(make_picture(4, 4, 1), {.bits = 8});
  const auto damaged = [&](std::size_t place, std::uint32_t value, int size) {
    std::string bytes = whole;
    put_number(bytes, place, value, size);
    return error_of([&] { decode(bytes); });
  };
  EXPECT_TRUE(mentions(damaged(kBits, 7, 2), {"damaged BMP", "7 bits a pixel"}));
  EXPECT_TRUE(mentions(damaged(kColours, 257, 4), {"damaged BMP", "palette has 257 colours"}));
  EXPECT_TRUE(mentions(damaged(kColours, 2, 4), {"damaged BMP", "a colour that its palette has not"}));
  EXPECT_TRUE(mentions(damaged(kCompression, 9, 4), {"damaged BMP", "the compression 9"}));
  EXPECT_TRUE(mentions(damaged(kCompression, 3, 4), {"damaged BMP", "masks for 8 bits"}));
  EXPECT_TRUE(mentions(damaged(kFirstRow, 60, 4), {"damaged BMP", "begin inside of its header"}));
  EXPECT_TRUE(mentions(damaged(kHeader, 64, 4), {"header of 64 bytes"}));
  EXPECT_TRUE(mentions(damaged(kHeader + 4, 1 << 30, 4), {"at most"}));
  EXPECT_TRUE(mentions(damaged(kHeader + 8, 0x80000000, 4), {"at most"}));
}

using testing::webp_bytes;

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

}  // namespace miniqat::datasets::formats_test
