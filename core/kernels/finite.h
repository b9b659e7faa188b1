#pragma once

#include "core/tensors/tensor.h"

namespace miniqat {

/// No element is a NaN or an infinity. True for tensors of integers. As fast as memory is, on thread_count() threads.
bool is_finite(const Tensor& tensor);

}  // namespace miniqat
