#include "layers/dropout.h"

#include <cmath>

#include "core/graph/op.h"
#include "core/kernels/instruction_set.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/dropout.h"

namespace miniqat::layers {
namespace {

/// The result for an element: its random word below the threshold drops it, else it is multiplied by `scale`.
struct Drop {
  /// The halves of the key.
  std::uint32_t low;
  std::uint32_t high;
  std::uint32_t threshold;
  float scale;
};

#define MINIQAT_LOOPS "layers/kernels/dropout_loops.h"
#include "core/kernels/per_instruction_set.h"

/// The number of the first element in the whole batch.
std::int64_t first_element(const ForwardContext& context) { return context.slice * context.input(0).elements(); }

/// y = x * mask / (1 - rate). The mask is drawn again in backward: cheaper than keeping it. y may be x.
void drop(const Tensor& from, double rate, const ForwardContext& context, Tensor& to) {
  const std::uint64_t key = context.random_key;
  const std::int64_t first = first_element(context);
  const Drop settings = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32),
                         static_cast<std::uint32_t>(std::ldexp(rate, 32)), static_cast<float>(1 / (1 - rate))};
  const std::int64_t n = to.elements();
  const float* x = from.data<float>();
  float* y = to.data<float>();
  const auto loop = MINIQAT_PICK(drop);
  parallel_for(n, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    loop(settings, x + begin, y + begin, static_cast<std::uint32_t>(first + begin),
         static_cast<std::uint32_t>(end - begin));
  });
}

class DropoutOp final : public OpOf<Dropout> {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    require_float(inputs);
    if (!(attributes_.rate >= 0 && attributes_.rate < 1)) fail("rate must be in [0, 1), is ", attributes_.rate);
    return {inputs[0]};
  }

  OpTraits traits() const override { return {.forward_in_place = true, .backward_in_place = true}; }

  void forward(const ForwardContext& context) const override {
    if (context.training)
      drop(context.input(0), attributes_.rate, context, context.output(0));
    else
      copy_elements(context.input(0), context.output(0));
  }

  void backward(const BackwardContext& context) const override {
    if (!context.d_inputs[0]) return;
    if (context.forward->training)
      drop(*context.d_outputs[0], attributes_.rate, *context.forward, *context.d_inputs[0]);
    else
      copy_elements(*context.d_outputs[0], *context.d_inputs[0]);
  }

  void reference_forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    const double rate = context.training ? attributes_.rate : 0;
    with_float_type(x, [&]<class T>(T) {
      reference::dropout(x.elements(), rate, context.random_key, first_element(context), x.data<T>(),
                         context.output(0).data<T>());
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    const Tensor& d_y = *context.d_outputs[0];
    const double rate = context.forward->training ? attributes_.rate : 0;
    if (Tensor* d_x = context.d_inputs[0])
      with_float_type(d_y, [&]<class T>(T) {
        reference::dropout(d_y.elements(), rate, context.forward->random_key, first_element(*context.forward),
                           d_y.data<T>(), d_x->data<T>());
      });
  }
};

}  // namespace

std::shared_ptr<Op> Dropout::make(const Attributes& attributes) { return std::make_shared<DropoutOp>(attributes); }

}  // namespace miniqat::layers
