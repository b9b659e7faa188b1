#include "datasets/pictures/orientation.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "datasets/pictures/formats.h"

namespace miniqat::datasets {
namespace {

constexpr int kAsItIs = 1;

/// Bytes of which nothing is read beyond the end: a number there is 0.
class Bytes {
 public:
  Bytes(std::string_view bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

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

constexpr std::string_view kExif("Exif\0\0", 6);

/// In the first directory of a TIFF file, as Exif parts are.
int orientation_in_tiff(std::string_view tiff) {
  const bool big_endian = tiff.starts_with("MM");
  if (!big_endian && !tiff.starts_with("II")) return kAsItIs;
  const Bytes bytes(tiff, big_endian);
  if (bytes.number(2, 2) != 42) return kAsItIs;
  constexpr std::size_t kEntry = 12, kTag = 0x0112, kShort = 3;
  const std::size_t directory = bytes.number(4, 4), entries = bytes.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + kEntry * i;
    if (bytes.number(entry, 2) != kTag) continue;
    const std::size_t value = bytes.number(entry + 8, 2);
    return bytes.number(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : kAsItIs;
  }
  return kAsItIs;
}

/// Whether a marker begins a frame (SOF0 to SOF15), a scan or the end: what comes behind says nothing of the camera.
bool ends_the_head(std::size_t marker) {
  const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
  return frame || marker == 0xda || marker == 0xd9;
}

int orientation_in_jpeg(std::string_view jpeg) {
  constexpr std::size_t kApp1 = 0xe1;
  const Bytes bytes(jpeg, true);
  // Behind the first marker, which begins the file.
  std::size_t place = 2;
  while (place + 4 <= jpeg.size() && bytes.number(place, 1) == 0xff) {
    const std::size_t marker = bytes.number(place + 1, 1);
    if (marker == 0xff) {
      // Any number of these may fill up the room before a marker.
      ++place;
      continue;
    }
    const std::size_t length = bytes.number(place + 2, 2);
    if (ends_the_head(marker) || length < 2) return kAsItIs;
    const std::string_view part = jpeg.substr(place + 4, length - 2);
    if (marker == kApp1 && part.starts_with(kExif)) return orientation_in_tiff(part.substr(kExif.size()));
    place += 2 + length;
  }
  return kAsItIs;
}

/// In the chunk eXIf, which may stand before the pixels or behind them.
int orientation_in_png(std::string_view png) {
  constexpr std::size_t kFrame = 12;
  const Bytes bytes(png, true);
  // Behind the signature.
  std::size_t place = 8;
  while (place + kFrame <= png.size()) {
    const std::size_t length = bytes.number(place, 4);
    if (length > png.size() - place - kFrame) return kAsItIs;
    if (png.substr(place + 4, 4) == "eXIf") {
      // Some programs begin it as that of a JPEG.
      const std::string_view part = png.substr(place + 8, length);
      return orientation_in_tiff(part.starts_with(kExif) ? part.substr(kExif.size()) : part);
    }
    place += kFrame + length;
  }
  return kAsItIs;
}

/// In the chunk EXIF, which stands behind the pixels.
int orientation_in_webp(std::string_view webp) {
  constexpr std::size_t kFrame = 8;
  const Bytes bytes(webp, false);
  // Behind "RIFF", the size and "WEBP".
  std::size_t place = 12;
  while (place + kFrame <= webp.size()) {
    const std::size_t length = bytes.number(place + 4, 4);
    if (length > webp.size() - place - kFrame) return kAsItIs;
    if (webp.substr(place, 4) == "EXIF") {
      // Some programs begin it as that of a JPEG.
      const std::string_view part = webp.substr(place + kFrame, length);
      return orientation_in_tiff(part.starts_with(kExif) ? part.substr(kExif.size()) : part);
    }
    // A chunk has an even number of bytes.
    place += kFrame + length + length % 2;
  }
  return kAsItIs;
}

/// The place in the stored picture, of h x w pixels, of the pixel (y, x) of the upright one.
std::pair<std::int64_t, std::int64_t> stored_place(int orientation, std::int64_t h, std::int64_t w, std::int64_t y,
                                                   std::int64_t x) {
  switch (orientation) {
    case 2:
      return {y, w - 1 - x};
    case 3:
      return {h - 1 - y, w - 1 - x};
    case 4:
      return {h - 1 - y, x};
    case 5:
      return {x, y};
    case 6:
      return {h - 1 - x, y};
    case 7:
      return {h - 1 - x, w - 1 - y};
    case 8:
      return {x, w - 1 - y};
    default:
      return {y, x};
  }
}

}  // namespace

int noted_orientation(std::string_view bytes) {
  if (is_webp(bytes)) return orientation_in_webp(bytes);
  return is_png(bytes) ? orientation_in_png(bytes) : orientation_in_jpeg(bytes);
}

Picture upright(Picture stored, int orientation) {
  if (!is_turned(orientation)) return stored;
  Picture turned{.height = stored.height, .width = stored.width, .channels = stored.channels, .pixels = {}};
  if (swaps_sides(orientation)) std::swap(turned.height, turned.width);
  turned.pixels.resize(stored.pixels.size());
  auto to = turned.pixels.begin();
  for (std::int64_t y = 0; y < turned.height; ++y)
    for (std::int64_t x = 0; x < turned.width; ++x) {
      const auto [row, column] = stored_place(orientation, stored.height, stored.width, y, x);
      to = std::copy_n(stored.pixels.begin() + (row * stored.width + column) * stored.channels, stored.channels, to);
    }
  return turned;
}

}  // namespace miniqat::datasets
