#pragma once

#include <filesystem>
#include <string_view>

#include "datasets/pictures/picture.h"

namespace miniqat::datasets {

bool is_jpeg(std::string_view bytes);

/// As the functions of picture.h, for a JPEG; decoded to `channels` 1 only if the file is grey, and turned upright
/// (orientation.h).
PictureHeader jpeg_header(std::string_view bytes, const std::filesystem::path& path);
Picture decode_jpeg(std::string_view bytes, const std::filesystem::path& path);

}  // namespace miniqat::datasets
