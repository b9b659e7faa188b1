#include "layers/relu.h"

#include "core/float_range.h"
#include "core/graph/node_check.h"
#include "layers/chain/chain_fusion.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/relu.h"

namespace miniqat::layers {

class ReluOp final : public OpOf<Relu>, public ChainMember {
 public:
  using OpOf::OpOf;
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::optional<ChainRole> chain_role() const override { return chain_role::Clamp{.high = kInfinity}; }
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

class Relu6Op final : public OpOf<Relu6>, public ChainMember {
 public:
  using OpOf::OpOf;
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::optional<ChainRole> chain_role() const override { return chain_role::Clamp{.high = 6}; }
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

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

std::shared_ptr<Op> Relu::make(const Attributes& attributes) { return std::make_shared<ReluOp>(attributes); }

std::vector<TensorSpec> ReluOp::infer(std::span<const TensorSpec> inputs) const { return like_input(inputs); }

OpTraits ReluOp::traits() const { return activation_traits(); }

// Comparisons are written so that NaN fails them and passes through.

void ReluOp::forward(const ForwardContext& context) const {
  pointwise(context.input(0), context.output(0), [](float x) { return x < 0 ? 0 : x; });
}

void ReluOp::backward(const BackwardContext& context) const {
  if (Tensor* d_x = context.d_inputs[0])
    pointwise(*context.d_outputs[0], context.forward->output(0), *d_x, [](float d, float y) { return y > 0 ? d : 0; });
}

void ReluOp::reference_forward(const ForwardContext& context) const {
  const Tensor& x = context.input(0);
  with_float_type(x, [&]<class T>(T) { reference::relu(x.elements(), x.data<T>(), context.output(0).data<T>()); });
}

void ReluOp::reference_backward(const BackwardContext& context) const {
  const Tensor& x = context.forward->input(0);
  if (Tensor* d_x = context.d_inputs[0])
    with_float_type(x, [&]<class T>(T) {
      reference::relu_d_x(x.elements(), x.data<T>(), context.d_outputs[0]->data<T>(), d_x->data<T>());
    });
}

std::shared_ptr<Op> Relu6::make(const Attributes& attributes) { return std::make_shared<Relu6Op>(attributes); }

std::vector<TensorSpec> Relu6Op::infer(std::span<const TensorSpec> inputs) const { return like_input(inputs); }

OpTraits Relu6Op::traits() const { return activation_traits(); }

void Relu6Op::forward(const ForwardContext& context) const {
  pointwise(context.input(0), context.output(0), [](float x) {
    const float positive = x < 0 ? 0 : x;
    return positive > 6 ? 6 : positive;
  });
}

void Relu6Op::backward(const BackwardContext& context) const {
  if (Tensor* d_x = context.d_inputs[0])
    pointwise(*context.d_outputs[0], context.forward->output(0), *d_x,
              [](float d, float y) { return (y > 0) & (y < 6) ? d : 0; });
}

void Relu6Op::reference_forward(const ForwardContext& context) const {
  const Tensor& x = context.input(0);
  with_float_type(x, [&]<class T>(T) { reference::relu6(x.elements(), x.data<T>(), context.output(0).data<T>()); });
}

void Relu6Op::reference_backward(const BackwardContext& context) const {
  const Tensor& x = context.forward->input(0);
  if (Tensor* d_x = context.d_inputs[0])
    with_float_type(x, [&]<class T>(T) {
      reference::relu6_d_x(x.elements(), x.data<T>(), context.d_outputs[0]->data<T>(), d_x->data<T>());
    });
}

Output relu(Graph& graph, const std::string& name, Output x) { return graph.add(name, Relu::make(), {x}).output(); }

Output relu6(Graph& graph, const std::string& name, Output x) { return graph.add(name, Relu6::make(), {x}).output(); }

}  // namespace miniqat::layers
