#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "labs/lab.h"

namespace lab03 {

/// Lab 2, solved: x on the grid of [min, max], which need not contain 0, with 2^bits integers.
float fake_quantize(float min, float max, int bits, float x);

/// The weights on grids of their own for each channel. Element i belongs to channel i % channels; the range of a
/// channel goes from its smallest to its largest weight. This is what you fill in.
std::vector<float> quantize_weights(const std::vector<float>& weights, int channels, int bits);

void check(lab::Report& report, decltype(&quantize_weights) answer);
void show(std::ostream& out);
std::string figure();

}  // namespace lab03
