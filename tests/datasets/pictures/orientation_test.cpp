#include "datasets/pictures/orientation.h"

#include <gtest/gtest.h>

#include "datasets/pictures/formats.h"
#include "tests/datasets/dataset_files.h"

namespace miniqat::datasets::orientation_test {
namespace {

using testing::jpeg_bytes;
using testing::make_picture;
using testing::png_bytes;

enum class Side { kTop, kRight, kBottom, kLeft };

/// The table of the Exif standard: the sides of the scene at which the first row and the first column of the stored
/// picture lie.
struct Sides {
  Side first_row;
  Side first_column;
};
constexpr Sides kSides[] = {{Side::kTop, Side::kLeft},     {Side::kTop, Side::kRight},  {Side::kBottom, Side::kRight},
                            {Side::kBottom, Side::kLeft},  {Side::kLeft, Side::kTop},   {Side::kRight, Side::kTop},
                            {Side::kRight, Side::kBottom}, {Side::kLeft, Side::kBottom}};

std::string number(std::size_t value, int size, bool big_endian) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * (big_endian ? size - 1 - i : i));
  return bytes;
}

/// An Exif part with another tag before Orientation, and one behind it.
std::string exif_part(int orientation, bool big_endian = true, std::size_t type = 3) {
  const auto n = [&](std::size_t value, int size) { return number(value, size, big_endian); };
  const auto entry = [&](std::size_t tag, std::size_t kind, std::size_t value) {
    return n(tag, 2) + n(kind, 2) + n(1, 4) + n(value, 2) + n(0, 2);
  };
  const std::string tiff = std::string(big_endian ? "MM" : "II") + n(42, 2) + n(8, 4) + n(3, 2) + entry(0x0100, 3, 6) +
                           entry(0x0112, type, static_cast<std::size_t>(orientation)) + entry(0x0213, 3, 2) + n(0, 4);
  return std::string("Exif\0\0", 6) + tiff;
}

/// The JPEG with a part of the kind `marker` behind its first two bytes.
std::string with_part(const std::string& jpeg, const std::string& part, char marker = '\xe1') {
  return jpeg.substr(0, 2) + '\xff' + marker + number(part.size() + 2, 2, true) + part + jpeg.substr(2);
}

/// The PNG with a chunk behind its first one, IHDR, or before its last one, IEND. Its check sum is 0: nobody asks for
/// it.
std::string with_chunk(const std::string& png, const std::string& content, bool at_end = false,
                       const std::string& type = "eXIf") {
  const std::size_t place = at_end ? png.size() - 12 : 33;
  return png.substr(0, place) + number(content.size(), 4, true) + type + content + std::string(4, '\0') +
         png.substr(place);
}

std::int64_t along(Side side, std::int64_t distance, std::int64_t extent) {
  return side == Side::kTop || side == Side::kLeft ? distance : extent - 1 - distance;
}

/// Pixel by pixel from the stored picture to where the table puts it.
Picture turned_by_table(const Picture& stored, const Sides& sides) {
  const bool rows_are_rows = sides.first_row == Side::kTop || sides.first_row == Side::kBottom;
  Picture scene = stored;
  if (!rows_are_rows) std::swap(scene.height, scene.width);
  for (std::int64_t r = 0; r < stored.height; ++r)
    for (std::int64_t c = 0; c < stored.width; ++c) {
      const std::int64_t y =
          rows_are_rows ? along(sides.first_row, r, scene.height) : along(sides.first_column, c, scene.height);
      const std::int64_t x =
          rows_are_rows ? along(sides.first_column, c, scene.width) : along(sides.first_row, r, scene.width);
      for (int k = 0; k < stored.channels; ++k)
        scene.pixels[(y * scene.width + x) * stored.channels + k] =
            stored.pixels[(r * stored.width + c) * stored.channels + k];
    }
  return scene;
}

