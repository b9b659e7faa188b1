#pragma once

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

}  // namespace miniqat::layers::reference
