#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::layers {

struct PadAttributes {
  /// [before, after] for every axis of the input, none negative.
  std::vector<std::array<std::int64_t, 2>> paddings;

  void visit(AttributeVisitor& visitor);
};

/// Surrounds x, float32, with zeros: extent e of an axis becomes before + e + after.
struct Pad {
  static constexpr std::string_view kType = "Pad";
  using Attributes = PadAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output pad(Graph& graph, const std::string& name, Output x, const PadAttributes& attributes);

}  // namespace miniqat::layers
