#include "layers/hard_sigmoid.h"

#include <cmath>

#include "layers/reference/hard_sigmoid.h"
#include "layers/unary_op.h"

namespace miniqat::layers {
namespace {

// Comparisons are written so that NaN passes.
struct HardSigmoidRule {
  using Reference = reference::HardSigmoidRule;
  static constexpr bool kReadsOutput = true;
  explicit HardSigmoidRule(const HardSigmoidAttributes& attributes)
      : alpha(static_cast<float>(attributes.alpha)), beta(static_cast<float>(attributes.beta)) {}
  float value(float x) const {
    const float line = alpha * x + beta;
    const float raised = line < 0 ? 0 : line;
    return raised > 1 ? 1 : raised;
  }
  float d_x(float d, float y) const {
    const float slope = y <= 0 ? 0 : alpha;
    return y >= 1 ? 0 : d * slope;
  }

  float alpha, beta;
};

class HardSigmoidOp final : public UnaryOp<HardSigmoid, HardSigmoidRule> {
 public:
  using UnaryOp::UnaryOp;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    constexpr double kMost = 1e30;
    const auto& [alpha, beta] = attributes_;
    if (!(std::abs(alpha) <= kMost)) fail("alpha must be in [-", kMost, ", ", kMost, "], is ", alpha);
    if (!(std::abs(beta) <= kMost)) fail("beta must be in [-", kMost, ", ", kMost, "], is ", beta);
    return UnaryOp::infer(inputs);
  }
};

}  // namespace

void HardSigmoidAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("alpha", alpha);
  visitor.field("beta", beta);
}

std::shared_ptr<Op> HardSigmoid::make(const Attributes& attributes) {
  return std::make_shared<HardSigmoidOp>(attributes);
}

Output hard_sigmoid(Graph& graph, const std::string& name, Output x, const HardSigmoidAttributes& attributes) {
  return graph.add(name, HardSigmoid::make(attributes), {x}).output();
}

}  // namespace miniqat::layers
