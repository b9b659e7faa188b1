#include "datasets/pictures/jpeg.h"

#include <turbojpeg.h>

#include <memory>
#include <utility>

#include "core/error.h"
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

PictureHeader read_header(const Decoder& decoder, std::string_view bytes, const std::filesystem::path& path) {
  int width = 0, height = 0, subsampling = 0, space = 0;
  if (tjDecompressHeader3(decoder.get(), data_of(bytes), bytes.size(), &width, &height, &subsampling, &space) != 0)
    fail(path, " is a damaged JPEG: ", tjGetErrorStr2(decoder.get()));
  if (space == TJCS_CMYK || space == TJCS_YCCK) fail(path, " is a JPEG in CMYK, for printing; convert it to RGB");
  return {.height = height, .width = width, .grey = space == TJCS_GRAY};
}

}  // namespace

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"); }

PictureHeader jpeg_header(std::string_view bytes, const std::filesystem::path& path) {
  PictureHeader header = read_header(make_decoder(), bytes, path);
  if (swaps_sides(noted_orientation(bytes))) std::swap(header.height, header.width);
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
