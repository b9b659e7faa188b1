#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "labs/lab.h"

namespace lab04 {

/// A grid of real numbers, scale * (q - zero_point), with its smallest and its largest number.
struct Grid {
  float scale = 0;
  int zero_point = 0;
  float nudged_min = 0;
  float nudged_max = 0;
};

/// Labs 1 and 2, solved.
Grid grid_for(float min, float max, int bits);
float fake_quantize(const Grid& grid, float x);

/// The gradient of the loss with respect to x, by the straight-through estimator. d_y is that with respect to
/// y = fake_quantize(grid, x); all are as long as x. This is what you fill in.
std::vector<float> straight_through(const Grid& grid, const std::vector<float>& x, const std::vector<float>& d_y);

void check(lab::Report& report, decltype(&straight_through) answer);
void show(std::ostream& out);
std::string figure();

}  // namespace lab04
