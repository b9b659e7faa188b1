#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::layers {

struct ConcatAttributes {
  /// Counts from the end when negative.
  std::int64_t axis = -1;

  void visit(AttributeVisitor& visitor);
};

/// Joins one or more float32 tensors along an axis; all other extents must agree. The output's extent along the axis is
/// the sum of the inputs'. Throws Error with both shapes while building when they don't fit.
struct Concat {
  static constexpr std::string_view kType = "Concat";
  using Attributes = ConcatAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output concat(Graph& graph, const std::string& name, std::vector<Output> inputs,
              const ConcatAttributes& attributes = {});

}  // namespace miniqat::layers
