#include "datasets/pictures/picture.h"

#include <algorithm>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/suggest.h"
#include "datasets/pictures/formats.h"

namespace miniqat::datasets {
namespace {

struct Format {
  const char* name;
  bool (*is)(std::string_view bytes);
  PictureHeader (*header)(std::string_view bytes, const std::filesystem::path& path);
  Picture (*decode)(std::string_view bytes, const std::filesystem::path& path);
};

constexpr Format kFormats[] = {{"JPEG", is_jpeg, jpeg_header, decode_jpeg},
                               {"PNG", is_png, png_header, decode_png},
                               {"BMP", is_bmp, bmp_header, decode_bmp},
                               {"WebP", is_webp, webp_header, decode_webp}};

/// Pictures of other programs, by bytes at a place of the file.
struct UnreadFormat {
  const char* name;
  std::size_t place;
  std::string_view bytes;
};
constexpr UnreadFormat kUnreadFormats[] = {{"a GIF", 0, "GIF8"},         {"a TIFF", 0, {"II*\0", 4}},
                                           {"a TIFF", 0, {"MM\0*", 4}},  {"an AVIF", 4, "ftypavif"},
                                           {"a HEIC", 4, "ftyphei"},     {"a HEIC", 4, "ftypmif1"},
                                           {"a JPEG 2000", 4, "jP  \r"}, {"a JPEG XL", 4, {"JXL \r", 5}}};

std::string names_of_formats() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return joined(names);
}

const Format& format_of(std::string_view bytes, const std::filesystem::path& path) {
  for (const Format& format : kFormats)
    if (format.is(bytes)) return format;
  if (bytes.empty()) fail(path, " is empty; a picture was expected");
  for (const UnreadFormat& format : kUnreadFormats)
    if (bytes.size() >= format.place && bytes.substr(format.place).starts_with(format.bytes))
      fail(path, " is ", format.name, " picture, which cannot be read; convert it to PNG");
  fail(path, " is no picture that can be read: ", names_of_formats(), " can");
}

PictureHeader checked_header(const Format& format, std::string_view bytes, const std::filesystem::path& path) {
  const PictureHeader header = format.header(bytes, path);
  if (header.height < 1 || header.width < 1)
    fail(path, " is a damaged ", format.name, ": it has ", header.width, " x ", header.height, " pixels");
  require_readable_size(header.height, header.width, path);
  return header;
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

std::int64_t PictureHeader::decoding_bytes(std::int64_t new_width, int channels) const {
  // Grey ones are copied to become RGB; between the steps of a resize there are floats.
  const std::int64_t coloured = grey && channels == 3 ? 3 : 0;
  return height * width * (bytes_a_pixel + coloured) +
         height * new_width * channels * static_cast<std::int64_t>(sizeof(float));
}

const std::vector<std::string>& picture_endings() {
  static const std::vector<std::string> kEndings = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".dib", ".webp"};
  return kEndings;
}

std::string lower_ending(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), ascii_lower);
  return ending;
}

bool has_picture_ending(const std::filesystem::path& path) {
  const std::vector<std::string>& endings = picture_endings();
  return std::ranges::find(endings, lower_ending(path)) != endings.end();
}

void require_readable_size(std::int64_t height, std::int64_t width, const std::filesystem::path& path) {
  if (height > kLongestSide || width > kLongestSide || height * width > kMostPixels)
    fail(path, " is a picture of ", width, " x ", height, " pixels; at most ", kLongestSide, " a side and ",
         kMostPixels, " altogether can be read");
}

PictureHeader picture_header(std::string_view bytes, const std::filesystem::path& path) {
  return checked_header(format_of(bytes, path), bytes, path);
}

Picture decode_picture(std::string_view bytes, Colour colour, const std::filesystem::path& path) {
  const Format& format = format_of(bytes, path);
  checked_header(format, bytes, path);
  Picture picture = format.decode(bytes, path);
  set_colour(picture, colour);
  return picture;
}

void set_colour(Picture& picture, Colour colour) {
  if (colour == Colour::kGrey && picture.channels == 3) to_grey(picture);
  if (colour == Colour::kRgb && picture.channels == 1) to_rgb(picture);
}

void put_on_black(Picture& picture) {
  if (picture.channels != 2 && picture.channels != 4) return;
  const int channels = picture.channels, colours = channels - 1;
  const std::int64_t count = picture.height * picture.width;
  for (std::int64_t i = 0; i < count; ++i) {
    const int alpha = picture.pixels[i * channels + colours];
    for (int c = 0; c < colours; ++c)
      picture.pixels[i * colours + c] =
          static_cast<std::uint8_t>((picture.pixels[i * channels + c] * alpha + 127) / 255);
  }
  picture.channels = colours;
  picture.pixels.resize(count * colours);
}

}  // namespace miniqat::datasets
