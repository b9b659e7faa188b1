#include "layers/depthwise_conv2d.h"

#include "core/kernels/instruction_set.h"
#include "layers/convolution_op.h"
#include "layers/kernels/depthwise_kernels.h"

namespace miniqat::layers {
namespace {

// Our kernels were measured in turns with oneDNN's (whose grouped convolutions also take several filters a channel).
// Below AVX-512 oneDNN's win. With AVX-512 they win for most shapes, and lose (time of oneDNN's over ours)
// - in the gradient of the input with few channels: 1.15 to 1.35 at 16 to 64, 1.0 at 128, 0.9 at 256;
// - in the same gradient if it is strided and too large for the caches: 1.15 to 1.4 from 4 MiB on, 0.75 to 0.9 below;
// - in the gradient of the filter of tiny images: 20 (from 3x3 pixels on ours would take twice as long).

bool has_faster_input_gradient(const Shape& images, const Shape& filter, const DepthwiseConv2dAttributes& attributes) {
  constexpr std::int64_t kFewChannels = 64;
  constexpr std::int64_t kLarge = std::int64_t{1} << 20;
  if (filter[3] != 1 || instruction_set() != InstructionSet::kAvx512) return false;
  const bool strided = attributes.strides != std::array<std::int64_t, 2>{1, 1};
  return strided ? images.elements() >= kLarge : filter[2] <= kFewChannels;
}

bool has_faster_filter_gradient(const Shape& filter, const Window2d& window) {
  constexpr std::int64_t kTinyImage = 4;
  return filter[3] == 1 && window.rows.output * window.columns.output <= kTinyImage;
}

class DepthwiseConv2dOp final : public ConvolutionOp<DepthwiseConv2d, true> {
 public:
  using ConvolutionOp::ConvolutionOp;

  void backward(const BackwardContext& context) const override {
    const Tensor& x = context.forward->input(0);
    const Tensor& filter = context.forward->input(1);
    const Window2d window = window_of(x.shape(), filter.shape(), attributes_);
    const float* d_y = context.d_outputs[0]->data<float>();
    Tensor* d_x = context.d_inputs[0];
    if (d_x && has_faster_input_gradient(x.shape(), filter.shape(), attributes_))
      depthwise_backward_input(window, x.shape()[0], x.shape()[3], d_y, filter.data<float>(), d_x->data<float>());
    else
      convolution_backward_input(context, attributes_, true);
    Tensor* d_filter = context.d_inputs[1];
    if (d_filter && has_faster_filter_gradient(filter.shape(), window))
      depthwise_backward_filter(window, x.shape()[0], x.shape()[3], x.data<float>(), d_y, d_filter->data<float>());
    else
      convolution_backward_filter(context, attributes_, true);
  }
};

}  // namespace

std::shared_ptr<Op> DepthwiseConv2d::make(const Attributes& attributes) {
  return std::make_shared<DepthwiseConv2dOp>(attributes);
}

Output depthwise_conv2d(Graph& graph, const std::string& name, Output x, Output filter,
                        const DepthwiseConv2dAttributes& attributes) {
  return graph.add(name, DepthwiseConv2d::make(attributes), {x, filter}).output();
}

}  // namespace miniqat::layers
