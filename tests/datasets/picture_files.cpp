#include "tests/datasets/picture_files.h"

#include <png.h>
#include <turbojpeg.h>

#include <stdexcept>

namespace miniqat::testing {
namespace {

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

}  // namespace

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

}  // namespace miniqat::testing
