#pragma once

namespace miniqat::layers::reference {

/// x, or alpha x below 0; alpha is a float32 number in every precision.
struct LeakyReluRule {
  explicit LeakyReluRule(const auto& attributes) : alpha(static_cast<float>(attributes.alpha)) {}

  template <class T>
  T value(T x) const {
    return x < 0 ? T(alpha) * x : x;
  }
  template <class T>
  T d_x(T d, T x) const {
    return x > 0 ? d : T(alpha) * d;
  }

  float alpha;
};

}  // namespace miniqat::layers::reference
