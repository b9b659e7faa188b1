#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/tensors/tensor.h"

namespace miniqat::testing {

/// How near a runtime's outputs are to the reference engine's, over any number of models and examples.
struct RuntimeAgreement {
  std::int64_t outputs = 0;
  std::int64_t equal = 0;
  /// The largest difference, in steps.
  int largest = 0;
  std::int64_t examples = 0;
  /// Examples whose first largest output is in the same place.
  std::int64_t same_class = 0;

  double share() const { return static_cast<double>(equal) / static_cast<double>(outputs); }
  double same_class_share() const { return static_cast<double>(same_class) / static_cast<double>(examples); }
  /// Counts a model's outputs: expected [n, ...] uint8, and as many integers found. Throws Error when these are not as
  /// many.
  void add(const Tensor& expected, std::span<const int> found);
};

/// A line for people who read the test's output.
void print(const std::string& what, const RuntimeAgreement& agreement);

}  // namespace miniqat::testing
