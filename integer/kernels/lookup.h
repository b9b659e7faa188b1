#pragma once

#include <array>

#include "integer/model.h"
#include "integer/step.h"

namespace miniqat::integer {

/// What becomes of each byte.
using ByteTable = std::array<std::uint8_t, 256>;

/// y[i] = table[x[i]]
void look_up(const ByteTable& table, const std::uint8_t* x, std::int64_t n, std::uint8_t* y);

/// y = table[x], element by element.
class LookupStep : public Step {
 public:
  /// `elements` of an example.
  LookupStep(const Lookup& lookup, std::int64_t elements);
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  /// For every byte: behind the input's grid its last integer again.
  ByteTable table_;
  std::int64_t elements_;
};

}  // namespace miniqat::integer
