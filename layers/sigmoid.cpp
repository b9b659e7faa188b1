#include "layers/sigmoid.h"

#include <cmath>

#include "core/graph/node_check.h"
#include "core/graph/op.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/sigmoid.h"

namespace miniqat::layers {

class SigmoidOp final : public OpOf<Sigmoid> {
 public:
  using OpOf::OpOf;
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

std::shared_ptr<Op> Sigmoid::make(const Attributes& attributes) { return std::make_shared<SigmoidOp>(attributes); }

std::vector<TensorSpec> SigmoidOp::infer(std::span<const TensorSpec> inputs) const {
  require_inputs(inputs, 1);
  require_float(inputs);
  return {inputs[0]};
}

/// The output gives the gradient, so forward may write over the input.
OpTraits SigmoidOp::traits() const {
  OpTraits traits;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  traits.backward_outputs = {0};
  return traits;
}

// e^-|x| never overflows, and below 0 it keeps the digits that 1 + e^-x would round away. The loop is the same on every
// instruction set, and std::exp one call an element: a vectorised one would have other bits on some.
void SigmoidOp::forward(const ForwardContext& context) const {
  pointwise(context.input(0), context.output(0), [](float x) {
    const float e = std::exp(-std::abs(x));
    return (x < 0 ? e : 1.0f) / (1 + e);
  });
}

void SigmoidOp::backward(const BackwardContext& context) const {
  if (Tensor* d_x = context.d_inputs[0])
    pointwise(*context.d_outputs[0], context.forward->output(0), *d_x,
              [](float d, float y) { return d * y * (1 - y); });
}

void SigmoidOp::reference_forward(const ForwardContext& context) const {
  const Tensor& x = context.input(0);
  with_float_type(x, [&]<class T>(T) { reference::sigmoid(x.elements(), x.data<T>(), context.output(0).data<T>()); });
}

void SigmoidOp::reference_backward(const BackwardContext& context) const {
  const Tensor& x = context.forward->input(0);
  if (Tensor* d_x = context.d_inputs[0])
    with_float_type(x, [&]<class T>(T) {
      reference::sigmoid_d_x(x.elements(), x.data<T>(), context.d_outputs[0]->data<T>(), d_x->data<T>());
    });
}

Output sigmoid(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, Sigmoid::make(), {x}).output();
}

}  // namespace miniqat::layers
