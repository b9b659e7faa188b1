#pragma once

#include "core/tensors/standard.h"
#include "core/tensors/tensor.h"

namespace miniqat::datasets {

using miniqat::Standard;

/// The means and deviations of `numbers`, [n, ..., channels] float32, over all but the last axis. A channel whose
/// numbers are all equal gets the deviation 1.
Standard standard_of(const Tensor& numbers);

/// A copy of `numbers` that is standardised. Throws Error for another number of channels.
Tensor standardised(const Tensor& numbers, const Standard& standard);

}  // namespace miniqat::datasets
