#include "datasets/pictures/fit_images.h"

#include <algorithm>

#include "core/threads/parallel.h"
#include "datasets/pictures/resize.h"

namespace miniqat::datasets {

Tensor fit_images(const Tensor& images, const PictureOptions& options) {
  const Shape& from = images.shape();
  const std::int64_t height = options.has_size() ? options.height : from[1];
  const std::int64_t width = options.has_size() ? options.width : from[2];
  const std::int64_t channels = options.colour == Colour::kAuto ? from[3] : options.colour == Colour::kGrey ? 1 : 3;
  const Shape to{from[0], height, width, channels};
  if (to == from) return images;
  Tensor fitted(to, DType::kUInt8);
  const std::int64_t old_size = from.elements() / from[0], new_size = to.elements() / to[0];
  parallel_for(from[0], 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto* pixels = images.data<std::uint8_t>() + i * old_size;
      Picture picture{.height = from[1],
                      .width = from[2],
                      .channels = static_cast<int>(from[3]),
                      .pixels{pixels, pixels + old_size}};
      set_colour(picture, channels == 1 ? Colour::kGrey : Colour::kRgb);
      std::ranges::copy(fit_picture(picture, height, width).pixels, fitted.data<std::uint8_t>() + i * new_size);
    }
  });
  return fitted;
}

}  // namespace miniqat::datasets
