#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "core/graph/op_interfaces.h"
#include "layers/conv2d.h"

namespace miniqat::layers {

using DepthwiseConv2dAttributes = Conv2dAttributes;

/// Convolves every channel by itself, with `multiplier` filters each.
/// Inputs x [n, h, w, in] and filter [kh, kw, in, multiplier]; output [n, oh, ow, in * multiplier], all float32:
///   y[n, oy, ox, i*multiplier + m] = sum over ky, kx of x[n, oy*stride - pad + ky*dilation, ..., i]
///                                                       * filter[ky, kx, i, m].
class DepthwiseConv2d final : public Op, public MultipliesAndAdds {
 public:
  DepthwiseConv2d() = default;
  explicit DepthwiseConv2d(const DepthwiseConv2dAttributes& attributes) : attributes_(attributes) {}
  const DepthwiseConv2dAttributes& attributes() const { return attributes_; }

  std::string_view type() const override { return "DepthwiseConv2d"; }
  void visit(AttributeVisitor& visitor) override { attributes_.visit(visitor); }
  std::unique_ptr<Op> clone() const override { return std::make_unique<DepthwiseConv2d>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::int64_t multiply_adds(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;

 private:
  DepthwiseConv2dAttributes attributes_;
};

Output depthwise_conv2d(Graph& graph, const std::string& name, Output x, Output filter,
                        const DepthwiseConv2dAttributes& attributes = {});

}  // namespace miniqat::layers
