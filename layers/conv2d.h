#pragma once

#include <array>
#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "core/graph/op_interfaces.h"
#include "core/window.h"

namespace miniqat::layers {

/// Each pair is [h, w].
struct Conv2dAttributes {
  std::array<std::int64_t, 2> strides = {1, 1};
  Padding padding = Padding::kSame;
  std::array<std::int64_t, 2> dilations = {1, 1};

  void visit(AttributeVisitor& visitor);
  friend bool operator==(const Conv2dAttributes&, const Conv2dAttributes&) = default;
};

/// 2-D convolution (cross-correlation, as everywhere in deep learning).
/// Inputs x [n, h, w, in] and filter [kh, kw, in, out]; output [n, oh, ow, out], all float32:
///   y[n, oy, ox, o] = sum over ky, kx, i of x[n, oy*stride - pad + ky*dilation, ox*stride - pad + kx*dilation, i]
///                                           * filter[ky, kx, i, o].
class Conv2d final : public Op, public MultipliesAndAdds {
 public:
  Conv2d() = default;
  explicit Conv2d(const Conv2dAttributes& attributes) : attributes_(attributes) {}
  const Conv2dAttributes& attributes() const { return attributes_; }

  std::string_view type() const override { return "Conv2D"; }
  void visit(AttributeVisitor& visitor) override { attributes_.visit(visitor); }
  std::unique_ptr<Op> clone() const override { return std::make_unique<Conv2d>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::int64_t multiply_adds(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;

 private:
  Conv2dAttributes attributes_;
};

/// The window that a filter [kh, kw, ...] lays over images [n, h, w, c]. Throws what slide() throws.
Window2d window_of(const Shape& images, const Shape& filter, const Conv2dAttributes& attributes);

// What Conv2D and DepthwiseConv2d have in common: inputs are an image and a filter, and oneDNN does the fast work, or
// layers/kernels/direct_convolution.h where that is faster.

std::vector<TensorSpec> infer_convolution(std::span<const TensorSpec> inputs, const Conv2dAttributes& attributes,
                                          bool depthwise);
void convolution_forward(const ForwardContext& context, const Conv2dAttributes& attributes, bool depthwise);
/// Each does nothing when nobody asks for its gradient.
void convolution_backward_input(const BackwardContext& context, const Conv2dAttributes& attributes, bool depthwise);
void convolution_backward_filter(const BackwardContext& context, const Conv2dAttributes& attributes, bool depthwise);

Output conv2d(Graph& graph, const std::string& name, Output x, Output filter, const Conv2dAttributes& attributes = {});

}  // namespace miniqat::layers
