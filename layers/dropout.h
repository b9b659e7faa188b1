#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

struct DropoutAttributes {
  /// The share of elements that are dropped, in [0, 1).
  double rate = 0.5;

  void visit(AttributeVisitor& visitor) { visitor.field("rate", rate); }
};

/// In training y = x * mask / (1 - rate), where mask is 0 with probability `rate` and else 1 (inverted dropout,
/// Srivastava et al. 2014, section 10); y = x otherwise. Input x float32 of any shape; output like x.
/// Whether element i is dropped depends on the session's seed, the node's name, the step and i only.
struct Dropout {
  static constexpr std::string_view kType = "Dropout";
  using Attributes = DropoutAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output dropout(Graph& graph, const std::string& name, Output x, const DropoutAttributes& attributes = {}) {
  return graph.add<Dropout>(name, {x}, attributes);
}

}  // namespace miniqat::layers
