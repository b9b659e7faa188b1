#pragma once

#include <cstdint>
#include <functional>
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
//   make_step  its fast form, for a model that has passed Model::check(); empty if the output is the input's memory

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

/// Layers whose windows reach over so much padding that they would need more working memory than this, bytes a thread,
/// are left to the plain loops.
inline constexpr std::int64_t kMostScratch = std::int64_t{1} << 28;

/// In the operation's order, each [n, shape...] of bytes, row-major.
using StepInputs = std::span<const std::uint8_t* const>;
/// An operation of a model that has passed Model::check(), made ready to run on this CPU. Steps rely on that check:
/// what makes them looks for nothing to refuse, and throws only where there is no room (std::bad_alloc; Error for
/// weights that, brought to whole vectors, exceed Shape::kMaxElements). A step keeps copies of what it needs of the
/// model, except for a layer that is left to the plain loops (Layer::make_step): that one needs the model to stay.
///
/// It runs on n >= 1 examples, from inputs to `output` [n, shape...], which overlaps none of them; shapes and grids are
/// those of the operation's tensors. Uses our threads (core/threads/parallel.h). Without working memory it throws
/// std::bad_alloc or, in one of several threads, ends the program.
using Step = std::function<void(std::int64_t n, StepInputs inputs, std::uint8_t* output)>;

class OperationCheck;
struct Model;
struct Operation;

}  // namespace miniqat::integer
