#include "layers/losses.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/graph/op.h"
#include "core/graph/op_interfaces.h"
#include "core/kernels/scratch.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/losses.h"

namespace miniqat::layers {
namespace {

/// So many elements are added up one after the other, whatever the number of threads: the sum always has the same bits.
constexpr std::int64_t kLossBlock = 2048;

// The rules: the loss of one element and its derivative by the prediction.

struct SquaredErrorRule {
  static constexpr std::string_view kPrediction = "prediction", kTarget = "target";
  static constexpr TargetValues kValues = TargetValues::kNumbers;

  double value(float p, float t) const {
    const double error = static_cast<double>(p) - t;
    return error * error;
  }
  float slope(float p, float t) const { return 2 * (p - t); }

  template <class T>
  T reference_loss(std::span<const T> p, std::span<const T> t) const {
    return reference::mean_squared_error(p, t);
  }
  template <class T>
  void reference_gradient(std::span<const T> p, std::span<const T> t, T d_loss, T* d_p) const {
    reference::mean_squared_error_d_prediction(p, t, d_loss, d_p);
  }
};

struct HuberRule {
  static constexpr std::string_view kPrediction = "prediction", kTarget = "target";
  static constexpr TargetValues kValues = TargetValues::kNumbers;

  explicit HuberRule(const HuberAttributes& attributes) : delta(static_cast<float>(attributes.delta)) {}
  double value(float p, float t) const {
    const double error = std::abs(static_cast<double>(p) - t), limit = delta;
    return error <= limit ? 0.5 * error * error : limit * (error - 0.5 * limit);
  }
  float slope(float p, float t) const {
    const float error = p - t;
    return error > delta ? delta : error < -delta ? -delta : error;
  }

  template <class T>
  T reference_loss(std::span<const T> p, std::span<const T> t) const {
    return reference::huber(p, t, static_cast<T>(delta));
  }
  template <class T>
  void reference_gradient(std::span<const T> p, std::span<const T> t, T d_loss, T* d_p) const {
    reference::huber_d_prediction(p, t, static_cast<T>(delta), d_loss, d_p);
  }

  float delta;
};

struct SigmoidCrossEntropyRule {
  static constexpr std::string_view kPrediction = "logits", kTarget = "targets";
  static constexpr TargetValues kValues = TargetValues::kProbabilities;

  double value(float x, float t) const {
    const double power = std::log1p(std::exp(-std::abs(x)));
    return (x > 0 ? x : 0.0) - static_cast<double>(x) * t + power;
  }
  /// sigmoid(x) - t, without a sigmoid near 1, whose rounding would be all that is left beside a target of 1.
  float slope(float x, float t) const {
    const float power = std::exp(-std::abs(x));
    const float small = power / (1 + power);
    return x > 0 ? 1 - t - small : small - t;
  }

  template <class T>
  T reference_loss(std::span<const T> x, std::span<const T> t) const {
    return reference::sigmoid_cross_entropy(x, t);
  }
  template <class T>
  void reference_gradient(std::span<const T> x, std::span<const T> t, T d_loss, T* d_x) const {
    reference::sigmoid_cross_entropy_d_logits(x, t, d_loss, d_x);
  }
};

template <class T>
void check_probabilities(const ForwardContext& context) {
  const Tensor& targets = context.input(1);
  const std::span<const T> values = targets.values<T>();
  const auto bad = std::ranges::find_if_not(values, [](T t) { return t >= 0 && t <= 1; });
  if (bad == values.end()) return;
  const std::int64_t columns = targets.shape()[1];
  const std::int64_t place = context.slice * targets.elements() + (bad - values.begin());
  fail("target ", *bad, " of row ", place / columns, ", column ", place % columns, " is outside [0, 1]");
}

void check_attributes(const NoAttributes&) {}

void check_attributes(const HuberAttributes& attributes) {
  const auto delta = static_cast<float>(attributes.delta);
  if (!(delta > 0 && std::isfinite(delta))) fail("delta must be above 0 and finite, got ", attributes.delta);
}

template <class Kind, class Rule>
class ElementwiseLoss final : public OpOf<Kind>, public MeasuresLoss {
  static constexpr bool kTakesProbabilities = Rule::kValues == TargetValues::kProbabilities;

