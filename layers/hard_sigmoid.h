#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

struct HardSigmoidAttributes {
  /// The slope of the line, rounded to float32. In [-1e30, 1e30].
  double alpha = 1.0 / 6;
  /// The line's height at 0, rounded to float32. In [-1e30, 1e30].
  double beta = 0.5;

  void visit(AttributeVisitor& visitor);
};

/// y = alpha x + beta, held within [0, 1]; with the defaults relu6(x + 3) / 6 (Howard et al., Searching for
/// MobileNetV3, section 5.2). Input x float32 of any shape; output like x. NaN stays NaN. The gradient is 0 where y is
/// 0 or 1. Throws Error for an attribute out of range.
struct HardSigmoid {
  static constexpr std::string_view kType = "HardSigmoid";
  using Attributes = HardSigmoidAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output hard_sigmoid(Graph& graph, const std::string& name, Output x, const HardSigmoidAttributes& attributes = {});

}  // namespace miniqat::layers
