#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "bench/kernels/fake_quant_plugin.h"
#include "labs/lab.h"

namespace lab10 {

/// y = x on its grid, bit for bit as fake_quant_plugin.h says. Element i of n belongs to channel i % channels, whose
/// grid is grids[i % channels]; n may be any number, and y may be x. This is what you fill in.
void round_tensor(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels);

void check(lab::Report& report, decltype(&round_tensor) answer);
void show(std::ostream& out);
std::string figure();

}  // namespace lab10
