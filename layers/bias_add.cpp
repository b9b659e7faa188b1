#include "layers/bias_add.h"

#include <algorithm>

#include "core/graph/node_check.h"
#include "core/kernels/scratch.h"
#include "layers/chain/chain_fusion.h"
#include "layers/kernels/broadcast.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/bias_add.h"

namespace miniqat::layers {

class BiasAddOp final : public OpOf<BiasAdd>, public ChainMember {
 public:
  using OpOf::OpOf;
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  OpTraits traits() const override;
  std::optional<ChainRole> chain_role() const override { return chain_role::Bias{}; }
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;
};

namespace {

/// sums[c] += sum of d[r, c]. Adds in float over short blocks (fast, and exact enough when short) and in double across
/// them. Several short rows count as one wide row: otherwise each addition would wait for the one in the row before.
void add_columns(const float* d, std::int64_t rows, std::int64_t channels, double* sums) {
  constexpr std::int64_t kBlockRows = 64;
  constexpr std::int64_t kWideEnough = 64;
  const std::int64_t fold = std::max<std::int64_t>(1, kWideEnough / channels);
  const std::int64_t width = fold * channels;
  const std::int64_t wide_rows = rows / fold;
  ScratchScope scope;
  float* sum = scope.take<float>(width).data();
  for (std::int64_t start = 0; start < wide_rows; start += kBlockRows) {
    std::fill_n(sum, width, 0.0f);
    for (std::int64_t r = start; r < std::min(wide_rows, start + kBlockRows); ++r) {
      const float* row = d + r * width;
#pragma omp simd
      for (std::int64_t k = 0; k < width; ++k) sum[k] += row[k];
    }
    for (std::int64_t f = 0; f < fold; ++f)
      for (std::int64_t c = 0; c < channels; ++c) sums[c] += sum[f * channels + c];
  }
  for (std::int64_t r = wide_rows * fold; r < rows; ++r)
    for (std::int64_t c = 0; c < channels; ++c) sums[c] += d[r * channels + c];
}

}  // namespace

std::shared_ptr<Op> BiasAdd::make(const Attributes& attributes) { return std::make_shared<BiasAddOp>(attributes); }

std::vector<TensorSpec> BiasAddOp::infer(std::span<const TensorSpec> inputs) const {
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

OpTraits BiasAddOp::traits() const {
  OpTraits traits;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  return traits;
}

void BiasAddOp::forward(const ForwardContext& context) const {
  const Tensor& input = context.input(0);
  const std::int64_t channels = input.shape().channels();
  const float* x = input.data<float>();
  const float* bias = context.input(1).data<float>();
  float* y = context.output(0).data<float>();
  parallel_for(rows_of(input), row_grain(channels), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float* from = x + r * channels;
      float* to = y + r * channels;
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) to[c] = from[c] + bias[c];
    }
  });
}

void BiasAddOp::backward(const BackwardContext& context) const {
  const Tensor& d_y = *context.d_outputs[0];
  if (Tensor* d_bias = context.d_inputs[1]) {
    const std::int64_t channels = d_bias->elements();
    const float* from = d_y.data<float>();
    float* to = d_bias->data<float>();
    sum_in_parts(
        rows_of(d_y), row_grain(channels), channels,
        [=](std::int64_t begin, std::int64_t end, double* sums) {
          add_columns(from + begin * channels, end - begin, channels, sums);
        },
        [=](std::int64_t c, double total) { to[c] = static_cast<float>(total); });
  }
  if (Tensor* d_x = context.d_inputs[0]) copy_elements(d_y, *d_x);
}

void BiasAddOp::reference_forward(const ForwardContext& context) const {
  const Tensor& x = context.input(0);
  with_float_type(x, [&](auto zero) {
    using T = decltype(zero);
    reference::bias_add(rows_of(x), x.shape().channels(), x.data<T>(), context.input(1).data<T>(),
                        context.output(0).data<T>());
  });
}

void BiasAddOp::reference_backward(const BackwardContext& context) const {
  const Tensor& d_y = *context.d_outputs[0];
  if (Tensor* d_bias = context.d_inputs[1]) {
    with_float_type(d_y, [&](auto zero) {
      using T = decltype(zero);
      reference::bias_add_d_bias(rows_of(d_y), d_bias->elements(), d_y.data<T>(), d_bias->data<T>());
    });
  }
  if (Tensor* d_x = context.d_inputs[0]) copy_elements(d_y, *d_x);
}

Output bias_add(Graph& graph, const std::string& name, Output x, Output bias) {
  return graph.add(name, BiasAdd::make(), {x, bias}).output();
}

}  // namespace miniqat::layers
