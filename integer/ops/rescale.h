#pragma once

#include "integer/ops/action.h"

namespace miniqat::integer {

/// y = (x - zero point of x) * multiplier: from one grid to another, or a Relu on its own.
struct Rescale {
  static constexpr std::string_view kType = "Rescale";
  Multiplier multiplier;

  void apply(std::span<const Operand> x, const Result& y) const;
  void check(const OperationCheck& rules) const;
  static void keys(auto& rescale, auto& json) { json("multiplier", rescale.multiplier); }
  std::unique_ptr<Step> make_step(const Model& model, const Operation& operation) const;
};

inline void Rescale::apply(std::span<const Operand> x, const Result& y) const {
  for (std::size_t i = 0; i < y.integers.size(); ++i) y.put(i, x[0].less_zero_point(i), multiplier);
}

}  // namespace miniqat::integer
