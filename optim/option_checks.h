#pragma once

#include <limits>
#include <string_view>

#include "core/text/error.h"

namespace miniqat::optim {

// Checks of the options that are numbers. A NaN fails every comparison, so each states what is right, not what is
// wrong.

/// Throws Error unless 0 <= value and float32 can hold it. Denormals count as 0 in steps.
inline void require_rate(double value, std::string_view option) {
  if (!(value >= 0 && value <= std::numeric_limits<float>::max()))
    fail(option, " must be a finite number >= 0, is ", value);
  if (value > 0 && value < std::numeric_limits<float>::min())
    fail(option, " is ", value, ", which is 0 in float32: give 0 or at least ", std::numeric_limits<float>::min());
}

/// Throws Error unless 0 <= value < 1, as averages over past gradients need to forget.
inline void require_memory(double value, std::string_view option) {
  // Also as a float32: 1 - 1e-12 would be rounded to 1 and never forget.
  if (!(value >= 0 && static_cast<float>(value) < 1)) fail(option, " must be in [0, 1), is ", exact(value));
}

}  // namespace miniqat::optim