void expect_turned(const std::string& bytes, const Picture& expected) {
  const Picture decoded = decode_picture(bytes, Colour::kAuto, "p");
  EXPECT_EQ(decoded.shape(), expected.shape());
  EXPECT_EQ(decoded.pixels, expected.pixels);
  const PictureHeader header = picture_header(bytes, "p");
  EXPECT_EQ(header.height, expected.height);
  EXPECT_EQ(header.width, expected.width);
}

TEST(OrientationTest, PicturesAreTurnedAsTheirCameraNoted) {
  for (const int channels : {1, 3}) {
    const Picture drawn = make_picture(9, 14, channels);
    const std::string jpeg = jpeg_bytes(drawn), png = png_bytes(drawn);
    const Picture stored = decode_picture(jpeg, Colour::kAuto, "p");
    for (int orientation = 1; orientation <= 8; ++orientation)
      for (const bool big_endian : {true, false}) {
        SCOPED_TRACE(orientation);
        const std::string part = exif_part(orientation, big_endian);
        expect_turned(with_part(jpeg, part), turned_by_table(stored, kSides[orientation - 1]));
        const Picture expected = turned_by_table(drawn, kSides[orientation - 1]);
        for (const bool at_end : {false, true}) expect_turned(with_chunk(png, part.substr(6), at_end), expected);
        expect_turned(with_chunk(png, part), expected);
      }
  }
}

TEST(OrientationTest, OtherPartsMayComeBefore) {
  const std::string plain = jpeg_bytes(make_picture(5, 4, 1));
  const std::string noted = with_part(plain, exif_part(6));
  EXPECT_EQ(noted_orientation(with_part(noted, "a comment", '\xfe')), 6);
  EXPECT_EQ(noted_orientation(with_part(noted, "http://ns.adobe.com/xap/1.0/")), 6);
  EXPECT_EQ(noted_orientation(noted.substr(0, 2) + "\xff\xff" + noted.substr(2)), 6);
  EXPECT_EQ(noted_orientation(plain), 1);
}

TEST(OrientationTest, ADamagedNoteIsNone) {
  const std::string plain = jpeg_bytes(make_picture(5, 4, 1));
  for (const int value : {0, 9, 500}) EXPECT_EQ(noted_orientation(with_part(plain, exif_part(value))), 1);
  EXPECT_EQ(noted_orientation(with_part(plain, exif_part(6, true, 2))), 1) << "a text";
  const std::string part = exif_part(6);
  const std::size_t needed = 6 + 8 + 2 + 12 + 10;
  for (std::size_t length = 0; length < part.size(); ++length) {
    EXPECT_EQ(noted_orientation(with_part(plain, part.substr(0, length))), length < needed ? 1 : 6) << length;
    // Six bytes come before it.
    const std::string cut = with_part(plain, part).substr(0, length);
    EXPECT_EQ(noted_orientation(cut), length < needed + 6 ? 1 : 6) << length;
    std::string damaged = part;
    damaged[length] = static_cast<char>(damaged[length] ^ 0xff);
    const int found = noted_orientation(with_part(plain, damaged));
    EXPECT_TRUE(found >= 1 && found <= 8);
  }
}

TEST(OrientationTest, ADamagedPngIsAsItIs) {
  const std::string plain = png_bytes(make_picture(5, 4, 1)), part = exif_part(6).substr(6);
  const std::string noted = with_chunk(plain, part);
  EXPECT_EQ(noted_orientation(plain), 1);
  EXPECT_EQ(noted_orientation(with_chunk(noted, "a comment", false, "tEXt")), 6);
  EXPECT_EQ(noted_orientation(with_chunk(plain, part, false, "exIf")), 1);
  const std::size_t needed = 33 + 12 + part.size();
  for (std::size_t length = 0; length < noted.size(); ++length)
    EXPECT_EQ(noted_orientation(noted.substr(0, length)), length < needed ? 1 : 6) << length;
  std::string endless = noted;
  endless.replace(33, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(noted_orientation(endless), 1);
}

}  // namespace
}  // namespace miniqat::datasets::orientation_test
