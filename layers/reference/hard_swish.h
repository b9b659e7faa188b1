#pragma once

namespace miniqat::layers::reference {

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

}  // namespace miniqat::layers::reference
