#pragma once

#include <array>

#include "integer/model.h"
#include "integer/step.h"

namespace miniqat::integer {

/// y = table[x], element by element.
class LookupStep : public Step {
 public:
  /// `elements` of an example.
  LookupStep(const Lookup& lookup, std::int64_t elements);
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  /// For every byte: behind the input's grid its last integer again.
  std::array<std::uint8_t, 256> table_;
  std::int64_t elements_;
};

}  // namespace miniqat::integer
