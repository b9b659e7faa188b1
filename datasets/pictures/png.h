#pragma once

#include <filesystem>
#include <string_view>

#include "datasets/pictures/picture.h"

namespace miniqat::datasets {

bool is_png(std::string_view bytes);

/// As the functions of picture.h, for a PNG; decoded to `channels` 1 only if the file is grey.
PictureHeader png_header(std::string_view bytes, const std::filesystem::path& path);
Picture decode_png(std::string_view bytes, const std::filesystem::path& path);

}  // namespace miniqat::datasets
