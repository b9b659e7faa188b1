#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

struct LeakyReluAttributes {
  /// The slope below 0, rounded to float32. In [0, 1e30].
  double alpha = 0.01;

  void visit(AttributeVisitor& visitor);
};

/// y = x, or alpha x where x is below 0 (Maas et al. 2013, Rectifier nonlinearities improve neural network acoustic
/// models, section 2). Input x float32 of any shape; output like x. NaN stays NaN. The gradient at 0 is alpha. Throws
/// Error for an alpha out of range.
struct LeakyRelu {
  static constexpr std::string_view kType = "LeakyRelu";
  using Attributes = LeakyReluAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output leaky_relu(Graph& graph, const std::string& name, Output x, const LeakyReluAttributes& attributes = {});

}  // namespace miniqat::layers
