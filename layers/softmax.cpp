#include "layers/softmax.h"

#include <cmath>

#include "core/graph/node_check.h"
#include "core/graph/op.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/softmax.h"

namespace miniqat::layers {
namespace {

class SoftmaxOp final : public OpOf<Softmax> {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    require_float(inputs);
    if (inputs[0].shape.rank() < 1) fail("x needs an axis; x ", inputs[0].shape);
    return {inputs[0]};
  }

  OpTraits traits() const override {
    OpTraits traits;
    traits.forward_in_place = true;
    traits.backward_in_place = true;
    traits.backward_outputs = {0};
    return traits;
  }

  void forward(const ForwardContext& context) const override {
    const std::int64_t channels = context.input(0).shape().channels();
    const float* from = context.input(0).data<float>();
    float* to = context.output(0).data<float>();
    parallel_for(rows_of(context.input(0)), row_grain(channels), [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const float* x = from + r * channels;
        float* y = to + r * channels;
        float largest = x[0];
        for (std::int64_t c = 1; c < channels; ++c) largest = x[c] > largest ? x[c] : largest;
        float sum = 0;
        for (std::int64_t c = 0; c < channels; ++c) {
          y[c] = std::exp(x[c] - largest);
          sum += y[c];
        }
        const float scale = 1 / sum;
        for (std::int64_t c = 0; c < channels; ++c) y[c] *= scale;
      }
    });
  }

  void backward(const BackwardContext& context) const override {
    if (!context.d_inputs[0]) return;
    const Tensor& output = context.forward->output(0);
    const std::int64_t channels = output.shape().channels();
    const float* y_rows = output.data<float>();
    const float* d_y_rows = context.d_outputs[0]->data<float>();
    float* d_x_rows = context.d_inputs[0]->data<float>();
    parallel_for(rows_of(output), row_grain(channels), [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const float* y = y_rows + r * channels;
        const float* d_y = d_y_rows + r * channels;
        float* d_x = d_x_rows + r * channels;
        float dot = 0;
        for (std::int64_t c = 0; c < channels; ++c) dot += d_y[c] * y[c];
#pragma omp simd
        for (std::int64_t c = 0; c < channels; ++c) d_x[c] = y[c] * (d_y[c] - dot);
      }
    });
  }

  void reference_forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    with_float_type(x, [&]<class T>(T) {
      reference::softmax(rows_of(x), x.shape().channels(), x.data<T>(), context.output(0).data<T>());
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    const Tensor& y = context.forward->output(0);
    if (Tensor* d_x = context.d_inputs[0])
      with_float_type(y, [&]<class T>(T) {
        reference::softmax_d_x(rows_of(y), y.shape().channels(), y.data<T>(), context.d_outputs[0]->data<T>(),
                               d_x->data<T>());
      });
  }
};

}  // namespace

std::shared_ptr<Op> Softmax::make(const Attributes& attributes) { return std::make_shared<SoftmaxOp>(attributes); }

Output softmax(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, Softmax::make(), {x}).output();
}

}  // namespace miniqat::layers
