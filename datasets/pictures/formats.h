#pragma once

#include <filesystem>
#include <string_view>

#include "datasets/pictures/picture.h"

namespace miniqat::datasets {

/// JPEG, PNG, BMP and WebP, told by their first bytes, whatever the file is called. `path` stands in errors. Throws
/// Error in one line for any other format, a picture that is too large, an animation, and CMYK (which needs a colour
/// profile to become RGB).
PictureHeader picture_header(std::string_view bytes, const std::filesystem::path& path);

/// Decodes to grey or RGB (kAuto: as the file has it). Transparent pixels lie on black, 16 bits become the upper 8, and
/// gamma is left alone. Colour becomes grey as ITU-R BT.601 has it: (19595 r + 38470 g + 7471 b + 2^15) >> 16.
/// Throws Error in one line, also for a damaged or truncated picture.
Picture decode_picture(std::string_view bytes, Colour colour, const std::filesystem::path& path);

// Behind these two are the readers, each of one format, told by its first bytes. Decoded to `channels` 1 only if the
// file is grey; what a camera noted is turned upright (orientation.h).

/// Numbers among bytes of which nothing is read beyond the end: a number there is 0.
class NumbersIn {
 public:
  NumbersIn(std::string_view bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  std::size_t number(std::size_t place, std::size_t size) const {
    if (place > bytes_.size() || size > bytes_.size() - place) return 0;
    std::size_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes_[place + (big_endian_ ? i : size - 1 - i)]);
    return value;
  }

 private:
  std::string_view bytes_;
  bool big_endian_;
};

/// Whether a JPEG's marker begins a frame (SOF0 to SOF15); among their codes are those of other tables: DHT, JPG, DAC.
constexpr bool begins_frame(std::size_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/// Calls segment(marker, place, length) for each segment at the beginning of a JPEG, as long as it returns true. The
/// marker has two bytes at `place`; the length behind it counts its own two.
template <class Segment>
void walk_segments(std::string_view jpeg, const Segment& segment) {
  const NumbersIn bytes(jpeg, true);
  for (std::size_t place = 2; place + 4 <= jpeg.size() && bytes.number(place, 1) == 0xff;) {
    const std::size_t marker = bytes.number(place + 1, 1), length = bytes.number(place + 2, 2);
    // Any number of these may fill up the room before a marker.
    if (marker != 0xff && !segment(marker, place, length)) return;
    place += marker == 0xff ? 1 : 2 + length;
  }
}

/// A BMP ("Windows bitmap", BITMAPFILEHEADER and BITMAPCOREHEADER to BITMAPV5HEADER of the Windows SDK) without
/// compression: palettes of 1, 4 and 8 bits, colours of 16, 24 and 32 bits, also by masks (BI_BITFIELDS). Grey if all
/// colours of its palette are. A mask for alpha counts, unless all of the picture would be transparent. Compressed
/// kinds are refused by name.
bool is_bmp(std::string_view bytes);
PictureHeader bmp_header(std::string_view bytes, const std::filesystem::path& path);
Picture decode_bmp(std::string_view bytes, const std::filesystem::path& path);

bool is_jpeg(std::string_view bytes);
PictureHeader jpeg_header(std::string_view bytes, const std::filesystem::path& path);
Picture decode_jpeg(std::string_view bytes, const std::filesystem::path& path);

bool is_png(std::string_view bytes);
PictureHeader png_header(std::string_view bytes, const std::filesystem::path& path);
Picture decode_png(std::string_view bytes, const std::filesystem::path& path);

/// A WebP with one picture, lossy or lossless; always in colour. An animation is refused. The header needs all bytes of
/// a file that has an Exif part, which stands at its end.
bool is_webp(std::string_view bytes);
PictureHeader webp_header(std::string_view bytes, const std::filesystem::path& path);
Picture decode_webp(std::string_view bytes, const std::filesystem::path& path);

}  // namespace miniqat::datasets
