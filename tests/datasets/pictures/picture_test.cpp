#include "datasets/pictures/picture.h"

#include <gtest/gtest.h>

#include "core/text/error.h"
#include "datasets/pictures/formats.h"
#include "tests/datasets/dataset_files.h"
#include "tests/errors.h"

namespace miniqat::datasets::picture_test {
namespace {

using testing::jpeg_bytes;
using testing::make_picture;
using testing::png_bytes;

Picture decode(const std::string& bytes, Colour colour = Colour::kAuto) { return decode_picture(bytes, colour, "p"); }

TEST(PictureTest, PngGivesItsBytes) {
  for (const int channels : {1, 3})
    for (const bool interlaced : {false, true})
      for (const auto& [height, width] : {std::pair{1, 1}, {5, 3}, {28, 28}, {17, 33}}) {
        const Picture picture = make_picture(height, width, channels);
        const Picture decoded = decode(png_bytes(picture, interlaced));
        EXPECT_EQ(decoded.shape(), picture.shape());
        EXPECT_EQ(decoded.pixels, picture.pixels) << height << "x" << width << "x" << channels;
      }
}

TEST(PictureTest, PngOfOtherDepthsBecomesBytes) {
  const Picture grey = make_picture(7, 5, 1), colour = make_picture(7, 5, 3);
  EXPECT_EQ(decode(testing::png_bytes_16(grey)).pixels, grey.pixels);
  EXPECT_EQ(decode(testing::png_bytes_16(colour)).pixels, colour.pixels);
  for (const int bits : {1, 2, 4}) {
    const Picture decoded = decode(testing::png_bytes_of_bits(grey, bits));
    const int most = (1 << bits) - 1;
    for (std::size_t i = 0; i < grey.pixels.size(); ++i)
      EXPECT_EQ(decoded.pixels[i], (grey.pixels[i] & most) * 255 / most) << bits << " bits, pixel " << i;
  }
}

TEST(PictureTest, TransparentPixelsLieOnBlack) {
  Picture picture{
      .height = 1, .width = 3, .channels = 4, .pixels = {200, 100, 50, 255, 200, 100, 50, 0, 200, 100, 50, 51}};
  EXPECT_EQ(decode(png_bytes(picture)).pixels, (std::vector<std::uint8_t>{200, 100, 50, 0, 0, 0, 40, 20, 10}));
  picture = {.height = 1, .width = 2, .channels = 2, .pixels = {80, 255, 80, 51}};
  EXPECT_EQ(decode(png_bytes(picture)).pixels, (std::vector<std::uint8_t>{80, 16}));
}

TEST(PictureTest, ColoursAreConverted) {
  const Picture rgb{.height = 1, .width = 4, .channels = 3, .pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255}};
  EXPECT_EQ(decode(png_bytes(rgb), Colour::kGrey).pixels, (std::vector<std::uint8_t>{76, 150, 29, 255}));
  const Picture grey{.height = 1, .width = 2, .channels = 1, .pixels = {7, 9}};
  EXPECT_EQ(decode(png_bytes(grey), Colour::kRgb).pixels, (std::vector<std::uint8_t>{7, 7, 7, 9, 9, 9}));
  EXPECT_EQ(decode(png_bytes(grey), Colour::kRgb).channels, 3);
}

TEST(PictureTest, JpegComesNear) {
  for (const int channels : {1, 3}) {
    Picture picture{.height = 13, .width = 21, .channels = channels, .pixels = {}};
    for (std::int64_t y = 0; y < 13; ++y)
      for (std::int64_t i = 0; i < 21 * channels; ++i)
        picture.pixels.push_back(static_cast<std::uint8_t>(40 + 8 * y + 2 * (i / channels) + 9 * (i % channels)));
    const Picture decoded = decode(jpeg_bytes(picture));
    ASSERT_EQ(decoded.shape(), picture.shape());
    for (std::size_t i = 0; i < picture.pixels.size(); ++i) EXPECT_NEAR(decoded.pixels[i], picture.pixels[i], 6) << i;
  }
}

TEST(PictureTest, HeadersAreReadWithoutDecoding) {
  for (const std::string& bytes : {png_bytes(make_picture(9, 4, 1)), jpeg_bytes(make_picture(9, 4, 1))}) {
    const PictureHeader header = picture_header(bytes, "p");
    EXPECT_EQ(header.height, 9);
    EXPECT_EQ(header.width, 4);
    EXPECT_TRUE(header.grey);
  }
  EXPECT_FALSE(picture_header(png_bytes(make_picture(9, 4, 4)), "p").grey);
  EXPECT_FALSE(picture_header(jpeg_bytes(make_picture(9, 4, 3)), "p").grey);
}

TEST(PictureTest, EveryTruncationIsAnError) {
  for (const std::string& bytes : {png_bytes(make_picture(9, 11, 3)), jpeg_bytes(make_picture(9, 11, 3))})
    for (std::size_t length = 0; length + 1 < bytes.size(); ++length)
      EXPECT_THROW(decode(bytes.substr(0, length)), Error) << length << " of " << bytes.size();
}

TEST(PictureTest, EveryDamagedByteIsAnErrorOrAPicture) {
  for (const std::string& bytes : {png_bytes(make_picture(6, 7, 3)), jpeg_bytes(make_picture(6, 7, 3))})
    for (std::size_t place = 0; place < bytes.size(); ++place) {
      std::string damaged = bytes;
      damaged[place] = static_cast<char>(damaged[place] ^ 0x5a);
      try {
        EXPECT_GT(decode(damaged).pixels.size(), 0u);
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      }
    }
}

TEST(PictureTest, OtherFilesAreNamed) {
  EXPECT_TRUE(testing::mentions(testing::error_of([] { decode(""); }), {"p", "is empty"}));
  EXPECT_TRUE(
      testing::mentions(testing::error_of([] { decode("GIF89a"); }), {"is a GIF picture", "convert it to PNG"}));
  EXPECT_TRUE(testing::mentions(testing::error_of([] { decode(std::string("II*\0", 4)); }), {"is a TIFF picture"}));
  EXPECT_TRUE(testing::mentions(testing::error_of([] { decode("label,pixel"); }),
                                {"no picture that can be read", "JPEG, PNG, BMP, WebP"}));
  EXPECT_TRUE(testing::mentions(testing::error_of([] { decode(jpeg_bytes(make_picture(8, 8, 4))); }), {"CMYK", "RGB"}));
}

TEST(PictureTest, AbsurdSizesAreRefusedByTheirHeader) {
  const auto expect_limits = [](const std::string& bytes, const std::string& size) {
    const std::string message = testing::error_of([&] { decode(bytes); });
    EXPECT_TRUE(testing::mentions(message, {"p", size, "at most 32768 a side and 67108864 altogether"}));
    EXPECT_EQ(message.find("damaged"), std::string::npos) << message;
  };
  expect_limits(png_bytes(make_picture(1, kLongestSide + 1, 1)), "32769 x 1");
  expect_limits(png_bytes(make_picture(1, 65000, 1)), "65000 x 1");
  expect_limits(png_bytes(make_picture(65000, 1, 3)), "1 x 65000");
  // More than any library takes; the checksum of the header is wrong then, which does not matter any more.
  std::string png = png_bytes(make_picture(8, 8, 1));
  png.replace(16, 8, std::string("\x7f\xff\xff\xff\x00\x00\x00\x01", 8));
  expect_limits(png, "2147483647 x 1");
  std::string bmp = testing::bmp_bytes(make_picture(8, 8, 3));
  bmp.replace(18, 8, std::string("\xe8\xfd\x00\x00\x01\x00\x00\x00", 8));
  expect_limits(bmp, "65000 x 1");
  std::string jpeg = jpeg_bytes(make_picture(8, 8, 1));
  const std::size_t frame_of_grey = jpeg.find("\xff\xc0");
  ASSERT_NE(frame_of_grey, std::string::npos);
  jpeg.replace(frame_of_grey + 5, 4, std::string("\x00\x01\xff\xff", 4));
  expect_limits(jpeg, "65535 x 1");
  std::string webp = testing::turned_webp_bytes(make_picture(8, 8, 3), 1);
  webp.replace(24, 6, std::string("\xff\xff\xff\x00\x00\x00", 6));
  expect_limits(webp, "16777216 x 1");
  // A size that there is not.
  bmp.replace(18, 4, std::string(4, '\0'));
  EXPECT_TRUE(testing::mentions(testing::error_of([&] { decode(bmp); }), {"damaged BMP", "0 x 1 pixels"}));
  // Width and height of a JPEG stand behind the marker of its frame; 9000 x 9000 would take 243 MB.
  std::string large = jpeg_bytes(make_picture(8, 8, 3));
  const std::size_t frame = large.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  large.replace(frame + 5, 4, "\x23\x28\x23\x28");
  EXPECT_TRUE(testing::mentions(testing::error_of([&] { decode(large); }), {"p", "9000 x 9000"}));
}

}  // namespace
}  // namespace miniqat::datasets::picture_test
