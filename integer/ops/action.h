#pragma once

#include <cstdint>
#include <span>

#include "core/tensors/shape.h"
#include "integer/arithmetic.h"

namespace miniqat::integer {

// An action, what an operation does, is a struct of plain data. Its header defines it by its equation and, below the
// struct, in plain loops; its .cpp file has the rest:
//
//   kType      its name in files and messages (a Layer has one for each of its kinds)
//   apply      the specification: the equation in plain loops, inline. No fast form uses them.
//   check      throws Error that names the operation for what breaks a rule of the header
//   keys       the keys of its members in JSON, for a writer as for a reader (integer/format/model_json.cpp)
//   make_step  its fast form, for a model that has passed Model::check(); null if the output is the input's memory

/// A batch of one of the inputs.
struct Operand {
  /// [n, shape...], row-major.
  std::span<const std::uint8_t> integers;
  /// The shape of one example.
  const Shape& shape;
  const Grid& grid;

  std::int32_t less_zero_point(std::int64_t i) const { return integers[static_cast<std::size_t>(i)] - grid.zero_point; }
};

/// A batch of the output, to be filled.
struct Result {
  /// The number of examples.
  std::int64_t n;
  /// [n, shape...], row-major.
  std::span<std::uint8_t> integers;
  const Shape& shape;
  const Grid& grid;
  const Clamp& clamp;

  /// Integer i from a sum at another scale.
  void put(std::int64_t i, std::int32_t sum, const Multiplier& multiplier) const {
    integers[static_cast<std::size_t>(i)] = requantize(sum, multiplier, grid.zero_point, clamp);
  }
};

class OperationCheck;
class Step;
struct Model;
struct Operation;

}  // namespace miniqat::integer
