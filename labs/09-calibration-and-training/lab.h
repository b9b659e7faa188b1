#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "labs/lab.h"

namespace lab09 {

using Values = std::vector<double>;

/// A symmetric grid of 2^bits - 1 numbers from -end to end, 0 among them.
struct Grid {
  int bits = 8;
  double end = 1;
};

/// w on the grid (lab 2), and whether the gradient passes at w (lab 4).
double fake_quantize(const Grid& grid, double w);
bool gradient_passes(const Grid& grid, double w);

/// Examples of a linear neuron: inputs x, and the wanted output for each.
struct Batch {
  std::vector<Values> x;
  Values target;
};

/// The weights after a step of quantization-aware training. The neuron's output is the sum of x[i] * w[i] with rounded
/// weights, the loss the mean of (output - target)^2 over the batch, the step `rate` times the gradient. This is what
/// you fill in.
Values train_step(const Values& weights, const Grid& grid, const Batch& batch, double rate);

void check(lab::Report& report, decltype(&train_step) answer);
void show(std::ostream& out);
std::string figure();

}  // namespace lab09
