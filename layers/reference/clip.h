#pragma once

namespace miniqat::layers::reference {

/// x, held within [low, high], which are float32 numbers in every precision.
struct ClipRule {
  explicit ClipRule(const auto& attributes)
      : low(static_cast<float>(attributes.low)), high(static_cast<float>(attributes.high)) {}

  template <class T>
  T value(T x) const {
    return x < T(low) ? T(low) : x > T(high) ? T(high) : x;
  }
  template <class T>
  T d_x(T d, T x) const {
    return x > T(low) && x < T(high) ? d : T(0);
  }

  float low, high;
};

}  // namespace miniqat::layers::reference
