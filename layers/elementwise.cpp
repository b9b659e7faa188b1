#include "layers/elementwise.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "core/graph/op.h"
#include "layers/chain/chain_fusion.h"
#include "layers/chain/chain_kernels.h"
#include "layers/kernels/broadcast.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/elementwise.h"
#include "layers/unary_op.h"

namespace miniqat::layers {
namespace {

// The fast rules. If the output y gives the gradient more cheaply than the inputs, they read y: then the forward pass
// may write over its input.

template <class Kind>
struct BinaryRule;

template <>
struct BinaryRule<Add> {
  using Reference = reference::AddRule;
  static float value(float a, float b) { return a + b; }
  static float d_a(float d, float, float, float) { return d; }
  static float d_b(float d, float, float, float) { return d; }
};

template <>
struct BinaryRule<Sub> {
  using Reference = reference::SubRule;
  static float value(float a, float b) { return a - b; }
  static float d_a(float d, float, float, float) { return d; }
  static float d_b(float d, float, float, float) { return -d; }
};

template <>
struct BinaryRule<Mul> {
  using Reference = reference::MulRule;
  static float value(float a, float b) { return a * b; }
  static float d_a(float d, float, float b, float) { return d * b; }
  static float d_b(float d, float a, float, float) { return d * a; }
};

template <>
struct BinaryRule<Div> {
  using Reference = reference::DivRule;
  static float value(float a, float b) { return a / b; }
  static float d_a(float d, float, float b, float) { return d / b; }
  static float d_b(float d, float, float b, float y) { return -d * y / b; }
};

struct RsqrtRule {
  using Reference = reference::RsqrtRule;
  static constexpr bool kReadsOutput = true;
  static float value(float x) { return 1 / std::sqrt(x); }
  static float d_x(float d, float y) { return -0.5f * d * y * y * y; }
};

struct ReciprocalRule {
  using Reference = reference::ReciprocalRule;
  static constexpr bool kReadsOutput = true;
  static float value(float x) { return 1 / x; }
  static float d_x(float d, float y) { return -d * y * y; }
};

struct SquareRule {
  using Reference = reference::SquareRule;
  static constexpr bool kReadsOutput = false;
  static float value(float x) { return x * x; }
  static float d_x(float d, float x) { return 2 * d * x; }
};

/// What the gradient of either operand is computed from.
struct GradientSource {
  const float* d;
  const float* a;
  const float* b;
  const float* y;
};

/// The gradient of an operand that has all elements of the output: d_x[i] = term(d[i], a, b, y[i]).
template <class Term>
void gradient(const BroadcastLoop& loop, const GradientSource& from, float* d_x, const Term& term) {
  loop.with_steps([&](auto a_step, auto b_step) {
    parallel_for(loop.elements(), kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      loop.stretches(begin, end, [&](std::int64_t i, std::int64_t a, std::int64_t b, std::int64_t length) {
#pragma omp simd
        for (std::int64_t k = 0; k < length; ++k)
          d_x[i + k] = term(from.d[i + k], from.a[a + k * a_step], from.b[b + k * b_step], from.y[i + k]);
      });
    });
  });
}

/// The gradient of a stretched operand: the sum of the terms of all places that looked at an element. `of_a` tells
/// which operand it is.
template <class Term>
void stretched_gradient(const BroadcastLoop& loop, const GradientSource& from, Tensor& d_x, bool of_a,
                        const Term& term) {
  float* to = d_x.data<float>();
  loop.with_steps([&](auto a_step, auto b_step) {
    const auto add = [&](std::int64_t begin, std::int64_t end, double* sums) {
      loop.stretches(begin, end, [&](std::int64_t i, std::int64_t a, std::int64_t b, std::int64_t length) {
        const auto at = [&](std::int64_t k) {
          return term(from.d[i + k], from.a[a + k * a_step], from.b[b + k * b_step], from.y[i + k]);
        };
        double* sum = sums + (of_a ? a : b);
        if ((of_a ? a_step : b_step) == 0) {
          double total = 0;
#pragma omp simd reduction(+ : total)
          for (std::int64_t k = 0; k < length; ++k) total += at(k);
          *sum += total;
        } else {
#pragma omp simd
          for (std::int64_t k = 0; k < length; ++k) sum[k] += at(k);
        }
      });
    };
    sum_in_parts(loop.elements(), kPointwiseGrain, d_x.elements(), add,
                 [=](std::int64_t j, double total) { to[j] = static_cast<float>(total); });
  });
}

template <class Kind>
class BinaryOp final : public OpOf<Kind>, public ChainMember {
 public:
  using OpOf<Kind>::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 2);
    require_float(inputs);
    return {{broadcast_shapes(inputs[0].shape, inputs[1].shape), DType::kFloat32}};
  }

  OpTraits traits() const override {
    OpTraits traits{.forward_in_place = true, .backward_in_place = true};
    if constexpr (std::is_same_v<Kind, Mul>) traits.backward_inputs = {0, 1};
    if constexpr (std::is_same_v<Kind, Div>) {
      traits.backward_inputs = {1};
      traits.backward_outputs = {0};
    }
    return traits;
  }

  std::optional<ChainRole> chain_role() const override {
    if constexpr (std::is_same_v<Kind, Add>) return chain_role::Sum{};
    if constexpr (std::is_same_v<Kind, Mul>) return chain_role::Scale{};
    return std::nullopt;
  }

  void forward(const ForwardContext& context) const override {
    const BroadcastLoop loop(context.input(0).shape(), context.input(1).shape());
    const float* left = context.input(0).data<float>();
    const float* right = context.input(1).data<float>();
    float* y = context.output(0).data<float>();
    loop.with_steps([&](auto a_step, auto b_step) {
      parallel_for(loop.elements(), kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
        loop.stretches(begin, end, [&](std::int64_t i, std::int64_t a, std::int64_t b, std::int64_t length) {
#pragma omp simd
          for (std::int64_t k = 0; k < length; ++k)
            y[i + k] = BinaryRule<Kind>::value(left[a + k * a_step], right[b + k * b_step]);
        });
      });
    });
  }

  void backward(const BackwardContext& context) const override {
    using Rule = BinaryRule<Kind>;
    const ForwardContext& forward = *context.forward;
    const BroadcastLoop loop(forward.input(0).shape(), forward.input(1).shape());
    const GradientSource from = {context.d_outputs[0]->data<float>(), forward.input(0).data<float>(),
                                 forward.input(1).data<float>(), forward.output(0).data<float>()};
    const auto compute = [&](Tensor& d_x, bool of_a, const auto& term) {
      if (d_x.elements() == loop.elements())
        gradient(loop, from, d_x.data<float>(), term);
      else
        stretched_gradient(loop, from, d_x, of_a, term);
    };
    // d_b comes first because d_a may be written over the arriving gradient.
    if (Tensor* d_b = context.d_inputs[1])
      compute(*d_b, false, [](float d, float a, float b, float y) { return Rule::d_b(d, a, b, y); });
    if (Tensor* d_a = context.d_inputs[0])
      compute(*d_a, true, [](float d, float a, float b, float y) { return Rule::d_a(d, a, b, y); });
  }

  void reference_forward(const ForwardContext& context) const override {
    using Rule = typename BinaryRule<Kind>::Reference;
    Tensor& y = context.output(0);
    with_float_type(y, [&]<class T>(T) {
      const auto a = reference::stretched(context.input(0).data<T>(), context.input(0).shape(), y.shape());
      const auto b = reference::stretched(context.input(1).data<T>(), context.input(1).shape(), y.shape());
      for (std::int64_t i = 0; i < y.elements(); ++i) y.data<T>()[i] = Rule::value(a[i], b[i]);
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    using Rule = typename BinaryRule<Kind>::Reference;
    const Tensor& left = context.forward->input(0);
    const Tensor& right = context.forward->input(1);
    const Tensor& d_y = *context.d_outputs[0];
    with_float_type(d_y, [&]<class T>(T) {
      const std::span<const T> d = d_y.values<T>();
      const auto a = reference::stretched(left.data<T>(), left.shape(), d_y.shape());
      const auto b = reference::stretched(right.data<T>(), right.shape(), d_y.shape());
      std::vector<T> d_a(d.size()), d_b(d.size());
      for (std::size_t i = 0; i < d.size(); ++i) {
        d_a[i] = Rule::d_a(d[i], a[i], b[i]);
        d_b[i] = Rule::d_b(d[i], a[i], b[i]);
      }
      if (Tensor* target = context.d_inputs[0]) reference::collect(d_a, left.shape(), d_y.shape(), target->data<T>());
      if (Tensor* target = context.d_inputs[1]) reference::collect(d_b, right.shape(), d_y.shape(), target->data<T>());
    });
  }
};

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
      fail("bias has ", counted(bias[0], "channel"), ", x has ", x.channels(), "; x ", x, ", bias ", bias);
    return {inputs[0]};
  }

  OpTraits traits() const override { return {.forward_in_place = true, .backward_in_place = true}; }

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

std::shared_ptr<Op> Add::make(const Attributes& attributes) { return std::make_shared<BinaryOp<Add>>(attributes); }

std::shared_ptr<Op> Sub::make(const Attributes& attributes) { return std::make_shared<BinaryOp<Sub>>(attributes); }

std::shared_ptr<Op> Mul::make(const Attributes& attributes) { return std::make_shared<BinaryOp<Mul>>(attributes); }

std::shared_ptr<Op> Div::make(const Attributes& attributes) { return std::make_shared<BinaryOp<Div>>(attributes); }

std::shared_ptr<Op> Rsqrt::make(const Attributes& attributes) {
  return std::make_shared<UnaryOp<Rsqrt, RsqrtRule>>(attributes);
}

std::shared_ptr<Op> Reciprocal::make(const Attributes& attributes) {
  return std::make_shared<UnaryOp<Reciprocal, ReciprocalRule>>(attributes);
}

std::shared_ptr<Op> Square::make(const Attributes& attributes) {
  return std::make_shared<UnaryOp<Square, SquareRule>>(attributes);
}

std::shared_ptr<Op> BiasAdd::make(const Attributes& attributes) { return std::make_shared<BiasAddOp>(attributes); }

}  // namespace miniqat::layers
