#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

/// y = 1 / (1 + e^-x), in [0, 1]. Input x float32 of any shape; output like x. NaN stays NaN.
struct Sigmoid {
  static constexpr std::string_view kType = "Sigmoid";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output sigmoid(Graph& graph, const std::string& name, Output x);

}  // namespace miniqat::layers
