#pragma once

#include <cmath>

namespace miniqat::layers::reference {

/// y' = y (1 - y), where 1 - y = sigmoid(-x).
struct SigmoidRule {
  static auto value(auto x) { return 1 / (1 + std::exp(-x)); }
  static auto d_x(auto d, auto x) { return d / ((1 + std::exp(-x)) * (1 + std::exp(x))); }
};

}  // namespace miniqat::layers::reference
