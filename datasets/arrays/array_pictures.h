#pragma once

#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "datasets/arrays/npy.h"

namespace miniqat::datasets {

/// Pictures out of [n, h, w], [n, h, w, 1] or [n, h, w, 3] numbers: integers in [0, 255], bools (true becomes 255), or
/// floats that are either all in [0, 1] (1 becomes 255) or all whole numbers in [0, 255]. Result: [n, h, w, c] uint8.
/// Throws Error in one line that names `source`. If rounding to bytes costs anything, `notes`, unless null, gets a line
/// that says how much, and how many levels are left.
Tensor pictures_of(const NumpyArray& array, const std::string& source, std::vector<std::string>* notes = nullptr);

/// Labels out of [n] or [n, 1] integers that are not negative. Result: [n] int32. Throws Error that names `source`.
Tensor labels_of(const NumpyArray& array, const std::string& source);

}  // namespace miniqat::datasets
