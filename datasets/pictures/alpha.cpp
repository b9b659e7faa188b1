#include "datasets/pictures/alpha.h"

namespace miniqat::datasets {

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
