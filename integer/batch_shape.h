#pragma once

#include <cstdint>

#include "core/shape.h"
#include "core/tensor.h"
#include "integer/model.h"

namespace miniqat::integer {

/// [n, shape...]
Shape batch_shape(std::int64_t n, const Shape& example);

/// The n of a batch of `info`'s examples. Throws Error unless it is [n, shape...] uint8 with n >= 1.
std::int64_t batch_size(const Tensor& batch, const TensorInfo& info);

}  // namespace miniqat::integer
