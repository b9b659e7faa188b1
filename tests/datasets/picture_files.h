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

}  // namespace miniqat::testing
