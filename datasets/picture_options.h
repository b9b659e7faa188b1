#pragma once

#include <cmath>
#include <cstdint>

#include "datasets/pictures/picture.h"

namespace miniqat::datasets {

/// How pictures from a user's files become examples.
struct PictureOptions {
  /// Every picture is scaled and cut to this size (fit_picture()); 0: as the files have it, which must then be equal.
  std::int64_t height = 0;
  std::int64_t width = 0;
  Colour colour = Colour::kAuto;
  /// A pixel is (byte / 255 - mean) / deviation. The mean is rounded to a whole byte, the zero point of the input.
  double mean = 0;
  double deviation = 1;

  bool has_size() const { return height > 0; }
};

/// Asks for pictures of the shape [h, w, c]; of other channels than 1 and 3, for those of the files.
inline void set_shape(PictureOptions& options, const Shape& shape) {
  options.height = shape[0];
  options.width = shape[1];
  options.colour = shape[2] == 1 ? Colour::kGrey : shape[2] == 3 ? Colour::kRgb : Colour::kAuto;
}

/// Asks for pixels that are (byte - zero_point) * scale.
inline void set_grid(PictureOptions& options, float scale, int zero_point) {
  options.mean = zero_point / 255.0;
  options.deviation = 1 / (255 * static_cast<double>(scale));
}

/// The grid of the options' pixels; the opposite of set_grid().
inline float scale_of(const PictureOptions& options) { return static_cast<float>(1 / (255 * options.deviation)); }
inline int zero_point_of(const PictureOptions& options) { return static_cast<int>(std::lround(255 * options.mean)); }

}  // namespace miniqat::datasets
