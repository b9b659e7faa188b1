#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::layers {

/// y = x, of any shape and dtype, as a view: it costs nothing.
struct Identity {
  static constexpr std::string_view kType = "Identity";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output identity(Graph& graph, const std::string& name, Output x) { return graph.add<Identity>(name, {x}); }

struct ReshapeAttributes {
  /// One extent may be -1: what is left of the elements.
  std::vector<std::int64_t> shape;

  void visit(AttributeVisitor& visitor) { visitor.field("shape", shape); }
};

/// The input's elements, of any dtype, under another shape, as a view: it costs nothing. Throws Error with both shapes
/// while building when the numbers of elements differ.
struct Reshape {
  static constexpr std::string_view kType = "Reshape";
  using Attributes = ReshapeAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output reshape(Graph& graph, const std::string& name, Output x, const ReshapeAttributes& attributes) {
  return graph.add<Reshape>(name, {x}, attributes);
}

}  // namespace miniqat::layers
