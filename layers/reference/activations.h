#pragma once

#include <cmath>

// Each rule is the value and its derivative times d, the gradient that arrives, for float and for double.
namespace miniqat::layers::reference {

struct ReluRule {
  template <class T>
  static T value(T x) {
    return x < 0 ? T(0) : x;
  }
  template <class T>
  static T d_x(T d, T x) {
    return x > 0 ? d : T(0);
  }
};

struct Relu6Rule {
  template <class T>
  static T value(T x) {
    return x < 0 ? T(0) : x > 6 ? T(6) : x;
  }
  template <class T>
  static T d_x(T d, T x) {
    return x > 0 && x < 6 ? d : T(0);
  }
};

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

/// x * relu6(x + 3) / 6, in its three parts: so that -infinity gives 0.
struct HardSwishRule {
  template <class T>
  static T value(T x) {
    return x <= -3 ? T(0) : x >= 3 ? x : x * (x + 3) / 6;
  }
  template <class T>
  static T d_x(T d, T x) {
    return x <= -3 ? T(0) : x >= 3 ? d : d * (2 * x + 3) / 6;
  }
};

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

/// y' = y (1 - y), where 1 - y = sigmoid(-x).
struct SigmoidRule {
  static auto value(auto x) { return 1 / (1 + std::exp(-x)); }
  static auto d_x(auto d, auto x) { return d / ((1 + std::exp(-x)) * (1 + std::exp(x))); }
};

}  // namespace miniqat::layers::reference
