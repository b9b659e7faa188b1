#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

/// y = x * relu6(x + 3) / 6: 0 up to -3, x from 3 on (Howard et al., Searching for MobileNetV3, section 5.2). Input x
/// float32 of any shape; output like x. NaN stays NaN. The gradient is 0 at -3 and 1 at 3.
struct HardSwish {
  static constexpr std::string_view kType = "HardSwish";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output hard_swish(Graph& graph, const std::string& name, Output x);

}  // namespace miniqat::layers
