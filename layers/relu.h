#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

/// y = max(x, 0). Input x float32 of any shape; output like x. NaN stays NaN. The gradient at 0 is 0.
struct Relu {
  static constexpr std::string_view kType = "Relu";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

/// y = min(max(x, 0), 6). Input x float32 of any shape; output like x. NaN stays NaN. The gradient at 0 and 6 is 0.
struct Relu6 {
  static constexpr std::string_view kType = "Relu6";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output relu(Graph& graph, const std::string& name, Output x);
Output relu6(Graph& graph, const std::string& name, Output x);

}  // namespace miniqat::layers
