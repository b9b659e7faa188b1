#include <webp/decode.h>

#include <utility>

#include "core/text/error.h"
#include "datasets/pictures/formats.h"
#include "datasets/pictures/orientation.h"
#include "datasets/pictures/picture.h"

namespace miniqat::datasets {
namespace {

const std::uint8_t* webp_data(std::string_view bytes) { return reinterpret_cast<const std::uint8_t*>(bytes.data()); }

const char* webp_trouble(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return "it is cut short";
    case VP8_STATUS_OUT_OF_MEMORY:
      return "there is no memory for it";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it has a feature that libwebp does not know";
    default:
      return "its data are no picture";
  }
}

void check_status(VP8StatusCode status, const std::filesystem::path& path) {
  if (status != VP8_STATUS_OK) fail(path, " is a damaged WebP: ", webp_trouble(status));
}

/// Looks at the size behind "RIFF", which counts neither of them.
bool is_whole(std::string_view bytes) { return NumbersIn(bytes, false).number(4, 4) <= bytes.size() - 8; }

bool is_extended(std::string_view bytes) { return bytes.size() > 20 && bytes.substr(12, 4) == "VP8X"; }

/// Looks at the flag in the head of an extended file.
bool has_exif(std::string_view bytes) {
  constexpr unsigned kExif = 8;
  return is_extended(bytes) && (static_cast<unsigned char>(bytes[20]) & kExif) != 0;
}

/// Only the canvas of an extended file can be too large.
void require_readable_webp(std::string_view bytes, const std::filesystem::path& path) {
  constexpr std::size_t kCanvas = 24;
  if (!is_extended(bytes) || bytes.size() < kCanvas + 6) return;
  const auto side = [&](std::size_t place) {
    return static_cast<std::int64_t>(NumbersIn(bytes, false).number(place, 3)) + 1;
  };
  require_readable_size(side(kCanvas + 3), side(kCanvas), path);
}

WebPBitstreamFeatures webp_features(std::string_view bytes, const std::filesystem::path& path) {
  require_readable_webp(bytes, path);
  WebPBitstreamFeatures features;
  check_status(WebPGetFeatures(webp_data(bytes), bytes.size(), &features), path);
  if (features.has_animation != 0) fail(path, " is an animated WebP; save the frame that counts as a picture");
  return features;
}

}  // namespace

bool is_webp(std::string_view bytes) {
  return bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WEBP";
}

PictureHeader webp_header(std::string_view bytes, const std::filesystem::path& path) {
  const WebPBitstreamFeatures features = webp_features(bytes, path);
  if (has_exif(bytes) && !is_whole(bytes)) check_status(VP8_STATUS_NOT_ENOUGH_DATA, path);
  // RGB or RGBA. Without loss the decoder has 4 bytes a pixel beside it; a copy that is turned comes after these.
  PictureHeader header{.height = features.height, .width = features.width, .grey = false, .bytes_a_pixel = 8};
  if (swaps_sides(noted_orientation(bytes))) std::swap(header.height, header.width);
  return header;
}

Picture decode_webp(std::string_view bytes, const std::filesystem::path& path) {
  const WebPBitstreamFeatures features = webp_features(bytes, path);
  Picture picture{
      .height = features.height, .width = features.width, .channels = features.has_alpha != 0 ? 4 : 3, .pixels = {}};
  picture.pixels.resize(picture.shape().elements());
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) fail("this libwebp is of another version than its header");
  config.output.colorspace = picture.channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {.rgba = picture.pixels.data(),
                          .stride = static_cast<int>(picture.width * picture.channels),
                          .size = picture.pixels.size()};
  // What the decoder does not need may be missing all the same.
  if (!is_whole(bytes)) check_status(VP8_STATUS_NOT_ENOUGH_DATA, path);
  check_status(WebPDecode(webp_data(bytes), bytes.size(), &config), path);
  put_on_black(picture);
  return upright(std::move(picture), noted_orientation(bytes));
}

}  // namespace miniqat::datasets
