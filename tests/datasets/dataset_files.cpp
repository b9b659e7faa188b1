#include "tests/datasets/dataset_files.h"

#include <png.h>
#include <turbojpeg.h>
#include <webp/encode.h>
#include <zip.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>

#include "core/text/error.h"
#include "core/text/suggest.h"

namespace miniqat::testing {
namespace {

namespace fs = std::filesystem;
using datasets::Dataset;
using datasets::Splits;

void put(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string pixels_of(const Dataset& split) {
  return {static_cast<const char*>(split.images.raw()), split.images.bytes()};
}

std::string big_endian(std::int64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

template <class Write>
void for_splits(const Splits& splits, const Write& write) {
  write("train", splits.train);
  write("test", splits.test);
}

/// By their names, without ".npy".
std::map<std::string, std::string> arrays_of(const Splits& splits) {
  std::map<std::string, std::string> arrays;
  for_splits(splits, [&](const std::string& part, const Dataset& split) {
    arrays["x_" + part] = npy_bytes("|u1", joined(split.images.shape().extents()), pixels_of(split));
    std::string labels;
    for (const std::int32_t label : split.labels.values<std::int32_t>())
      labels += std::string(1, static_cast<char>(label)) + std::string(7, '\0');
    arrays["y_" + part] = npy_bytes("<i8", concat(split.size(), ","), labels);
  });
  return arrays;
}

void append(png_structp png, png_bytep data, std::size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), count);
}

/// `rows` hold what the file holds, `stride` bytes each.
std::string encode(std::int64_t height, std::int64_t width, int bits, int colour_type, bool interlaced,
                   std::vector<std::uint8_t> rows, std::size_t stride) {
  std::string bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &bytes, append, nullptr);
  png_set_IHDR(png, info, width, height, bits, colour_type, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_bytep> pointers;
  for (std::int64_t y = 0; y < height; ++y) pointers.push_back(rows.data() + y * stride);
  png_write_info(png, info);
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

/// Little-endian.
std::string number_bytes(std::uint32_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i & 255);
  return bytes;
}

std::string riff_chunk(const std::string& name, const std::string& content) {
  return name + number_bytes(static_cast<std::uint32_t>(content.size()), 4) + content +
         std::string(content.size() % 2, '\0');
}

/// The rows of a BMP, filled up to words.
std::string bmp_rows(const datasets::Picture& picture, const BmpOptions& options) {
  std::string rows;
  for (std::int64_t i = 0; i < picture.height; ++i) {
    const std::int64_t y = options.top_down ? i : picture.height - 1 - i;
    std::string row(static_cast<std::size_t>((picture.width * options.bits + 31) / 32 * 4), '\0');
    for (std::int64_t x = 0; x < picture.width; ++x) {
      const std::uint8_t* pixel = picture.pixels.data() + (y * picture.width + x) * picture.channels;
      const std::size_t place = static_cast<std::size_t>(x * options.bits / 8);
      if (options.bits <= 8) {
        const int value = pixel[0] % (1 << options.bits);
        row[place] = static_cast<char>(row[place] | value << (8 - options.bits - x * options.bits % 8));
      } else if (options.bits == 16) {
        row.replace(place, 2, number_bytes((pixel[0] >> 3) << 10 | (pixel[1] >> 3) << 5 | pixel[2] >> 3, 2));
      } else {
        const unsigned fourth = options.masks && picture.channels == 4 ? pixel[3] : 99;
        row.replace(place, static_cast<std::size_t>(options.bits / 8),
                    number_bytes(fourth << 24 | pixel[0] << 16 | pixel[1] << 8 | pixel[2], options.bits / 8));
      }
    }
    rows += row;
  }
  return rows;
}

}  // namespace

void write_class_folders(const fs::path& folder, const Splits& splits) {
  for_splits(splits, [&](const std::string& part, const Dataset& split) {
    const Shape example = split.example_shape();
    for (std::int64_t i = 0; i < split.size(); ++i) {
      const auto* pixels = split.images.data<std::uint8_t>() + i * example.elements();
      const datasets::Picture picture{.height = example[0],
                                      .width = example[1],
                                      .channels = static_cast<int>(example[2]),
                                      .pixels{pixels, pixels + example.elements()}};
      char name[16];
      std::snprintf(name, sizeof name, "%05d.png", static_cast<int>(i));
      put(folder / part / std::to_string(split.labels.data<std::int32_t>()[i]) / name, png_bytes(picture));
    }
  });
}

void write_idx_folder(const fs::path& folder, const Splits& splits) {
  for_splits(splits, [&](const std::string& part, const Dataset& split) {
    const Shape& shape = split.images.shape();
    const std::string stem = part == "train" ? "train" : "t10k";
    put(folder / (stem + "-images-idx3-ubyte"),
        big_endian(2051) + big_endian(shape[0]) + big_endian(shape[1]) + big_endian(shape[2]) + pixels_of(split));
    std::string labels = big_endian(2049) + big_endian(shape[0]);
    for (const std::int32_t label : split.labels.values<std::int32_t>()) labels += static_cast<char>(label);
    put(folder / (stem + "-labels-idx1-ubyte.gz"), gzip_bytes(labels, 6));
  });
}

void write_csv_folder(const fs::path& folder, const Splits& splits) {
  for_splits(splits, [&](const std::string& part, const Dataset& split) {
    const std::int64_t size = split.example_shape().elements();
    std::string text = "label";
    for (std::int64_t k = 0; k < size; ++k) text += concat(",p", k);
    if (part == "test") text.clear();
    if (!text.empty()) text += '\n';
    for (std::int64_t i = 0; i < split.size(); ++i) {
      text += std::to_string(split.labels.data<std::int32_t>()[i]);
      for (std::int64_t k = 0; k < size; ++k) text += concat(",", int{split.images.data<std::uint8_t>()[i * size + k]});
      text += '\n';
    }
    put(folder / (part + (part == "test" ? ".csv.gz" : ".csv")), part == "test" ? gzip_bytes(text, 6) : text);
  });
}

void write_npy_folder(const fs::path& folder, const Splits& splits) {
  for (const auto& [name, bytes] : arrays_of(splits)) put(folder / (name + ".npy"), bytes);
}

void write_npz_file(const fs::path& file, const Splits& splits) {
  const std::map<std::string, std::string> arrays = arrays_of(splits);
  zip_t* archive = zip_open(file.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  for (const auto& [name, bytes] : arrays)
    zip_file_add(archive, (name + ".npy").c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0), 0);
  if (zip_close(archive) != 0) fail("cannot write ", file);
}

std::string npy_bytes(const std::string& type, const std::string& shape, const std::string& elements) {
  std::string header = concat("{'descr': '", type, "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.resize(118 - 1, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  return bytes + header + elements;
}

datasets::Picture make_picture(std::int64_t height, std::int64_t width, int channels, int seed) {
  datasets::Picture picture{.height = height, .width = width, .channels = channels, .pixels = {}};
  for (std::int64_t i = 0; i < height * width * channels; ++i)
    picture.pixels.push_back(static_cast<std::uint8_t>((i * 37 + i / 256 * 11 + seed * 101) % 256));
  return picture;
}

std::string png_bytes(const datasets::Picture& picture, bool interlaced) {
  constexpr int kTypes[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGB_ALPHA};
  return encode(picture.height, picture.width, 8, kTypes[picture.channels], interlaced, picture.pixels,
                picture.width * picture.channels);
}

std::string png_bytes_16(const datasets::Picture& picture) {
  std::vector<std::uint8_t> rows;
  for (const std::uint8_t pixel : picture.pixels) rows.insert(rows.end(), {pixel, 77});
  return encode(picture.height, picture.width, 16, picture.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
                false, std::move(rows), picture.width * picture.channels * 2);
}

std::string png_bytes_of_bits(const datasets::Picture& picture, int bits) {
  const std::int64_t stride = (picture.width * bits + 7) / 8;
  std::vector<std::uint8_t> rows(picture.height * stride);
  for (std::int64_t y = 0; y < picture.height; ++y)
    for (std::int64_t x = 0; x < picture.width; ++x) {
      const int value = picture.pixels[y * picture.width + x] % (1 << bits);
      rows[y * stride + x * bits / 8] |= static_cast<std::uint8_t>(value << (8 - bits - x * bits % 8));
    }
  return encode(picture.height, picture.width, bits, PNG_COLOR_TYPE_GRAY, false, std::move(rows), stride);
}

std::string jpeg_bytes(const datasets::Picture& picture) {
  tjhandle encoder = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): the type of TurboJPEG.
  const int format = picture.channels == 1 ? TJPF_GRAY : picture.channels == 3 ? TJPF_RGB : TJPF_CMYK;
  const int failed =
      tjCompress2(encoder, picture.pixels.data(), static_cast<int>(picture.width), 0, static_cast<int>(picture.height),
                  format, &bytes, &size, picture.channels == 1 ? TJSAMP_GRAY : TJSAMP_444, 95, 0);
  const std::string text = failed != 0 ? tjGetErrorStr2(encoder) : "";
  std::string result(reinterpret_cast<const char*>(bytes), failed != 0 ? 0 : size);
  tjFree(bytes);
  tjDestroy(encoder);
  if (failed != 0) throw std::runtime_error(text);
  return result;
}

std::string webp_bytes(const datasets::Picture& picture) {
  std::uint8_t* bytes = nullptr;
  const auto width = static_cast<int>(picture.width), height = static_cast<int>(picture.height);
  const std::size_t size = picture.channels == 4
                               ? WebPEncodeLosslessRGBA(picture.pixels.data(), width, height, 4 * width, &bytes)
                               : WebPEncodeLosslessRGB(picture.pixels.data(), width, height, 3 * width, &bytes);
  std::string result(reinterpret_cast<const char*>(bytes), size);
  WebPFree(bytes);
  if (size == 0) throw std::runtime_error("cannot write a WebP");
  return result;
}

std::string turned_webp_bytes(const datasets::Picture& picture, int orientation) {
  // Behind "RIFF", the size and "WEBP" comes the chunk of the pixels.
  const std::string pixels = webp_bytes(picture).substr(12);
  constexpr std::uint32_t kHasExif = 8;
  const std::string head =
      riff_chunk("VP8X", number_bytes(kHasExif, 4) + number_bytes(static_cast<std::uint32_t>(picture.width - 1), 3) +
                             number_bytes(static_cast<std::uint32_t>(picture.height - 1), 3));
  // TIFF: a directory at 8 with one entry, the tag 0x0112, a short.
  const std::string exif = std::string("II*\0", 4) + number_bytes(8, 4) + number_bytes(1, 2) + number_bytes(0x0112, 2) +
                           number_bytes(3, 2) + number_bytes(1, 4) +
                           number_bytes(static_cast<std::uint32_t>(orientation), 4) + number_bytes(0, 4);
  return riff_chunk("RIFF", "WEBP" + head + pixels + riff_chunk("EXIF", exif));
}

std::string bmp_bytes(const datasets::Picture& picture, const BmpOptions& options) {
  std::string extra;
  if (options.masks)
    for (const std::uint32_t mask : std::array<std::uint32_t, 4>{0xff0000, 0xff00, 0xff, 0xff000000})
      if (picture.channels == 4 || mask != 0xff000000) extra += number_bytes(mask, 4);
  if (options.bits <= 8)
    for (int i = 0; i < 1 << options.bits; ++i) {
      const auto grey = static_cast<std::uint32_t>(i * 255 / ((1 << options.bits) - 1));
      extra += number_bytes(options.blue ? grey : grey * 0x010101, 4);
    }
  constexpr std::uint32_t kHead = 14 + 40, kMasks = 3, kAlphaMasks = 6;
  const std::uint32_t kind = !options.masks ? 0 : picture.channels == 4 ? kAlphaMasks : kMasks;
  const auto height = static_cast<std::int32_t>(options.top_down ? -picture.height : picture.height);
  const std::string rows = bmp_rows(picture, options);
  const auto begin = static_cast<std::uint32_t>(kHead + extra.size());
  return "BM" + number_bytes(static_cast<std::uint32_t>(begin + rows.size()), 4) + number_bytes(0, 4) +
         number_bytes(begin, 4) + number_bytes(40, 4) + number_bytes(static_cast<std::uint32_t>(picture.width), 4) +
         number_bytes(static_cast<std::uint32_t>(height), 4) + number_bytes(1, 2) +
         number_bytes(static_cast<std::uint32_t>(options.bits), 2) + number_bytes(kind, 4) +
         number_bytes(static_cast<std::uint32_t>(rows.size()), 4) + number_bytes(0, 8) + number_bytes(0, 8) + extra +
         rows;
}

}  // namespace miniqat::testing
