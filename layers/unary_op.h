#pragma once

#include <type_traits>
#include <vector>

#include "core/graph/op.h"
#include "layers/kernels/pointwise.h"

namespace miniqat::layers {

/// An elementwise function: one float tensor of any shape, output like it. `Rule` is the function in float32:
///   float value(float x)                    y
///   float d_x(float d, float v)             y' times d, the gradient that arrives, from y if kReadsOutput, else from x
///   static constexpr bool kReadsOutput
///   Reference                               what specifies it: value(x) and d_x(d, x), for float and double
/// Both are made of the op's attributes if they have a constructor for them; without one their functions are static.
template <class Kind, class Rule>
class UnaryOp : public OpOf<Kind> {
 public:
  using OpOf<Kind>::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    require_float(inputs);
    return {inputs[0]};
  }

  /// An output that gives the gradient lets forward write over the input.
  OpTraits traits() const final {
    OpTraits traits{.forward_in_place = true, .backward_in_place = true};
    (Rule::kReadsOutput ? traits.backward_outputs : traits.backward_inputs) = {0};
    return traits;
  }

  void forward(const ForwardContext& context) const final {
    pointwise(context.input(0), context.output(0), [rule = made<Rule>()](float x) { return rule.value(x); });
  }

  void backward(const BackwardContext& context) const final {
    const ForwardContext& forward = *context.forward;
    const Tensor& v = Rule::kReadsOutput ? forward.output(0) : forward.input(0);
    if (Tensor* d_x = context.d_inputs[0])
      pointwise(*context.d_outputs[0], v, *d_x, [rule = made<Rule>()](float d, float v) { return rule.d_x(d, v); });
  }

  void reference_forward(const ForwardContext& context) const final {
    with_float_type(context.input(0), [&]<class T>(T) {
      const std::span<const T> x = context.input(0).values<T>();
      T* y = context.output(0).data<T>();
      const auto rule = made<typename Rule::Reference>();
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = rule.value(x[i]);
    });
  }

  void reference_backward(const BackwardContext& context) const final {
    if (context.d_inputs[0] == nullptr) return;
    with_float_type(*context.d_outputs[0], [&]<class T>(T) {
      const std::span<const T> x = context.forward->input(0).values<T>();
      const T* d_y = context.d_outputs[0]->data<T>();
      T* d_x = context.d_inputs[0]->data<T>();
      const auto rule = made<typename Rule::Reference>();
      for (std::size_t i = 0; i < x.size(); ++i) d_x[i] = rule.d_x(d_y[i], x[i]);
    });
  }

 private:
  template <class Made>
  Made made() const {
    if constexpr (std::is_constructible_v<Made, const typename Kind::Attributes&>)
      return Made(this->attributes_);
    else
      return Made{};
  }
};

}  // namespace miniqat::layers
