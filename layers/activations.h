#pragma once

#include <limits>
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

inline Output relu(Graph& graph, const std::string& name, Output x) { return graph.add<Relu>(name, {x}); }
inline Output relu6(Graph& graph, const std::string& name, Output x) { return graph.add<Relu6>(name, {x}); }

struct ClipAttributes {
  /// Stands for no bound.
  static constexpr double kMost = std::numeric_limits<float>::max();

  /// Rounded to float32, low below high. In [-kMost, kMost].
  double low = -1;
  double high = 1;

  void visit(AttributeVisitor& visitor) {
    visitor.field("low", low);
    visitor.field("high", high);
  }
};

/// y = min(max(x, low), high). Input x float32 of any shape; output like x. NaN stays NaN. The gradient is 0 where y is
/// low or high. Throws Error for an attribute out of range.
struct Clip {
  static constexpr std::string_view kType = "Clip";
  using Attributes = ClipAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output clip(Graph& graph, const std::string& name, Output x, const ClipAttributes& attributes = {}) {
  return graph.add<Clip>(name, {x}, attributes);
}

struct HardSigmoidAttributes {
  /// The slope of the line, rounded to float32. In [-1e30, 1e30].
  double alpha = 1.0 / 6;
  /// The curve's height at 0, rounded to float32. In [-1e30, 1e30].
  double beta = 0.5;

  void visit(AttributeVisitor& visitor) {
    visitor.field("alpha", alpha);
    visitor.field("beta", beta);
  }
};

/// y = alpha x + beta, held within [0, 1]; with the defaults relu6(x + 3) / 6 (Howard et al., Searching for
/// MobileNetV3, section 5.2). Input x float32 of any shape; output like x. NaN stays NaN. The gradient is 0 where y is
/// 0 or 1. Throws Error for an attribute out of range.
struct HardSigmoid {
  static constexpr std::string_view kType = "HardSigmoid";
  using Attributes = HardSigmoidAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output hard_sigmoid(Graph& graph, const std::string& name, Output x,
                           const HardSigmoidAttributes& attributes = {}) {
  return graph.add<HardSigmoid>(name, {x}, attributes);
}

/// y = x * relu6(x + 3) / 6: 0 up to -3, x from 3 on (Howard et al., Searching for MobileNetV3, section 5.2). Input x
/// float32 of any shape; output like x. NaN stays NaN. The gradient is 0 at -3 and 1 at 3.
struct HardSwish {
  static constexpr std::string_view kType = "HardSwish";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output hard_swish(Graph& graph, const std::string& name, Output x) { return graph.add<HardSwish>(name, {x}); }

struct LeakyReluAttributes {
  /// The slope below 0, rounded to float32. In [0, 1e30].
  double alpha = 0.01;

  void visit(AttributeVisitor& visitor) { visitor.field("alpha", alpha); }
};

/// y = x, or alpha x where x is below 0 (Maas et al. 2013, Rectifier nonlinearities improve neural network acoustic
/// models, section 2). Input x float32 of any shape; output like x. NaN stays NaN. The gradient at 0 is alpha. Throws
/// Error for an alpha out of range.
struct LeakyRelu {
  static constexpr std::string_view kType = "LeakyRelu";
  using Attributes = LeakyReluAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output leaky_relu(Graph& graph, const std::string& name, Output x, const LeakyReluAttributes& attributes = {}) {
  return graph.add<LeakyRelu>(name, {x}, attributes);
}

/// y = 1 / (1 + e^-x), in [0, 1]. Input x float32 of any shape; output like x. NaN stays NaN.
struct Sigmoid {
  static constexpr std::string_view kType = "Sigmoid";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output sigmoid(Graph& graph, const std::string& name, Output x) { return graph.add<Sigmoid>(name, {x}); }

}  // namespace miniqat::layers
