#pragma once

#include "integer/ops/action.h"

namespace miniqat::integer {

// Operations on a pair of inputs.

/// y = the sum over inputs i of (x_i - zero point of x_i) * mantissa_i, shifted: two inputs of one shape. The
/// multipliers are the nearest to input's scale / output's scale.
struct Add {
  static constexpr std::string_view kType = "Add";
  SharedMultipliers multipliers;

  void apply(std::span<const Operand> x, const Result& y) const;
  void check(const OperationCheck& rules) const;
  static void keys(auto& add, auto& json) { json("multipliers", add.multipliers); }
  Step make_step(const Model& model, const Operation& operation) const;
};

inline void Add::apply(std::span<const Operand> x, const Result& y) const {
  const auto& [mantissas, shift] = multipliers;
  for (std::size_t i = 0; i < y.integers.size(); ++i) {
    const std::int64_t a = std::int64_t{x[0].less_zero_point(i)} * mantissas[0];
    const std::int64_t b = std::int64_t{x[1].less_zero_point(i)} * mantissas[1];
    y.integers[i] = place(a + b, shift, y.grid.zero_point, y.clamp);
  }
}

/// y = (a - zero point of a) * (b - zero point of b) * multiplier: two inputs of as many axes as the output. An axis of
/// an input on which it has 1 place is stretched to the other's extent: factors [1, 1, c] stand for every pixel of an
/// image [h, w, c].
struct Mul {
  static constexpr std::string_view kType = "Mul";
  Multiplier multiplier;

  void apply(std::span<const Operand> x, const Result& y) const;
  void check(const OperationCheck& rules) const;
  static void keys(auto& mul, auto& json) { json("multiplier", mul.multiplier); }
  Step make_step(const Model& model, const Operation& operation) const;
};

/// Where a batch of examples of shape `from` has the number that belongs to number i of those of shape `to`.
inline std::int64_t stretched_place(std::int64_t i, const Shape& from, const Shape& to) {
  std::int64_t place = 0, stride = 1;
  for (int axis = to.rank() - 1; axis >= 0; --axis) {
    if (from[axis] != 1) place += i % to[axis] * stride;
    i /= to[axis];
    stride *= from[axis];
  }
  return i * stride + place;
}

inline void Mul::apply(std::span<const Operand> x, const Result& y) const {
  for (std::size_t i = 0; i < y.integers.size(); ++i) {
    const std::int32_t a = x[0].less_zero_point(stretched_place(i, x[0].shape, y.shape));
    const std::int32_t b = x[1].less_zero_point(stretched_place(i, x[1].shape, y.shape));
    y.put(i, a * b, multiplier);
  }
}

/// The two operands of a Mul as nested loops over the output of an example, for fast forms and exporters: axis i has
/// extents[i] steps, each of which moves an operand's offset by its stride, 0 where it is stretched. Neighbouring axes
/// on which both operands move in the same way are one, axes of extent 1 are left out; at least one axis is there.
struct StretchedPair {
  struct Offsets {
    std::int64_t a = 0;
    std::int64_t b = 0;
  };

  std::vector<std::int64_t> extents;
  std::vector<Offsets> strides;

  /// The extent of the innermost axis.
  std::int64_t row() const { return extents.back(); }
  /// Where each row begins in the operands, one behind another.
  std::vector<Offsets> rows() const;
};

/// The nested loops for two shapes of an example that Mul::check() lets pass.
StretchedPair stretched_pair(const Shape& a, const Shape& b);

}  // namespace miniqat::integer
