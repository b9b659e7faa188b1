#include <turbojpeg.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/text/error.h"
#include "datasets/pictures/formats.h"
#include "datasets/pictures/orientation.h"

namespace miniqat::datasets {
namespace {

using Decoder = std::unique_ptr<void, int (*)(tjhandle)>;

Decoder make_decoder() {
  Decoder decoder(tjInitDecompress(), tjDestroy);
  if (decoder == nullptr) fail("cannot decode JPEG: ", tjGetErrorStr2(nullptr));
  return decoder;
}

const unsigned char* data_of(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

/// Whether the picture comes in several scans, so that the decoder holds all coefficients until the last one: by the
/// kind of the frame, or by a first scan that lacks components.
bool has_several_scans(std::string_view jpeg) {
  constexpr std::size_t kProgressive = 0xc2, kScan = 0xda;
  const NumbersIn bytes(jpeg, true);
  std::size_t components = 0;
  bool several = false;
  walk_segments(jpeg, [&](std::size_t marker, std::size_t place, std::size_t) {
    if (marker == 0xc0 || marker == 0xc1) components = bytes.number(place + 9, 1);
    several = marker == kProgressive || (marker == kScan && bytes.number(place + 4, 1) < components);
    return marker != kProgressive && marker != kScan;
  });
  return several;
}

/// libjpeg knows no more than 65,500 pixels a side. The size stands in the head of the frame, behind other segments.
void require_readable_jpeg(std::string_view jpeg, const std::filesystem::path& path) {
  constexpr std::size_t kFrameHead = 9;
  const NumbersIn bytes(jpeg, true);
  walk_segments(jpeg, [&](std::size_t marker, std::size_t place, std::size_t) {
    if (!begins_frame(marker)) return true;
    if (place + kFrameHead <= jpeg.size())
      require_readable_size(static_cast<std::int64_t>(bytes.number(place + 5, 2)),
                            static_cast<std::int64_t>(bytes.number(place + 7, 2)), path);
    return false;
  });
}

PictureHeader read_header(const Decoder& decoder, std::string_view bytes, const std::filesystem::path& path) {
  require_readable_jpeg(bytes, path);
  int width = 0, height = 0, subsampling = 0, space = 0;
  if (tjDecompressHeader3(decoder.get(), data_of(bytes), bytes.size(), &width, &height, &subsampling, &space) != 0)
    fail(path, " is a damaged JPEG: ", tjGetErrorStr2(decoder.get()));
  if (space == TJCS_CMYK || space == TJCS_YCCK) fail(path, " is a JPEG in CMYK, for printing; convert it to RGB");
  const std::int64_t channels = space == TJCS_GRAY ? 1 : 3;
  // Coefficients have two bytes.
  return {.height = height,
          .width = width,
          .grey = channels == 1,
          .bytes_a_pixel = has_several_scans(bytes) ? 3 * channels : channels};
}

}  // namespace

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"); }

PictureHeader jpeg_header(std::string_view bytes, const std::filesystem::path& path) {
  PictureHeader header = read_header(make_decoder(), bytes, path);
  const int orientation = noted_orientation(bytes);
  if (swaps_sides(orientation)) std::swap(header.height, header.width);
  if (is_turned(orientation)) header.bytes_a_pixel = std::max<std::int64_t>(header.bytes_a_pixel, header.grey ? 2 : 6);
  return header;
}

Picture decode_jpeg(std::string_view bytes, const std::filesystem::path& path) {
  const Decoder decoder = make_decoder();
  const PictureHeader header = read_header(decoder, bytes, path);
  Picture picture{.height = header.height, .width = header.width, .channels = header.grey ? 1 : 3, .pixels = {}};
  picture.pixels.resize(picture.shape().elements());
  // A warning is the sign of a file that is cut short: the rest of its picture would be grey. The limit of scans keeps
  // a small progressive file from taking minutes.
  const int flags = TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;
  if (tjDecompress2(decoder.get(), data_of(bytes), bytes.size(), picture.pixels.data(), static_cast<int>(header.width),
                    0, static_cast<int>(header.height), header.grey ? TJPF_GRAY : TJPF_RGB, flags) != 0)
    fail(path, " is a damaged JPEG: ", tjGetErrorStr2(decoder.get()));
  return upright(std::move(picture), noted_orientation(bytes));
}

}  // namespace miniqat::datasets
