#pragma once

#include <limits>
#include <string_view>

namespace miniqat {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Throws Error unless the value, called `name` in the message, is finite as a float32 too.
void require_float32(double value, std::string_view name);

}  // namespace miniqat
