#include "datasets/pictures/picture.h"

#include "datasets/pictures/formats.h"
#include "datasets/pictures/resize.h"
#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::picture_reader {

using namespace miniqat::datasets;

/// Of large pictures the header alone: a progressive JPEG of a few kB takes seconds.
MINIQAT_READER(picture)(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kMost = 1 << 18;
  const std::string_view bytes = fuzz::text_of(data, size);
  PictureHeader header;
  if (!fuzz::accepts([&] { header = picture_header(bytes, "in"); })) return 0;
  fuzz::require(header.height * header.width <= kMostPixels, "no header announces too much");
  if (header.height * header.width > kMost) return 0;
  Picture picture, grey;
  if (!fuzz::accepts([&] { picture = decode_picture(bytes, Colour::kAuto, "in"); })) return 0;
  fuzz::require(picture.height == header.height && picture.width == header.width, "a picture has its header's size");
  fuzz::require(picture.channels == (header.grey ? 1 : 3), "and its header's colour");
  fuzz::require(std::ssize(picture.pixels) == picture.shape().elements(), "and all its pixels");
  fuzz::require(fuzz::accepts([&] { grey = decode_picture(bytes, Colour::kGrey, "in"); }),
                "what is read once, is again");
  fuzz::require(std::ssize(grey.pixels) == header.height * header.width, "a grey pixel is one byte");
  fuzz::require(fit_picture(grey, 5, 7).pixels.size() == 35, "a picture fits any size");
  return 0;
}

}  // namespace miniqat::fuzz::picture_reader
