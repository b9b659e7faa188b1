#pragma once

#include <cstdint>
#include <vector>

#include "core/shape.h"

namespace miniqat::integer {

/// The two operands of a Mul as nested loops over the output of an example: along axis i lie extents[i] places, and an
/// operand's place grows by its stride, 0 where it is stretched. Neighbouring axes on which both operands behave alike
/// are one, axes of extent 1 are left out; at least one axis is there.
struct StretchedPair {
  struct Places {
    std::int64_t a = 0;
    std::int64_t b = 0;
  };

  std::vector<std::int64_t> extents;
  std::vector<Places> strides;

  /// Of the innermost axis.
  std::int64_t row() const { return extents.back(); }
  /// Where each row begins in the operands, one behind another.
  std::vector<Places> rows() const;
};

/// Of the shapes of an example, which Model::check() lets a Mul read.
StretchedPair stretched_pair(const Shape& a, const Shape& b);

}  // namespace miniqat::integer
