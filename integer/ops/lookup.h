#pragma once

#include <algorithm>
#include <string>

#include "integer/ops/action.h"

namespace miniqat::integer {

/// y = table[x]: a function of one real number, element by element, between the grids of input and output. (An integer
/// beyond the input's grid, which no model makes, counts as its last.)
struct Lookup {
  static constexpr std::string_view kType = "Lookup";
  /// The name of the table's function ("Sigmoid"), by the rules for names of tensors. A format with an operator for it
  /// may write that.
  std::string function;
  /// One for each integer of the input's grid, 2^bits, each within the operation's clamp.
  std::vector<std::uint8_t> table = {};

  void apply(std::span<const Operand> x, const Result& y) const;
  void check(const OperationCheck& rules) const;
  static void keys(auto& lookup, auto& json) {
    json("function", lookup.function);
    json.list("table", lookup.table, 8);
  }
  Step make_step(const Model& model, const Operation& operation) const;
};

inline void Lookup::apply(std::span<const Operand> x, const Result& y) const {
  for (std::size_t i = 0; i < y.integers.size(); ++i)
    y.integers[i] = table[std::min<std::size_t>(x[0].integers[i], table.size() - 1)];
}

/// y = (x - zero point of x) * multiplier: from one grid to another, or a Relu on its own.
struct Rescale {
  static constexpr std::string_view kType = "Rescale";
  Multiplier multiplier;

  void apply(std::span<const Operand> x, const Result& y) const;
  void check(const OperationCheck& rules) const;
  static void keys(auto& rescale, auto& json) { json("multiplier", rescale.multiplier); }
  Step make_step(const Model& model, const Operation& operation) const;
};

inline void Rescale::apply(std::span<const Operand> x, const Result& y) const {
  for (std::size_t i = 0; i < y.integers.size(); ++i) y.put(i, x[0].less_zero_point(i), multiplier);
}

}  // namespace miniqat::integer
