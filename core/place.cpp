#include "core/place.h"

#include <vector>

#include "core/error.h"

namespace miniqat {

std::string place_in(const Shape& shape, std::int64_t i) {
  std::vector<std::int64_t> coordinates(shape.rank());
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    coordinates[axis] = i % shape[axis];
    i /= shape[axis];
  }
  std::string text = "[";
  for (std::size_t k = 0; k < coordinates.size(); ++k) text += concat(k == 0 ? "" : ",", coordinates[k]);
  return text + "]";
}

}  // namespace miniqat
