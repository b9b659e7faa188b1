#include "layers/clip.h"

#include <cmath>

#include "layers/reference/clip.h"
#include "layers/unary_op.h"

namespace miniqat::layers {
namespace {

// Comparisons are written so that NaN passes.
struct ClipRule {
  using Reference = reference::ClipRule;
  static constexpr bool kReadsOutput = true;
  explicit ClipRule(const ClipAttributes& attributes)
      : low(static_cast<float>(attributes.low)), high(static_cast<float>(attributes.high)) {}
  float value(float x) const {
    const float raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
  float d_x(float d, float y) const { return ((y > low) & (y < high)) ? d : 0; }

  float low, high;
};

class ClipOp final : public UnaryOp<Clip, ClipRule> {
 public:
  using UnaryOp::UnaryOp;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    const auto& [low, high] = attributes_;
    constexpr double kMost = ClipAttributes::kMost;
    if (!(std::abs(low) <= kMost)) fail("low must be in [", -kMost, ", ", kMost, "], is ", low);
    if (!(std::abs(high) <= kMost)) fail("high must be in [", -kMost, ", ", kMost, "], is ", high);
    if (!(static_cast<float>(low) < static_cast<float>(high)))
      fail("low must be less than high; low ", low, ", high ", high);
    return UnaryOp::infer(inputs);
  }
};

}  // namespace

void ClipAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("low", low);
  visitor.field("high", high);
}

std::shared_ptr<Op> Clip::make(const Attributes& attributes) { return std::make_shared<ClipOp>(attributes); }

Output clip(Graph& graph, const std::string& name, Output x, const ClipAttributes& attributes) {
  return graph.add(name, Clip::make(attributes), {x}).output();
}

}  // namespace miniqat::layers
