#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "datasets/dataset.h"
#include "datasets/pictures/picture.h"

namespace miniqat::testing {

// One data set in each format that a user's own files may have, byte for byte the same pictures. Each function makes
// the path, a folder or a file, with training and test pictures.

/// Folders of classes in train/ and test/, files numbered through all classes.
void write_class_folders(const std::filesystem::path& folder, const datasets::Splits& splits);
/// As the files of MNIST are called, the labels gzipped.
void write_idx_folder(const std::filesystem::path& folder, const datasets::Splits& splits);
/// train.csv with names of the columns, test.csv.gz without.
void write_csv_folder(const std::filesystem::path& folder, const datasets::Splits& splits);
/// x_train.npy, y_train.npy (int64), x_test.npy, y_test.npy.
void write_npy_folder(const std::filesystem::path& folder, const datasets::Splits& splits);
/// The same in a .npz.
void write_npz_file(const std::filesystem::path& file, const datasets::Splits& splits);

/// A .npy file of such elements: "|u1", "2, 3, 4".
std::string npy_bytes(const std::string& type, const std::string& shape, const std::string& elements);

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

/// The bytes as a .gz file. `level` is zlib's: 1 is the fastest, 9 the smallest.
inline std::string gzip_bytes(const std::string& bytes, int level) {
  z_stream stream{};
  deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace miniqat::testing
