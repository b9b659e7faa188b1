#pragma once

#include "core/graph/op_interfaces.h"
#include "layers/conv2d.h"
#include "layers/reference/conv2d.h"

namespace miniqat::layers {

// What Conv2D and DepthwiseConv2d share. oneDNN does the fast work, or layers/kernels/direct_convolution.h where that
// is faster.

std::vector<TensorSpec> infer_convolution(std::span<const TensorSpec> inputs, const Conv2dAttributes& attributes,
                                          bool depthwise);
void convolution_forward(const ForwardContext& context, const Conv2dAttributes& attributes, bool depthwise);
/// Each does nothing when nobody asks for its gradient.
void convolution_backward_input(const BackwardContext& context, const Conv2dAttributes& attributes, bool depthwise);
void convolution_backward_filter(const BackwardContext& context, const Conv2dAttributes& attributes, bool depthwise);

template <class Kind, bool kDepthwise>
class ConvolutionOp : public OpOf<Kind>, public MultipliesAndAdds {
 public:
  using OpOf<Kind>::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const final {
    return infer_convolution(inputs, attributes_, kDepthwise);
  }

  OpTraits traits() const final {
    OpTraits traits;
    traits.backward_inputs = {0, 1};
    traits.gradient_over_input = 1;
    return traits;
  }

  std::int64_t multiply_adds(std::span<const TensorSpec> inputs) const final {
    const Shape& filter = inputs[1].shape;
    return infer(inputs)[0].shape.elements() * filter[0] * filter[1] * (kDepthwise ? 1 : filter[2]);
  }

  void forward(const ForwardContext& context) const final { convolution_forward(context, attributes_, kDepthwise); }

  void backward(const BackwardContext& context) const override {
    convolution_backward_input(context, attributes_, kDepthwise);
    convolution_backward_filter(context, attributes_, kDepthwise);
  }

  void reference_forward(const ForwardContext& context) const final {
    const Tensor& x = context.input(0);
    const Tensor& filter = context.input(1);
    with_float_type(x, [&]<class T>(T) {
      reference::conv2d(reference_geometry(x, filter), x.data<T>(), filter.data<T>(), context.output(0).values<T>());
    });
  }

  void reference_backward(const BackwardContext& context) const final {
    const Tensor& x = context.forward->input(0);
    const Tensor& filter = context.forward->input(1);
    with_float_type(x, [&]<class T>(T) {
      const T* d_y = context.d_outputs[0]->data<T>();
      if (Tensor* d_x = context.d_inputs[0])
        reference::conv2d_backward_input(reference_geometry(x, filter), d_y, filter.data<T>(), d_x->values<T>());
      if (Tensor* d_filter = context.d_inputs[1])
        reference::conv2d_backward_filter(reference_geometry(x, filter), x.data<T>(), d_y, d_filter->values<T>());
    });
  }

 protected:
  using OpOf<Kind>::attributes_;

 private:
  reference::Convolution reference_geometry(const Tensor& x, const Tensor& filter) const {
    return {window_of(x.shape(), filter.shape(), attributes_), x.shape(), filter.shape(), kDepthwise};
  }
};

}  // namespace miniqat::layers
