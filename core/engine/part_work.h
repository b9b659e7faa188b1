#pragma once

namespace miniqat {

/// The least that a part of a step must do. Divided by the rates of a machine it is the least time.
struct PartWork {
  double multiply_adds = 0;
  /// Of the tensors that it reads and writes, each read once and written once.
  double bytes = 0;

  PartWork& operator+=(const PartWork& other) {
    multiply_adds += other.multiply_adds;
    bytes += other.bytes;
    return *this;
  }
};

}  // namespace miniqat
