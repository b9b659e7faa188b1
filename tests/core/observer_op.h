#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>

#include "core/graph/op.h"
#include "core/graph/source_ops.h"

namespace miniqat::testing {

struct ObserverAttributes {
  std::int64_t delay = 0;
};

/// A minimal quantizer: y = -x once its delay has passed, x before. In training it adds the sum of x to its input 1, a
/// Variable, and 1 to its state "calls".
class ObserverOp final : public Op {
 public:
  explicit ObserverOp(const ObserverAttributes& attributes) : attributes_(attributes) {}
  std::string_view type() const override { return "Observer"; }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override { return {inputs[0]}; }

  OpTraits traits() const override {
    OpTraits traits;
    traits.no_gradient = {1};
    traits.updated_inputs = {1};
    traits.updates_start_anew = true;
    traits.state = {{"calls", Shape{}, 0}};
    traits.delays = {attributes_.delay};
    return traits;
  }

  void forward(const ForwardContext& context) const override {
    const auto x = context.input(0).values<float>();
    const float sign = negates(context) ? -1 : 1;
    std::ranges::transform(x, context.output(0).data<float>(), [=](float value) { return sign * value; });
    if (!context.training) return;
    *context.update_of(1)->data<float>() += std::accumulate(x.begin(), x.end(), 0.0f);
    *context.state[0]->data<float>() += 1;
  }

  void backward(const BackwardContext& context) const override {
    const float sign = negates(*context.forward) ? -1 : 1;
    if (Tensor* d_x = context.d_inputs[0])
      std::ranges::transform(context.d_outputs[0]->values<float>(), d_x->data<float>(),
                             [=](float value) { return sign * value; });
  }

  void reference_forward(const ForwardContext& context) const override { forward(context); }
  void reference_backward(const BackwardContext& context) const override { backward(context); }

 private:
  bool negates(const Phase& phase) const { return phase.quantization_step >= attributes_.delay; }

  ObserverAttributes attributes_;
};

/// By default it never quantizes in a test's few steps.
inline Output observer(Graph& graph, const std::string& name, Output x,
                       ObserverAttributes attributes = {.delay = 100}) {
  const Output total = variable(graph, name + "/total", {}, Initializer::constant(0), false);
  return graph.add(name, std::make_unique<ObserverOp>(attributes), {x, total}).output();
}

}  // namespace miniqat::testing
