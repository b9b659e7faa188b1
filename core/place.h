#pragma once

#include <cstdint>
#include <string>

#include "core/shape.h"

namespace miniqat {

/// "[1,0,2]", the place of element i of a row-major tensor, 0 <= i < shape.elements().
std::string place_in(const Shape& shape, std::int64_t i);

}  // namespace miniqat
