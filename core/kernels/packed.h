#pragma once

#include <cstdint>

#include "core/tensors/packed.h"

namespace miniqat {

/// codes = y / scale + zero_point for n numbers y on the grid, in the calling thread. NaN, and any y of a NaN scale,
/// becomes some code; returns whether a y was NaN.
bool pack(const float* y, std::int64_t n, const CodeGrid& grid, std::uint8_t* codes);
/// All elements of y into `bytes`, in parallel; the grids are there already. A NaN in y makes all scales NaN.
void pack(const PackedForm& form, const float* y, Tensor& bytes);
/// The very bits of the numbers that were packed. In parallel.
void unpack(const PackedForm& form, const Tensor& bytes, float* y);

}  // namespace miniqat
