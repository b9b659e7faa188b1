#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "labs/lab.h"

namespace lab11 {

/// The grid of an output: the integers from 0 to 2^bits - 1, of which q stands for scale * (q - zero_point).
struct Grid {
  int bits = 8;
  double scale = 1;
  int zero_point = 0;
};

/// What the targets were standardised with: (target - mean) / deviation.
struct Units {
  double mean = 0;
  double deviation = 1;
};

/// The answer of an integer network, in the units of the data. `accumulator` is the sum of the last layer, which stands
/// for accumulator * scale; the output is the nearest integer of the grid, and cut where that ends. This is what you
/// fill in.
double answer(std::int32_t accumulator, double scale, const Grid& grid, const Units& units);

void check(lab::Report& report, decltype(&answer) of_reader);
void show(std::ostream& out);
std::string figure();

}  // namespace lab11
