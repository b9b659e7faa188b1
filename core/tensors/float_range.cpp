#include "core/tensors/float_range.h"

#include <cmath>
#include <limits>

#include "core/text/error.h"

namespace miniqat {

void require_float32(double value, std::string_view name) {
  // The comparison is false for a NaN.
  if (!(std::abs(value) <= std::numeric_limits<float>::max()))
    fail(name, " must be a finite float32 number, is ", value);
}

}  // namespace miniqat
