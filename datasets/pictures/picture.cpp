#include "datasets/pictures/picture.h"

#include <algorithm>

#include "core/text/error.h"
#include "datasets/data_dir.h"

namespace miniqat::datasets {
namespace {

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

bool has_picture_ending(const std::filesystem::path& path) {
  const std::vector<std::string>& endings = picture_endings();
  return std::ranges::find(endings, lower_ending(path)) != endings.end();
}

void require_readable_size(std::int64_t height, std::int64_t width, const std::filesystem::path& path) {
  if (height > kLongestSide || width > kLongestSide || height * width > kMostPixels)
    fail(path, " is a picture of ", width, " x ", height, " pixels; at most ", kLongestSide, " a side and ",
         kMostPixels, " altogether can be read");
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
