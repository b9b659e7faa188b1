#pragma once

#include <algorithm>

#include "integer/ops/action.h"

namespace miniqat::integer {

// Operations that move integers to other places: Reshape, Pad, Slice, and Concat, which brings them to another grid on
// the way.

/// The input's integers under another shape.
struct Reshape {
  static constexpr std::string_view kType = "Reshape";

  void apply(std::span<const Operand> x, const Result& y) const;
  void check(const OperationCheck& rules) const;
  static void keys(auto&, auto&) {}
  Step make_step(const Model& model, const Operation& operation) const;
};

/// The input with borders of its zero point.
struct Pad {
  static constexpr std::string_view kType = "Pad";
  /// Before and after, one pair for each axis of an example.
  std::vector<std::array<std::int64_t, 2>> paddings;

  void apply(std::span<const Operand> x, const Result& y) const;
  void check(const OperationCheck& rules) const;
  static void keys(auto& pad, auto& json) { json("paddings", pad.paddings); }
  Step make_step(const Model& model, const Operation& operation) const;
};

/// A part of the input: of each axis the integers at start, start + step, ..., as many as the output has.
struct Slice {
  static constexpr std::string_view kType = "Slice";
  /// One of each for each axis of an example.
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> steps;

  void apply(std::span<const Operand> x, const Result& y) const;
  void check(const OperationCheck& rules) const;
  static void keys(auto& slice, auto& json) {
    json("starts", slice.starts);
    json("steps", slice.steps);
  }
  Step make_step(const Model& model, const Operation& operation) const;
};

/// The inputs one behind another along an axis, each brought to the output's grid as by Rescale.
struct Concat {
  static constexpr std::string_view kType = "Concat";
  /// An axis of one example: 0 .. rank - 1.
  int axis = 0;
  /// One for each input.
  std::vector<Multiplier> multipliers;

  void apply(std::span<const Operand> x, const Result& y) const;
  void check(const OperationCheck& rules) const;
  static void keys(auto& concat, auto& json) {
    json("axis", concat.axis, 0, Shape::kMaxRank);
    json("multipliers", concat.multipliers);
  }
  Step make_step(const Model& model, const Operation& operation) const;
};

/// The place, in a batch of examples of shape `to`, of integer i of those of shape `from`: each index becomes
/// start + index * step.
inline std::int64_t moved_place(std::int64_t i, const Shape& from, const Shape& to,
                                std::span<const std::int64_t> starts, std::span<const std::int64_t> steps) {
  std::int64_t place = 0, stride = 1;
  for (int axis = from.rank() - 1; axis >= 0; --axis) {
    place += (starts[axis] + i % from[axis] * steps[axis]) * stride;
    i /= from[axis];
    stride *= to[axis];
  }
  return i * stride + place;
}

inline void Reshape::apply(std::span<const Operand> x, const Result& y) const {
  std::ranges::copy(x[0].integers, y.integers.begin());
}

inline void Pad::apply(std::span<const Operand> x, const Result& y) const {
  std::ranges::fill(y.integers, static_cast<std::uint8_t>(y.grid.zero_point));
  std::vector<std::int64_t> before(paddings.size());
  std::ranges::transform(paddings, before.begin(), [](const auto& pair) { return pair[0]; });
  const std::vector<std::int64_t> ones(before.size(), 1);
  for (std::size_t i = 0; i < x[0].integers.size(); ++i)
    y.integers[moved_place(i, x[0].shape, y.shape, before, ones)] = x[0].integers[i];
}

inline void Slice::apply(std::span<const Operand> x, const Result& y) const {
  for (std::size_t i = 0; i < y.integers.size(); ++i)
    y.integers[i] = x[0].integers[moved_place(i, y.shape, x[0].shape, starts, steps)];
}

inline void Concat::apply(std::span<const Operand> x, const Result& y) const {
  std::vector<std::int64_t> starts(y.shape.rank(), 0);
  const std::vector<std::int64_t> ones(y.shape.rank(), 1);
  for (std::size_t k = 0; k < x.size(); ++k) {
    for (std::size_t i = 0; i < x[k].integers.size(); ++i)
      y.put(moved_place(i, x[k].shape, y.shape, starts, ones), x[k].less_zero_point(i), multipliers[k]);
    starts[axis] += x[k].shape[axis];
  }
}

}  // namespace miniqat::integer
