#pragma once

#include "core/tensors/tensor.h"
#include "datasets/picture_options.h"

namespace miniqat::datasets {

/// Pictures [n, h, w, c] uint8 in the size and the colour that the options ask for, as fit_picture() and
/// decode_picture() make them; those that are so already are shared.
Tensor fit_images(const Tensor& images, const PictureOptions& options);

}  // namespace miniqat::datasets
