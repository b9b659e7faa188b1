#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/pictures/picture.h"

namespace miniqat::testing {

/// Pixels that differ from one another, as far as bytes can.
datasets::Picture make_picture(std::int64_t height, std::int64_t width, int channels, int seed = 1);

/// A PNG of 8 bits; 1 to 4 channels: grey, grey with alpha, RGB, RGBA.
std::string png_bytes(const datasets::Picture& picture, bool interlaced = false);

/// A PNG of 16 bits a channel whose upper bytes are the picture's, without alpha.
std::string png_bytes_16(const datasets::Picture& picture);

/// A grey PNG of `bits` (1, 2 or 4) whose pixels are the picture's bytes modulo 2^bits.
std::string png_bytes_of_bits(const datasets::Picture& picture, int bits);

/// A JPEG of quality 95; 1 channel is grey, 3 are RGB, 4 are CMYK.
std::string jpeg_bytes(const datasets::Picture& picture);

/// A WebP without loss; 3 channels are RGB, 4 RGBA.
std::string webp_bytes(const datasets::Picture& picture);

/// An extended WebP of the same picture with an Exif part that notes the orientation.
std::string turned_webp_bytes(const datasets::Picture& picture, int orientation);

/// How a BMP has its pixels; without a compression.
struct BmpOptions {
  /// 24 and 32 hold RGB (32 with a fourth byte: the mask's alpha if `masks`, 99 otherwise), 16 five bits of each
  /// channel. 1, 4 and 8 have a palette in which number i is grey: i * 255 / (2^bits - 1).
  int bits = 24;
  /// BI_BITFIELDS; with alpha where the picture has 4 channels.
  bool masks = false;
  bool top_down = false;
  /// The palette's colours are blue instead.
  bool blue = false;
};

/// A BMP of a picture with 1 channel (palettes: its bytes modulo 2^bits are the numbers), 3 or 4.
std::string bmp_bytes(const datasets::Picture& picture, const BmpOptions& options = {});

}  // namespace miniqat::testing