 public:
  using OpOf<Kind>::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    check_attributes(this->attributes_);
    require_inputs(inputs, 2);
    require_float(inputs[0], Rule::kPrediction);
    require_float(inputs[1], Rule::kTarget);
    const Shape& prediction = inputs[0].shape;
    if (kTakesProbabilities) require_rank(inputs, 0, 2, Rule::kPrediction);
    if (prediction.rank() == 0) fail(Rule::kPrediction, " needs an axis; ", Rule::kPrediction, " ", prediction);
    if (inputs[1].shape != prediction)
      fail(Rule::kTarget, " and ", Rule::kPrediction, " differ in shape; ", Rule::kPrediction, " ", prediction, ", ",
           Rule::kTarget, " ", inputs[1].shape);
    require_elements(inputs);
    return {{Shape{}, DType::kFloat32}};
  }

  OpTraits traits() const override {
    OpTraits traits;
    traits.backward_inputs = {0, 1};
    traits.no_gradient = {1};
    return traits;
  }

  LossInputs loss_inputs() const override { return {.prediction = 0, .target = 1, .values = Rule::kValues}; }

  void forward(const ForwardContext& context) const override {
    if constexpr (kTakesProbabilities) check_probabilities<float>(context);
    const float* prediction = context.input(0).data<float>();
    const float* target = context.input(1).data<float>();
    const std::int64_t count = context.input(0).elements();
    const std::int64_t blocks = (count + kLossBlock - 1) / kLossBlock;
    ScratchScope scope;
    const std::span<double> sums = scope.take<double>(blocks);
    const Rule rule = this->rule();
    parallel_for(blocks, kPointwiseGrain / kLossBlock, [&, rule](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        const std::int64_t last = std::min(count, (block + 1) * kLossBlock);
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = block * kLossBlock; i < last; ++i) sum += rule.value(prediction[i], target[i]);
        sums[block] = sum;
      }
    });
    const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
    *context.output(0).template data<float>() = static_cast<float>(total / static_cast<double>(count));
  }

  void backward(const BackwardContext& context) const override {
    if (context.d_inputs[0] == nullptr) return;
    const Tensor& prediction = context.forward->input(0);
    const float scale = *context.d_outputs[0]->data<float>() / static_cast<float>(prediction.elements());
    pointwise(prediction, context.forward->input(1), *context.d_inputs[0],
              [scale, rule = rule()](float p, float t) { return rule.slope(p, t) * scale; });
  }

  void reference_forward(const ForwardContext& context) const override {
    with_float_type(context.input(0), [&]<class T>(T) {
      if constexpr (kTakesProbabilities) check_probabilities<T>(context);
      *context.output(0).template data<T>() =
          rule().template reference_loss<T>(context.input(0).values<T>(), context.input(1).values<T>());
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    if (context.d_inputs[0] == nullptr) return;
    with_float_type(context.forward->input(0), [&]<class T>(T) {
      rule().template reference_gradient<T>(context.forward->input(0).values<T>(),
                                            context.forward->input(1).values<T>(), *context.d_outputs[0]->data<T>(),
                                            context.d_inputs[0]->data<T>());
    });
  }

 private:
  Rule rule() const {
    if constexpr (std::is_constructible_v<Rule, const typename Kind::Attributes&>)
      return Rule(this->attributes_);
    else
      return Rule{};
  }
};

}  // namespace

std::shared_ptr<Op> MeanSquaredError::make(const Attributes& attributes) {
  return std::make_shared<ElementwiseLoss<MeanSquaredError, SquaredErrorRule>>(attributes);
}

Output mean_squared_error(Graph& graph, Output prediction, Output target, const std::string& name) {
  return graph.add(name, MeanSquaredError::make(), {prediction, target}).output();
}

void HuberAttributes::visit(AttributeVisitor& visitor) { visitor.field("delta", delta); }

std::shared_ptr<Op> Huber::make(const Attributes& attributes) {
  return std::make_shared<ElementwiseLoss<Huber, HuberRule>>(attributes);
}

Output huber(Graph& graph, Output prediction, Output target, const std::string& name,
             const HuberAttributes& attributes) {
  return graph.add(name, Huber::make(attributes), {prediction, target}).output();
}

std::shared_ptr<Op> SigmoidCrossEntropy::make(const Attributes& attributes) {
  return std::make_shared<ElementwiseLoss<SigmoidCrossEntropy, SigmoidCrossEntropyRule>>(attributes);
}

Output sigmoid_cross_entropy(Graph& graph, Output logits, Output targets, const std::string& name) {
  return graph.add(name, SigmoidCrossEntropy::make(), {logits, targets}).output();
}

}  // namespace miniqat::layers
