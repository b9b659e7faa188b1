#pragma once

#include <limits>
#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

struct ClipAttributes {
  /// Stands for no bound.
  static constexpr double kMost = std::numeric_limits<float>::max();

  /// Rounded to float32, low below high. In [-kMost, kMost].
  double low = -1;
  double high = 1;

  void visit(AttributeVisitor& visitor);
};

/// y = min(max(x, low), high). Input x float32 of any shape; output like x. NaN stays NaN. The gradient is 0 where y is
/// low or high. Throws Error for an attribute out of range.
struct Clip {
  static constexpr std::string_view kType = "Clip";
  using Attributes = ClipAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output clip(Graph& graph, const std::string& name, Output x, const ClipAttributes& attributes = {});

}  // namespace miniqat::layers
