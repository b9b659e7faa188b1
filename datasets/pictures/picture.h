#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/tensors/shape.h"

namespace miniqat::datasets {

/// How many numbers a pixel has.
enum class Colour {
  /// The files decide: grey if all pictures of a data set are grey.
  kAuto,
  kGrey,
  kRgb,
};

/// Pixels, row by row: [height, width, channels] bytes; 1 channel is grey, 3 are red, green and blue.
struct Picture {
  std::int64_t height = 0;
  std::int64_t width = 0;
  int channels = 1;
  std::vector<std::uint8_t> pixels;

  Shape shape() const { return {height, width, channels}; }
};

/// What a file says of its picture before it is decoded.
struct PictureHeader {
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool grey = false;
  /// The decoder's bytes for each pixel, at most: the stored channels, and what it holds beside them.
  std::int64_t bytes_a_pixel = 4;

  /// The decoder's bytes for a picture that becomes [h, w, channels] of fit_picture(), without the file.
  std::int64_t decoding_bytes(std::int64_t new_width, int channels) const;
};

/// The most pixels that a side and a picture may have, so that a small file cannot ask for any amount of memory.
inline constexpr std::int64_t kLongestSide = 32768;
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

/// Throws Error that names these limits for a picture that a reader finds to be larger. Readers ask before a library
/// does, which would call the file damaged.
void require_readable_size(std::int64_t height, std::int64_t width, const std::filesystem::path& path);

/// The endings of files that are read as pictures, in lower case and with their dots.
const std::vector<std::string>& picture_endings();

/// Whether a name ends in one of them, in any case.
bool has_picture_ending(const std::filesystem::path& path);

/// Makes a picture grey or RGB, as decode_picture() does; kAuto leaves it.
void set_colour(Picture& picture, Colour colour);

/// Puts a picture with alpha, its last channel (2 or 4 channels), on black; 1 or 3 stay. Others are left as they are.
void put_on_black(Picture& picture);

}  // namespace miniqat::datasets
