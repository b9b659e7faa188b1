#pragma once

#include <array>
#include <cstdint>

#include "integer/model.h"

namespace miniqat::integer {

/// The grids of two inputs and of the output.
struct PairOfInputs {
  PairOfInputs(const Model& model, const Operation& operation)
      : size(model.output_of(operation).shape.elements()),
        zero_points{model.input_of(operation, 0).grid.zero_point, model.input_of(operation, 1).grid.zero_point},
        zero_point(model.output_of(operation).grid.zero_point),
        clamp(operation.clamp) {}

  /// Elements of an example, of the output.
  std::int64_t size;
  std::array<std::int32_t, 2> zero_points;
  /// The output's.
  std::int32_t zero_point;
  Clamp clamp;
};

}  // namespace miniqat::integer
