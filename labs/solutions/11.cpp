#include <algorithm>
#include <cmath>

#include "labs/11-numbers-as-answers/lab.h"

namespace lab11 {

double answer(std::int32_t accumulator, double scale, const Grid& grid, const Units& units) {
  const double real = accumulator * scale;
  const long largest = (1L << grid.bits) - 1;
  const long q = std::clamp(std::lround(real / grid.scale) + grid.zero_point, 0L, largest);
  const double number = grid.scale * static_cast<double>(q - grid.zero_point);
  return number * units.deviation + units.mean;
}

}  // namespace lab11
