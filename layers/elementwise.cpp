#include "layers/elementwise.h"

#include <cmath>
#include <type_traits>

#include "core/graph/node_check.h"
#include "layers/chain/chain_fusion.h"
#include "layers/kernels/broadcast.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/elementwise.h"

namespace miniqat::layers {
/// Named, because the templates below, which others know, are made of it.
namespace elementwise {

// The fast rules. Where the output y gives the gradient more cheaply than the inputs do, they read y: then the forward
// pass may write over its input.

template <BinaryKind kind>
struct BinaryRule;

template <>
struct BinaryRule<BinaryKind::kAdd> {
  static constexpr std::string_view kName = "Add";
  using Reference = reference::AddRule;
  static float value(float a, float b) { return a + b; }
  static float d_a(float d, float, float, float) { return d; }
  static float d_b(float d, float, float, float) { return d; }
};

template <>
struct BinaryRule<BinaryKind::kSub> {
  static constexpr std::string_view kName = "Sub";
  using Reference = reference::SubRule;
  static float value(float a, float b) { return a - b; }
  static float d_a(float d, float, float, float) { return d; }
  static float d_b(float d, float, float, float) { return -d; }
};

template <>
struct BinaryRule<BinaryKind::kMul> {
  static constexpr std::string_view kName = "Mul";
  using Reference = reference::MulRule;
  static float value(float a, float b) { return a * b; }
  static float d_a(float d, float, float b, float) { return d * b; }
  static float d_b(float d, float a, float, float) { return d * a; }
};

template <>
struct BinaryRule<BinaryKind::kDiv> {
  static constexpr std::string_view kName = "Div";
  using Reference = reference::DivRule;
  static float value(float a, float b) { return a / b; }
  static float d_a(float d, float, float b, float) { return d / b; }
  static float d_b(float d, float, float b, float y) { return -d * y / b; }
};

template <UnaryKind kind>
struct UnaryRule;

template <>
struct UnaryRule<UnaryKind::kRsqrt> {
  static constexpr std::string_view kName = "Rsqrt";
  using Reference = reference::RsqrtRule;
  static constexpr bool kReadsOutput = true;
  static float value(float x) { return 1 / std::sqrt(x); }
  static float d_x(float d, float y) { return -0.5f * d * y * y * y; }
};

template <>
struct UnaryRule<UnaryKind::kReciprocal> {
  static constexpr std::string_view kName = "Reciprocal";
  using Reference = reference::ReciprocalRule;
  static constexpr bool kReadsOutput = true;
  static float value(float x) { return 1 / x; }
  static float d_x(float d, float y) { return -d * y * y; }
};

template <>
struct UnaryRule<UnaryKind::kSquare> {
  static constexpr std::string_view kName = "Square";
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
void stretched_gradient(const BroadcastLoop& loop, const GradientSource& from, const Tensor& d_x, bool of_a,
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

}  // namespace elementwise

using namespace elementwise;

template <BinaryKind kind>
std::string_view BinaryOp<kind>::type() const {
  return BinaryRule<kind>::kName;
}

template <BinaryKind kind>
std::vector<TensorSpec> BinaryOp<kind>::infer(std::span<const TensorSpec> inputs) const {
  require_inputs(inputs, 2);
  require_float(inputs);
  return {{broadcast_shapes(inputs[0].shape, inputs[1].shape), DType::kFloat32}};
}

template <BinaryKind kind>
OpTraits BinaryOp<kind>::traits() const {
  OpTraits traits;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  if constexpr (kind == BinaryKind::kMul) traits.backward_inputs = {0, 1};
  if constexpr (kind == BinaryKind::kDiv) {
    traits.backward_inputs = {1};
    traits.backward_outputs = {0};
  }
  return traits;
}

template <BinaryKind kind>
std::optional<Fusion> BinaryOp<kind>::fuse(const Node& self, const FusionScope& scope) const {
  if constexpr (kind == BinaryKind::kAdd || kind == BinaryKind::kMul) return fuse_chain(self, scope);
  return std::nullopt;
}

template <BinaryKind kind>
void BinaryOp<kind>::forward(const ForwardContext& context) const {
  const BroadcastLoop loop(context.input(0).shape(), context.input(1).shape());
  const float* left = context.input(0).data<float>();
  const float* right = context.input(1).data<float>();
  float* y = context.output(0).data<float>();
  loop.with_steps([&](auto a_step, auto b_step) {
    parallel_for(loop.elements(), kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      loop.stretches(begin, end, [&](std::int64_t i, std::int64_t a, std::int64_t b, std::int64_t length) {
#pragma omp simd
        for (std::int64_t k = 0; k < length; ++k)
          y[i + k] = BinaryRule<kind>::value(left[a + k * a_step], right[b + k * b_step]);
      });
    });
  });
}

template <BinaryKind kind>
void BinaryOp<kind>::backward(const BackwardContext& context) const {
  using Rule = BinaryRule<kind>;
  const ForwardContext& forward = *context.forward;
  const BroadcastLoop loop(forward.input(0).shape(), forward.input(1).shape());
  const GradientSource from = {context.d_outputs[0]->data<float>(), forward.input(0).data<float>(),
                               forward.input(1).data<float>(), forward.output(0).data<float>()};
  const auto compute = [&](const Tensor& d_x, bool of_a, const auto& term) {
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

template <BinaryKind kind>
void BinaryOp<kind>::reference_forward(const ForwardContext& context) const {
  using Rule = typename BinaryRule<kind>::Reference;
  const Tensor& y = context.output(0);
  with_float_type(y, [&](auto zero) {
    using T = decltype(zero);
    const auto a = reference::stretched(context.input(0).data<T>(), context.input(0).shape(), y.shape());
    const auto b = reference::stretched(context.input(1).data<T>(), context.input(1).shape(), y.shape());
    for (std::int64_t i = 0; i < y.elements(); ++i) y.data<T>()[i] = Rule::value(a[i], b[i]);
  });
}

template <BinaryKind kind>
void BinaryOp<kind>::reference_backward(const BackwardContext& context) const {
  using Rule = typename BinaryRule<kind>::Reference;
  const Tensor& left = context.forward->input(0);
  const Tensor& right = context.forward->input(1);
  const Tensor& d_y = *context.d_outputs[0];
  with_float_type(d_y, [&](auto zero) {
    using T = decltype(zero);
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

template <UnaryKind kind>
std::string_view UnaryOp<kind>::type() const {
  return UnaryRule<kind>::kName;
}

template <UnaryKind kind>
std::vector<TensorSpec> UnaryOp<kind>::infer(std::span<const TensorSpec> inputs) const {
  require_inputs(inputs, 1);
  require_float(inputs);
  return {inputs[0]};
}

template <UnaryKind kind>
OpTraits UnaryOp<kind>::traits() const {
  OpTraits traits;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  (UnaryRule<kind>::kReadsOutput ? traits.backward_outputs : traits.backward_inputs) = {0};
  return traits;
}

template <UnaryKind kind>
void UnaryOp<kind>::forward(const ForwardContext& context) const {
  pointwise(context.input(0), context.output(0), [](float x) { return UnaryRule<kind>::value(x); });
}

template <UnaryKind kind>
void UnaryOp<kind>::backward(const BackwardContext& context) const {
  using Rule = UnaryRule<kind>;
  if (!context.d_inputs[0]) return;
  const Tensor& value = Rule::kReadsOutput ? context.forward->output(0) : context.forward->input(0);
  pointwise(*context.d_outputs[0], value, *context.d_inputs[0], [](float d, float v) { return Rule::d_x(d, v); });
}

template <UnaryKind kind>
void UnaryOp<kind>::reference_forward(const ForwardContext& context) const {
  with_float_type(context.input(0), [&](auto zero) {
    using T = decltype(zero);
    const std::span<const T> x = context.input(0).values<T>();
    T* y = context.output(0).data<T>();
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = UnaryRule<kind>::Reference::value(x[i]);
  });
}

template <UnaryKind kind>
void UnaryOp<kind>::reference_backward(const BackwardContext& context) const {
  if (!context.d_inputs[0]) return;
  with_float_type(*context.d_outputs[0], [&](auto zero) {
    using T = decltype(zero);
    const std::span<const T> x = context.forward->input(0).values<T>();
    const T* d_y = context.d_outputs[0]->data<T>();
    T* d_x = context.d_inputs[0]->data<T>();
    for (std::size_t i = 0; i < x.size(); ++i) d_x[i] = UnaryRule<kind>::Reference::d_x(d_y[i], x[i]);
  });
}

template class BinaryOp<BinaryKind::kAdd>;
template class BinaryOp<BinaryKind::kSub>;
template class BinaryOp<BinaryKind::kMul>;
template class BinaryOp<BinaryKind::kDiv>;
template class UnaryOp<UnaryKind::kRsqrt>;
template class UnaryOp<UnaryKind::kReciprocal>;
template class UnaryOp<UnaryKind::kSquare>;

Output add(Graph& graph, const std::string& name, Output a, Output b) {
  return graph.add(name, std::make_unique<Add>(), {a, b}).output();
}

Output sub(Graph& graph, const std::string& name, Output a, Output b) {
  return graph.add(name, std::make_unique<Sub>(), {a, b}).output();
}

Output mul(Graph& graph, const std::string& name, Output a, Output b) {
  return graph.add(name, std::make_unique<Mul>(), {a, b}).output();
}

Output div(Graph& graph, const std::string& name, Output a, Output b) {
  return graph.add(name, std::make_unique<Div>(), {a, b}).output();
}

Output rsqrt(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, std::make_unique<Rsqrt>(), {x}).output();
}

Output reciprocal(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, std::make_unique<Reciprocal>(), {x}).output();
}

Output square(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, std::make_unique<Square>(), {x}).output();
}

}  // namespace miniqat::layers
