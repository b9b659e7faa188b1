#pragma once

#include <ostream>
#include <string>

#include "labs/lab.h"

namespace lab01 {

/// An evenly spaced grid of real numbers: real = scale * (q - zero_point), for the integers q = 0 .. 2^bits - 1.
struct Grid {
  float scale = 0;
  int zero_point = 0;
};

/// The grid for the range [min, max], min <= 0 <= max, min < max, with 2^bits integers. This is what you fill in.
Grid grid_for(float min, float max, int bits);

void check(lab::Report& report, decltype(&grid_for) answer);
void show(std::ostream& out);
std::string figure();

}  // namespace lab01
