#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "labs/lab.h"

namespace lab07 {

/// real = scale * (q - zero_point), q = 0 .. 255.
struct Grid {
  float scale = 1;
  int zero_point = 0;
};

/// A real number as mantissa / 2^shift; the shift is 1 or more.
struct Multiplier {
  std::int32_t mantissa = 0;
  int shift = 1;
};

/// The multiplier nearest to a number from 0 up to 2^30.
Multiplier multiplier_for(double real);

/// A dense layer: y = W x + b.
struct Dense {
  int inputs = 0;
  int outputs = 0;
  Grid input, weight, output;
  /// Integers on the weights' grid: weights[i * outputs + o] is of input i and output o.
  std::vector<std::uint8_t> weights;
  /// Real numbers, one for each output.
  std::vector<float> bias;
};

/// The layer's outputs, as integers on the output's grid, for inputs on the input's grid. Floats may be used to prepare
/// the integers of the bias and the multiplier, but not between x and y. This is what you fill in.
std::vector<std::uint8_t> integer_dense(const Dense& layer, const std::vector<std::uint8_t>& x);

void check(lab::Report& report, decltype(&integer_dense) answer);
void show(std::ostream& out);
std::string figure();

}  // namespace lab07
