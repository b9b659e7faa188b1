#pragma once

#include <filesystem>
#include <string_view>

#include "datasets/pictures/picture.h"

namespace miniqat::datasets {

bool is_bmp(std::string_view bytes);

/// As the functions of picture.h, for a BMP ("Windows bitmap", BITMAPFILEHEADER and BITMAPCOREHEADER to BITMAPV5HEADER
/// of the Windows SDK) without compression: palettes of 1, 4 and 8 bits, colours of 16, 24 and 32 bits, also by masks
/// (BI_BITFIELDS). Decoded to `channels` 1 only if all colours of its palette are grey. A mask for alpha counts, unless
/// all of the picture would be transparent. Compressed kinds are refused by name.
PictureHeader bmp_header(std::string_view bytes, const std::filesystem::path& path);
Picture decode_bmp(std::string_view bytes, const std::filesystem::path& path);

}  // namespace miniqat::datasets
