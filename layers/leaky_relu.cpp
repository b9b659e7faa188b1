#include "layers/leaky_relu.h"

#include "layers/reference/leaky_relu.h"
#include "layers/unary_op.h"

namespace miniqat::layers {
namespace {

// The output has the sign of the input, or is 0, for no alpha is negative. Comparisons are written so that NaN passes.
struct LeakyReluRule {
  using Reference = reference::LeakyReluRule;
  static constexpr bool kReadsOutput = true;
  explicit LeakyReluRule(const LeakyReluAttributes& attributes) : alpha(static_cast<float>(attributes.alpha)) {}
  float value(float x) const { return x < 0 ? alpha * x : x; }
  float d_x(float d, float y) const { return y > 0 ? d : alpha * d; }

  float alpha;
};

class LeakyReluOp final : public UnaryOp<LeakyRelu, LeakyReluRule> {
 public:
  using UnaryOp::UnaryOp;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    constexpr double kMost = 1e30;
    if (!(attributes_.alpha >= 0 && attributes_.alpha <= kMost))
      fail("alpha must be in [0, ", kMost, "], is ", attributes_.alpha);
    return UnaryOp::infer(inputs);
  }
};

}  // namespace

void LeakyReluAttributes::visit(AttributeVisitor& visitor) { visitor.field("alpha", alpha); }

std::shared_ptr<Op> LeakyRelu::make(const Attributes& attributes) { return std::make_shared<LeakyReluOp>(attributes); }

Output leaky_relu(Graph& graph, const std::string& name, Output x, const LeakyReluAttributes& attributes) {
  return graph.add(name, LeakyRelu::make(attributes), {x}).output();
}

}  // namespace miniqat::layers
