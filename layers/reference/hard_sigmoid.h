#pragma once

namespace miniqat::layers::reference {

/// The line alpha x + beta, held within [0, 1]; alpha and beta are float32 numbers in every precision.
struct HardSigmoidRule {
  explicit HardSigmoidRule(const auto& attributes)
      : alpha(static_cast<float>(attributes.alpha)), beta(static_cast<float>(attributes.beta)) {}

  template <class T>
  T value(T x) const {
    const T line = T(alpha) * x + T(beta);
    return line < 0 ? T(0) : line > 1 ? T(1) : line;
  }
  template <class T>
  T d_x(T d, T x) const {
    const T line = T(alpha) * x + T(beta);
    return line <= 0 || line >= 1 ? T(0) : T(alpha) * d;
  }

  float alpha, beta;
};

}  // namespace miniqat::layers::reference
