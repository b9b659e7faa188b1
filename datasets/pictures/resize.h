#pragma once

#include "datasets/pictures/picture.h"

namespace miniqat::datasets {

/// Scales a picture, both sides by one factor, until it just covers height x width, and cuts the middle out of it. A
/// side that shrinks averages over the area that a new pixel covers, one that grows interpolates linearly between the
/// centres of pixels; results are rounded to the nearest byte, halves up. A picture of that size stays as it is.
Picture fit_picture(const Picture& picture, std::int64_t height, std::int64_t width);

}  // namespace miniqat::datasets
