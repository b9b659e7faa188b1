#pragma once

#include <filesystem>
#include <string_view>

#include "datasets/pictures/picture.h"

namespace miniqat::datasets {

bool is_webp(std::string_view bytes);

/// As the functions of picture.h, for a WebP with one picture, lossy or lossless; always in colour, and turned upright
/// (orientation.h). An animation is refused. The header needs all bytes of a file that has an Exif part, which stands
/// at its end.
PictureHeader webp_header(std::string_view bytes, const std::filesystem::path& path);
Picture decode_webp(std::string_view bytes, const std::filesystem::path& path);

}  // namespace miniqat::datasets
