#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

/// y = x * relu6(x + 3) / 6: 0 up to -3, x from 3 on (Howard et al., Searching for MobileNetV3, section 5.2). Input x
/// float32 of any shape; output like x. NaN stays NaN. The gradient is 0 at -3 and 1 at 3.
class HardSwish final : public Op {
 public:
  std::string_view type() const override { return "HardSwish"; }
  void visit(AttributeVisitor&) override {}
  std::unique_ptr<Op> clone() const override { return std::make_unique<HardSwish>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

Output hard_swish(Graph& graph, const std::string& name, Output x);

}  // namespace miniqat::layers
