#include "layers/relu.h"

#include "core/graph/node_check.h"
#include "layers/chain/chain_fusion.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/relu.h"

namespace miniqat::layers {
namespace {

std::vector<TensorSpec> like_input(std::span<const TensorSpec> inputs) {
  require_inputs(inputs, 1);
  require_float(inputs);
  return {inputs[0]};
}

/// The output tells where the gradient passes, so forward may write over the input.
OpTraits activation_traits() {
  OpTraits traits;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  traits.backward_outputs = {0};
  return traits;
}

}  // namespace

std::vector<TensorSpec> Relu::infer(std::span<const TensorSpec> inputs) const { return like_input(inputs); }

OpTraits Relu::traits() const { return activation_traits(); }

// Comparisons are written so that NaN fails them and passes through.

std::optional<Fusion> Relu::fuse(const Node& self, const FusionScope& scope) const { return fuse_chain(self, scope); }

void Relu::forward(const ForwardContext& context) const {
  pointwise(context.input(0), context.output(0), [](float x) { return x < 0 ? 0 : x; });
}

void Relu::backward(const BackwardContext& context) const {
  if (Tensor* d_x = context.d_inputs[0])
    pointwise(*context.d_outputs[0], context.forward->output(0), *d_x, [](float d, float y) { return y > 0 ? d : 0; });
}

void Relu::reference_forward(const ForwardContext& context) const {
  const Tensor& x = context.input(0);
  with_float_type(x, [&]<class T>(T) { reference::relu(x.elements(), x.data<T>(), context.output(0).data<T>()); });
}

void Relu::reference_backward(const BackwardContext& context) const {
  const Tensor& x = context.forward->input(0);
  if (Tensor* d_x = context.d_inputs[0])
    with_float_type(x, [&]<class T>(T) {
      reference::relu_d_x(x.elements(), x.data<T>(), context.d_outputs[0]->data<T>(), d_x->data<T>());
    });
}

std::vector<TensorSpec> Relu6::infer(std::span<const TensorSpec> inputs) const { return like_input(inputs); }

OpTraits Relu6::traits() const { return activation_traits(); }

std::optional<Fusion> Relu6::fuse(const Node& self, const FusionScope& scope) const { return fuse_chain(self, scope); }

void Relu6::forward(const ForwardContext& context) const {
  pointwise(context.input(0), context.output(0), [](float x) {
    const float positive = x < 0 ? 0 : x;
    return positive > 6 ? 6 : positive;
  });
}

void Relu6::backward(const BackwardContext& context) const {
  if (Tensor* d_x = context.d_inputs[0])
    pointwise(*context.d_outputs[0], context.forward->output(0), *d_x,
              [](float d, float y) { return (y > 0) & (y < 6) ? d : 0; });
}

void Relu6::reference_forward(const ForwardContext& context) const {
  const Tensor& x = context.input(0);
  with_float_type(x, [&]<class T>(T) { reference::relu6(x.elements(), x.data<T>(), context.output(0).data<T>()); });
}

void Relu6::reference_backward(const BackwardContext& context) const {
  const Tensor& x = context.forward->input(0);
  if (Tensor* d_x = context.d_inputs[0])
    with_float_type(x, [&]<class T>(T) {
      reference::relu6_d_x(x.elements(), x.data<T>(), context.d_outputs[0]->data<T>(), d_x->data<T>());
    });
}

Output relu(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, std::make_unique<Relu>(), {x}).output();
}

Output relu6(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, std::make_unique<Relu6>(), {x}).output();
}

}  // namespace miniqat::layers
