#pragma once

#include "core/tensors/tensor.h"
#include "datasets/picture_options.h"
#include "datasets/pictures/picture.h"

namespace miniqat::datasets {

/// Scales a picture, both sides by one factor, until it just covers height x width, and cuts the middle out of it. A
/// side that shrinks averages over the area that a new pixel covers, one that grows interpolates linearly between the
/// centres of pixels; results are rounded to the nearest byte, halves up. A picture of that size stays as it is.
Picture fit_picture(const Picture& picture, std::int64_t height, std::int64_t width);

/// The shape that fit_images() gives to pictures of this one, [n, h, w, c].
Shape shape_fitted(const Shape& from, const PictureOptions& options);

/// Pictures [n, h, w, c] uint8 in the size and the colour that the options ask for, as fit_picture() and
/// decode_picture() make them; those that are so already are shared.
Tensor fit_images(const Tensor& images, const PictureOptions& options);

}  // namespace miniqat::datasets
