#pragma once

#include <filesystem>
#include <string_view>

#include "datasets/pictures/picture.h"

namespace miniqat::datasets {

// The readers behind picture.h, each of one format, told by its first bytes. Decoded to `channels` 1 only if the file is
// grey; what a camera noted is turned upright (orientation.h).

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
