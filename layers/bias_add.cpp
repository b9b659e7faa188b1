#include "layers/bias_add.h"

#include <algorithm>

#include "core/graph/node_check.h"
#include "layers/chain/chain_fusion.h"
#include "layers/chain/chain_kernels.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/bias_add.h"

namespace miniqat::layers {
namespace {

class BiasAddOp final : public OpOf<BiasAdd>, public ChainMember {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 2);
    require_float(inputs);
    require_rank(inputs, 1, 1, "bias");
    const Shape& x = inputs[0].shape;
    const Shape& bias = inputs[1].shape;
    if (x.rank() < 1) fail("x needs a channel axis; x ", x, ", bias ", bias);
    if (x.channels() != bias[0])
      fail("bias has ", bias[0], " channels, x has ", x.channels(), "; x ", x, ", bias ", bias);
    return {inputs[0]};
  }

  OpTraits traits() const override {
    OpTraits traits;
    traits.forward_in_place = true;
    traits.backward_in_place = true;
    return traits;
  }

  std::optional<ChainRole> chain_role() const override { return chain_role::Bias{}; }

  void forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& bias = context.input(1);
    ScratchScope scope;
    chain_forward({.x = x.data<float>(),
                   .y = context.output(0).data<float>(),
                   .n = x.elements(),
                   .map = {.offset = ChannelRow(scope, bias.values<float>()).data(),
                           .width = ChannelRow::width(bias.elements())}});
  }

  void backward(const BackwardContext& context) const override {
    const Tensor& d_y = *context.d_outputs[0];
    const std::int64_t channels = d_y.shape().channels();
    Tensor *d_x = context.d_inputs[0], *d_bias = context.d_inputs[1];
    ScratchScope scope;
    const ChainTotals totals = chain_backward({.d_y = d_y.data<float>(),
                                               .n = d_y.elements(),
                                               .width = ChannelRow::width(channels),
                                               .d_x = d_x == nullptr ? nullptr : d_x->data<float>()},
                                              channels, d_bias != nullptr, false, scope);
    if (d_bias != nullptr) std::ranges::copy(totals.sums, d_bias->data<float>());
  }

  void reference_forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    with_float_type(x, [&]<class T>(T) {
      reference::bias_add(rows_of(x), x.shape().channels(), x.data<T>(), context.input(1).data<T>(),
                          context.output(0).data<T>());
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    const Tensor& d_y = *context.d_outputs[0];
    if (Tensor* d_bias = context.d_inputs[1]) {
      with_float_type(d_y, [&]<class T>(T) {
        reference::bias_add_d_bias(rows_of(d_y), d_bias->elements(), d_y.data<T>(), d_bias->data<T>());
      });
    }
    if (Tensor* d_x = context.d_inputs[0]) copy_elements(d_y, *d_x);
  }
};

}  // namespace

std::shared_ptr<Op> BiasAdd::make(const Attributes& attributes) { return std::make_shared<BiasAddOp>(attributes); }

Output bias_add(Graph& graph, const std::string& name, Output x, Output bias) {
  return graph.add(name, BiasAdd::make(), {x, bias}).output();
}

}  // namespace miniqat::layers
