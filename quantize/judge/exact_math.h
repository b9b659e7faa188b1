#pragma once

#include <cmath>
#include <cstdint>

#include "core/tensor.h"

// Small change of quantize/judge/exact_op.h.

namespace miniqat::quantize {

/// float32 rounds by at most this much of a number.
inline constexpr double kRounding = 0x1p-24;
/// Numbers far below the least normal one, which the fast loops flush to zero, times what they may be added up to.
inline constexpr double kTiny = 1e-35;

inline double error_at(const Tensor& error, std::int64_t i) { return error.defined() ? error.data<double>()[i] : 0; }

/// |value| + error; undefined when value is.
Tensor magnitude_of(const Tensor& value, const Tensor& error);

/// relative * sums + what `wider` exceeds them by; undefined when both are nothing.
Tensor sum_error(const Tensor& sums, const Tensor& wider, double relative);

}  // namespace miniqat::quantize
