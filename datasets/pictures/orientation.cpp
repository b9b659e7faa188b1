#include "datasets/pictures/orientation.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "datasets/pictures/formats.h"

namespace miniqat::datasets {
namespace {

constexpr int kAsItIs = 1;

constexpr std::string_view kExif("Exif\0\0", 6);

/// In the first directory of a TIFF file, as Exif parts are.
int orientation_in_tiff(std::string_view tiff) {
  const bool big_endian = tiff.starts_with("MM");
  if (!big_endian && !tiff.starts_with("II")) return kAsItIs;
  const NumbersIn bytes(tiff, big_endian);
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

int orientation_in_jpeg(std::string_view jpeg) {
  constexpr std::size_t kApp1 = 0xe1, kScan = 0xda, kEnd = 0xd9;
  int orientation = kAsItIs;
  walk_segments(jpeg, [&](std::size_t marker, std::size_t place, std::size_t length) {
    // What comes behind these says nothing of the camera.
    if (begins_frame(marker) || marker == kScan || marker == kEnd || length < 2) return false;
    const std::string_view part = jpeg.substr(place + 4, length - 2);
    if (marker != kApp1 || !part.starts_with(kExif)) return true;
    orientation = orientation_in_tiff(part.substr(kExif.size()));
    return false;
  });
  return orientation;
}

/// How a file is cut into chunks, each with a name and a length before its content.
struct Chunks {
  /// Where the first begins, behind the signature.
  std::size_t first;
  /// Where in a chunk its length and its name are, its content, and what of it is no content.
  std::size_t length, name, content, frame;
  bool big_endian;
  /// A chunk has an even number of bytes.
  bool even;
  std::string_view exif;
};
constexpr Chunks kPngChunks = {8, 0, 4, 8, 12, true, false, "eXIf"};
constexpr Chunks kWebpChunks = {12, 4, 0, 8, 8, false, true, "EXIF"};

/// In the chunk of the Exif part, which may stand before the pixels or behind them.
int orientation_in_chunks(std::string_view file, const Chunks& chunks) {
  const NumbersIn bytes(file, chunks.big_endian);
  for (std::size_t place = chunks.first; place + chunks.frame <= file.size();) {
    const std::size_t length = bytes.number(place + chunks.length, 4);
    if (length > file.size() - place - chunks.frame) return kAsItIs;
    if (file.substr(place + chunks.name, 4) == chunks.exif) {
      // Some programs begin it as that of a JPEG.
      const std::string_view part = file.substr(place + chunks.content, length);
      return orientation_in_tiff(part.starts_with(kExif) ? part.substr(kExif.size()) : part);
    }
    place += chunks.frame + length + (chunks.even ? length % 2 : 0);
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
  if (is_webp(bytes)) return orientation_in_chunks(bytes, kWebpChunks);
  return is_png(bytes) ? orientation_in_chunks(bytes, kPngChunks) : orientation_in_jpeg(bytes);
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
