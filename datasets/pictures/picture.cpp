#include "datasets/pictures/picture.h"

#include "core/error.h"
#include "datasets/pictures/jpeg.h"
#include "datasets/pictures/png.h"

namespace miniqat::datasets {
namespace {

struct Format {
  bool (*is)(std::string_view bytes);
  PictureHeader (*header)(std::string_view bytes, const std::filesystem::path& path);
  Picture (*decode)(std::string_view bytes, const std::filesystem::path& path);
};

const Format& format_of(std::string_view bytes, const std::filesystem::path& path) {
  static constexpr Format kFormats[] = {{is_jpeg, jpeg_header, decode_jpeg}, {is_png, png_header, decode_png}};
  for (const Format& format : kFormats)
    if (format.is(bytes)) return format;
  if (bytes.empty()) fail(path, " is empty; a JPEG or PNG picture was expected");
  fail(path, " is neither a JPEG nor a PNG picture");
}

void check_size(const PictureHeader& header, const std::filesystem::path& path) {
  if (header.height < 1 || header.width < 1 || header.height > kLongestSide || header.width > kLongestSide ||
      header.height * header.width > kMostPixels)
    fail(path, " is a picture of ", header.width, " x ", header.height, " pixels; at most ", kLongestSide,
         " a side and ", kMostPixels, " altogether can be read");
}

void to_grey(Picture& picture) {
  const std::int64_t count = picture.height * picture.width;
  std::uint8_t* pixels = picture.pixels.data();
  for (std::int64_t i = 0; i < count; ++i)
    pixels[i] = static_cast<std::uint8_t>(
        (19595 * pixels[3 * i] + 38470 * pixels[3 * i + 1] + 7471 * pixels[3 * i + 2] + (1 << 15)) >> 16);
  picture.channels = 1;
  picture.pixels.resize(count);
}

void to_rgb(Picture& picture) {
  std::vector<std::uint8_t> pixels(3 * picture.pixels.size());
  for (std::size_t i = 0; i < picture.pixels.size(); ++i)
    pixels[3 * i] = pixels[3 * i + 1] = pixels[3 * i + 2] = picture.pixels[i];
  picture.channels = 3;
  picture.pixels = std::move(pixels);
}

}  // namespace

PictureHeader picture_header(std::string_view bytes, const std::filesystem::path& path) {
  const PictureHeader header = format_of(bytes, path).header(bytes, path);
  check_size(header, path);
  return header;
}

Picture decode_picture(std::string_view bytes, Colour colour, const std::filesystem::path& path) {
  const Format& format = format_of(bytes, path);
  check_size(format.header(bytes, path), path);
  Picture picture = format.decode(bytes, path);
  set_colour(picture, colour);
  return picture;
}

void set_colour(Picture& picture, Colour colour) {
  if (colour == Colour::kGrey && picture.channels == 3) to_grey(picture);
  if (colour == Colour::kRgb && picture.channels == 1) to_rgb(picture);
}

}  // namespace miniqat::datasets
