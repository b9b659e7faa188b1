#pragma once

#include "integer/ops/action.h"

namespace miniqat::integer {

/// y = the sum over inputs i of (x_i - zero point of x_i) * mantissa_i, shifted: two inputs of one shape. The
/// multipliers are the nearest to input's scale / output's scale.
struct Add {
  static constexpr std::string_view kType = "Add";
  SharedMultipliers multipliers;

  void apply(std::span<const Operand> x, const Result& y) const;
  void check(const OperationCheck& rules) const;
  static void keys(auto& add, auto& json) { json("multipliers", add.multipliers); }
  std::unique_ptr<Step> make_step(const Model& model, const Operation& operation) const;
};

inline void Add::apply(std::span<const Operand> x, const Result& y) const {
  const auto& [mantissas, shift] = multipliers;
  for (std::size_t i = 0; i < y.integers.size(); ++i) {
    const std::int64_t a = std::int64_t{x[0].less_zero_point(i)} * mantissas[0];
    const std::int64_t b = std::int64_t{x[1].less_zero_point(i)} * mantissas[1];
    y.integers[i] = place(a + b, shift, y.grid.zero_point, y.clamp);
  }
}

}  // namespace miniqat::integer
