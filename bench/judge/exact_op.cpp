#include "bench/judge/exact_op.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/graph/losses.h"
#include "core/tensors/random.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/op_roles.h"

namespace miniqat::bench {

using namespace quantize;
namespace {

bool only_moves(const Op& op) { return has_role(op.type(), OpRole::kMoves); }
bool is_sum_of_products(const Op& op) { return has_role(op.type(), OpRole::kMoves | OpRole::kSumsProducts); }
bool is_choice(const Op& op) { return has_role(op.type(), OpRole::kChooses); }

bool is_convolution(const Op& op) { return op.as<layers::Conv2d>() || op.as<layers::DepthwiseConv2d>(); }

/// Whether the fast backend may multiply sums of pixels with sums of taps (layers/kernels/winograd.h).
bool may_mix_taps(const Op& op, const std::vector<Bounded>& inputs) {
  const auto* convolution = op.as<layers::Conv2d>();
  if (convolution == nullptr) return false;
  const Shape& filter = inputs[1].value.shape();
  const std::array<std::int64_t, 2> one = {1, 1};
  return filter[0] == 3 && filter[1] == 3 && filter[2] % 16 == 0 && filter[3] % 16 == 0 &&
         convolution->strides == one && convolution->dilations == one;
}

/// In place of each tap of a filter the sum of all nine.
Tensor sum_of_taps(const Tensor& filter) {
  Tensor sums(filter.shape(), DType::kFloat64);
  const std::int64_t size = filter.elements() / 9;
  for (std::int64_t i = 0; i < filter.elements(); ++i)
    for (std::int64_t tap = 0; tap < 9; ++tap) sums.data<double>()[i] += filter.data<double>()[tap * size + i % size];
  return sums;
}

bool gives_probabilities(const Op& op) { return op.as<layers::Softmax>() || op.as<layers::SoftmaxCrossEntropy>(); }

bool is_float(const Tensor& tensor) { return tensor.defined() && tensor.dtype() == DType::kFloat64; }

std::vector<Tensor> values_of(const std::vector<Bounded>& tensors) {
  std::vector<Tensor> values;
  values.reserve(tensors.size());
  for (const Bounded& tensor : tensors) values.push_back(tensor.value);
  return values;
}

double count_in(const Tensor& tensor) { return static_cast<double>(std::max<std::int64_t>(tensor.elements(), 1)); }

/// Moves every element by as much as a rounding and its own error, up or down at random.
std::vector<Tensor> jolted(const std::vector<Bounded>& tensors, Random& random) {
  std::vector<Tensor> moved;
  for (const Bounded& tensor : tensors) {
    if (!is_float(tensor.value)) {
      moved.push_back(tensor.value);
      continue;
    }
    Tensor copy = tensor.value.clone();
    double* x = copy.data<double>();
    std::uint32_t signs = 0;
    for (std::int64_t i = 0; i < copy.elements(); ++i, signs >>= 1) {
      if (i % 32 == 0) signs = random.bits();
      const double by = kRounding * std::abs(x[i]) + error_at(tensor.error, i);
      x[i] += (signs & 1) == 0 ? by : -by;
    }
    moved.push_back(copy);
  }
  return moved;
}

/// The same of an op's inputs. A target that is a probability stays one.
std::vector<Tensor> jolted_inputs(const Op& op, const std::vector<Bounded>& inputs, Random& random) {
  std::vector<Tensor> moved = jolted(inputs, random);
  const std::optional<LossInputs> loss = loss_inputs(op);
  if (loss && loss->values == TargetValues::kProbabilities)
    for (double& t : moved[static_cast<std::size_t>(loss->target)].values<double>()) t = std::clamp(t, 0.0, 1.0);
  return moved;
}

/// relative * sums + what `wider` exceeds them by; undefined when both are nothing.
Tensor sum_error(const Tensor& sums, const Tensor& wider, double relative) {
  Tensor error(sums.shape(), DType::kFloat64);
  bool any = false;
  for (std::int64_t i = 0; i < sums.elements(); ++i) {
    const double sum = std::abs(sums.data<double>()[i]), wide = std::abs(wider.data<double>()[i]);
    double& e = error.data<double>()[i];
    e = relative * wide + (wide - sum) + (relative > 0 ? kTiny : 0);
    any = any || e != 0;
  }
  return any ? error : Tensor();
}

/// Calls visit(output element, its window's input elements) for windows that lie apart and inside the image.
void for_each_window(const layers::PoolAttributes& pool, const Shape& x, const Shape& y,
                     const std::function<void(std::int64_t, const std::vector<std::int64_t>&)>& visit) {
  const std::int64_t height = pool.strides[0] == 0 ? pool.window[0] : pool.strides[0];
  const std::int64_t width = pool.strides[1] == 0 ? pool.window[1] : pool.strides[1];
  std::vector<std::int64_t> taps;
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t c = i % y[3], column = i / y[3] % y[2], row = i / (y[3] * y[2]) % y[1],
                       n = i / (y[3] * y[2] * y[1]);
    taps.clear();
    for (std::int64_t h = row * height; h < row * height + pool.window[0]; ++h)
      for (std::int64_t w = column * width; w < column * width + pool.window[1]; ++w)
        taps.push_back(((n * x[1] + h) * x[2] + w) * x[3] + c);
    visit(i, taps);
  }
}

constexpr int kTrials = 5;
/// The factor on the differences that trials make: roundings inside the op are more than one, and trials are few.
constexpr double kTrialFactor = 12;

/// Keeps the largest differences from `exact` over all trials.
class Trials {
 public:
  explicit Trials(const std::vector<Tensor>& exact) : exact_(exact) {
    for (const Tensor& tensor : exact)
      spread_.push_back(is_float(tensor) ? Tensor(tensor.shape(), DType::kFloat64) : Tensor());
  }
  void add(const std::vector<Tensor>& tried) {
    for (std::size_t k = 0; k < exact_.size(); ++k) {
      if (!spread_[k].defined()) continue;
      double* most = spread_[k].data<double>();
      for (std::int64_t i = 0; i < spread_[k].elements(); ++i)
        most[i] = std::max(most[i], std::abs(tried[k].data<double>()[i] - exact_[k].data<double>()[i]));
    }
  }
  /// `terms` is how many numbers are added up inside: their roundings grow faster than random ones. A number that
  /// underflows inside may be multiplied by `largest_factor`.
  Bounded bounded(std::size_t k, double terms, double largest_factor = 1) const {
    if (!spread_[k].defined()) return {.value = exact_[k], .error = {}, .disorder = {}};
    Tensor error = spread_[k];
    const std::span<double> e = error.values<double>();
    const double largest = e.empty() ? 0 : *std::ranges::max_element(e);
    const double* value = exact_[k].data<double>();
    for (std::size_t i = 0; i < e.size(); ++i)
      e[i] = kTrialFactor * std::sqrt(1 + terms) * largest + 4 * kRounding * std::abs(value[i]) +
             kTiny * (1 + largest_factor);
    return {.value = exact_[k], .error = error, .disorder = {}};
  }

 private:
  const std::vector<Tensor>& exact_;
  std::vector<Tensor> spread_;
};

}  // namespace

Tensor magnitude_of(const Tensor& value, const Tensor& error) {
  if (!value.defined()) return {};
  Tensor magnitude(value.shape(), DType::kFloat64);
  for (std::int64_t i = 0; i < value.elements(); ++i)
    magnitude.data<double>()[i] = std::abs(value.data<double>()[i]) + error_at(error, i);
  return magnitude;
}

ExactOp::ExactOp(const Op& op, std::vector<Bounded> inputs, const Settings& settings, std::vector<Tensor> updates,
                 std::vector<Tensor> state)
    : op_(op),
      settings_(settings),
      inputs_(std::move(inputs)),
      updates_before_(std::move(updates)),
      state_before_(std::move(state)) {
  exact_ = forward(values_of(inputs_));
  for (const Tensor& output : exact_.outputs) outputs_.push_back({.value = output, .error = {}, .disorder = {}});
  for (const Tensor& update : exact_.updates) updates_.push_back({.value = update, .error = {}, .disorder = {}});
  for (const Tensor& state : exact_.state) state_.push_back({.value = state, .error = {}, .disorder = {}});
  if (op.as<FakeQuant>())
    bound_quantizer();
  else if (is_choice(op))
    bound_choice();
  else if (is_sum_of_products(op))
    bound_sums();
  else
    bound_by_trial();
}

ForwardContext ExactOp::context_of(Run& run) const {
  ForwardContext context;
  for (const Tensor& input : run.inputs) context.inputs.push_back(&input);
  for (Tensor& output : run.outputs) context.outputs.push_back(&output);
  if (!run.updates.empty()) context.updates.resize(run.inputs.size());
  for (std::size_t k = 0; k < run.updates.size(); ++k) context.updates[settings_.updated[k]] = &run.updates[k];
  for (Tensor& state : run.state) context.state.push_back(&state);
  static_cast<Phase&>(context) = settings_.phase;
  context.random_key = settings_.random_key;
  return context;
}

ExactOp::Run ExactOp::forward(std::vector<Tensor> inputs) const {
  Run run{.inputs = std::move(inputs), .outputs = {}, .updates = {}, .state = {}};
  std::vector<TensorSpec> specs;
  for (const Tensor& input : run.inputs)
    specs.push_back({input.shape(), is_float(input) ? DType::kFloat32 : input.dtype()});
  for (const TensorSpec& spec : op_.infer(specs))
    run.outputs.emplace_back(spec.shape, spec.dtype == DType::kFloat32 ? DType::kFloat64 : spec.dtype);
  for (const Tensor& update : updates_before_) run.updates.push_back(update.clone());
  for (const Tensor& state : state_before_) run.state.push_back(state.clone());
  op_.reference_forward(context_of(run));
  return run;
}

std::vector<Tensor> ExactOp::backward(Run run, const std::vector<Tensor>& d_outputs,
                                      const std::vector<bool>& wanted) const {
  const ForwardContext context = context_of(run);
  BackwardContext backward;
  backward.forward = &context;
  for (const Tensor& d_output : d_outputs) backward.d_outputs.push_back(d_output.defined() ? &d_output : nullptr);
  std::vector<Tensor> d_inputs(run.inputs.size());
  for (std::size_t i = 0; i < d_inputs.size(); ++i)
    if (wanted[i]) d_inputs[i] = Tensor(run.inputs[i].spec());
  for (Tensor& d_input : d_inputs) backward.d_inputs.push_back(d_input.defined() ? &d_input : nullptr);
  op_.reference_backward(backward);
  return d_inputs;
}

std::vector<Bounded> ExactOp::backward(const std::vector<Bounded>& d_outputs, const std::vector<bool>& wanted) const {
  if (op_.as<FakeQuant>()) return quantizer_backward(d_outputs, wanted);
  if (is_choice(op_)) return choice_backward(d_outputs, wanted);
  if (is_sum_of_products(op_)) return sums_backward(d_outputs, wanted);
  return trial_backward(d_outputs, wanted);
}

/// The inputs' magnitudes; of Sub the second one's is subtracted, so that magnitudes add up.
std::vector<Tensor> ExactOp::magnitudes(bool with_errors) const {
  std::vector<Tensor> result;
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    if (!is_float(inputs_[k].value)) {
      result.push_back(inputs_[k].value);
      continue;
    }
    Tensor magnitude = magnitude_of(inputs_[k].value, with_errors ? inputs_[k].error : Tensor());
    if (k == 1 && op_.as<layers::Sub>())
      for (double& value : magnitude.values<double>()) value = -value;
    result.push_back(magnitude);
  }
  return result;
}

/// The number of summands of an output.
double ExactOp::terms_forward() const {
  if (is_convolution(op_)) {
    const Shape& filter = inputs_[1].value.shape();
    return static_cast<double>(filter[0] * filter[1] * (op_.as<layers::Conv2d>() ? filter[2] : 1));
  }
  if (op_.as<layers::MatMul>()) {
    std::vector<TensorSpec> specs;
    for (const Bounded& input : inputs_) specs.push_back({input.value.shape()});
    return static_cast<double>(multiply_adds_of(op_, specs)) / count_in(exact_.outputs[0]);
  }
  if (const auto* pool = op_.as<layers::AvgPool>()) return static_cast<double>(pool->window[0] * pool->window[1]);
  if (op_.as<layers::Mean>()) return count_in(inputs_[0].value) / count_in(exact_.outputs[0]);
  return 1;
}

/// The number of summands of an element of an input's gradient.
double ExactOp::terms_backward(std::size_t input) const {
  if (is_convolution(op_)) {
    const Shape& filter = inputs_[1].value.shape();
    const Shape& y = exact_.outputs[0].shape();
    return static_cast<double>(input == 0 ? filter[0] * filter[1] * filter[3] : y[0] * y[1] * y[2]);
  }
  if (op_.as<layers::MatMul>()) return terms_forward() * count_in(exact_.outputs[0]) / count_in(inputs_[input].value);
  if (op_.as<layers::AvgPool>()) return terms_forward();
  return std::max(1.0, count_in(exact_.outputs[0]) / count_in(inputs_[input].value));
}

/// The number of summands inside an op: a channel's for statistics, a row's for Softmax.
double ExactOp::terms_inside() const {
  const Tensor& x = inputs_[0].value.elements() > exact_.outputs[0].elements() ? inputs_[0].value : exact_.outputs[0];
  const auto channels = static_cast<double>(std::max<std::int64_t>(x.shape().channels(), 1));
  return gives_probabilities(op_) ? count_in(x) : count_in(x) / channels;
}

/// Adds the roundings of the terms of d_x = gamma / sigma * (d_y - mean(d_y) - x^ * mean(d_y * x^)): with few rows the
/// terms cancel nearly to nothing, whatever the inputs, and their roundings stay.
void ExactOp::add_statistics_rounding(Bounded& d_x, const Bounded& d_y) const {
  const auto& attributes = *op_.as<layers::BatchNorm>();
  if (!attributes.uses_batch(settings_.phase) || !d_x.value.defined() || !d_y.value.defined()) return;
  const std::int64_t channels = d_x.value.shape().channels(), elements = d_x.value.elements();
  const double *x = inputs_[0].value.data<double>(), *gamma = inputs_[1].value.data<double>();
  const double *mean = exact_.outputs[1].data<double>(), *variance = exact_.outputs[2].data<double>();
  for (std::int64_t c = 0; c < channels; ++c) {
    double arriving = 0;
    for (std::int64_t i = c; i < elements; i += channels)
      arriving = std::max(arriving, std::abs(d_y.value.data<double>()[i]) + error_at(d_y.error, i));
    const double sigma = std::sqrt(variance[c] + attributes.epsilon);
    for (std::int64_t i = c; i < elements; i += channels)
      d_x.error.data<double>()[i] +=
          4 * kRounding * std::abs(gamma[c]) / sigma * arriving * (2 + std::abs(x[i] - mean[c]) / sigma);
  }
}

/// The relative rounding of a sum of so many products.
double ExactOp::relative_error(double terms, double factors_rounding) const {
  if (only_moves(op_)) return 0;
  return (terms + 4) * kRounding + (as<MultipliesAndAdds>(op_) != nullptr ? factors_rounding : 0);
}

void ExactOp::bound_sums() {
  const bool inexact = std::ranges::any_of(inputs_, [](const Bounded& input) { return !input.is_exact(); });
  if (only_moves(op_) && !inexact) return;
  const double relative = relative_error(terms_forward(), settings_.forward_rounding);
  const std::vector<Tensor> magnitudes = forward(this->magnitudes(false)).outputs;
  std::vector<Tensor> wider = magnitudes;
  if (inexact) wider = forward(this->magnitudes(true)).outputs;
  for (std::size_t k = 0; k < outputs_.size(); ++k)
    if (is_float(outputs_[k].value)) outputs_[k].error = sum_error(magnitudes[k], wider[k], relative);
  if (!may_mix_taps(op_, inputs_)) return;
  std::vector<Tensor> mixed = this->magnitudes(true);
  mixed[1] = sum_of_taps(mixed[1]);
  add_mixed_rounding(outputs_[0], forward(mixed).outputs[0], terms_forward() / 9);
}

/// Adds the roundings of a convolution by layers/kernels/winograd.h. Its transforms mix taps, so that up to 4 times
/// each pixel of a window meets each tap, most of which cancels: its bound is (n + 11) u 4 sum|a| sum|b| with n = the
/// number of channels, or of patches in the gradient of the filter. `mixed` is sum|a| sum|b|, `terms` n or more.
void ExactOp::add_mixed_rounding(Bounded& result, const Tensor& mixed, double terms) const {
  for (std::int64_t i = 0; i < mixed.elements(); ++i)
    result.error.data<double>()[i] += 4 * (terms + 11) * kRounding * mixed.data<double>()[i];
}

std::vector<Bounded> ExactOp::sums_backward(const std::vector<Bounded>& d_outputs,
                                            const std::vector<bool>& wanted) const {
  const std::vector<Tensor> exact = backward(exact_, values_of(d_outputs), wanted);
  Run run = exact_;
  run.inputs = magnitudes(false);
  std::vector<Tensor> d_magnitudes, d_wider;
  for (const Bounded& d_output : d_outputs) {
    d_magnitudes.push_back(magnitude_of(d_output.value, {}));
    d_wider.push_back(magnitude_of(d_output.value, d_output.error));
  }
  const std::vector<Tensor> sums = backward(run, d_magnitudes, wanted);
  run.inputs = magnitudes(true);
  const std::vector<Tensor> wider = backward(run, d_wider, wanted);
  std::vector<Bounded> result(exact.size());
  for (std::size_t k = 0; k < exact.size(); ++k) {
    if (!exact[k].defined()) continue;
    const double relative = relative_error(terms_backward(k), settings_.backward_rounding);
    result[k] = {.value = exact[k], .error = sum_error(sums[k], wider[k], relative), .disorder = {}};
  }
  if (!may_mix_taps(op_, inputs_)) return result;
  if (exact[0].defined()) {
    run.inputs[1] = sum_of_taps(run.inputs[1]);
    const Tensor mixed = backward(run, d_wider, {true, false})[0];
    add_mixed_rounding(result[0], mixed, terms_backward(0) / 9);
  }
  if (exact[1].defined()) add_mixed_rounding(result[1], sum_of_taps(wider[1]), terms_backward(1));
  return result;
}

/// What only chooses elements: Relu, Relu6, Clip, MaxPool; and what errors before it do to the choice.
void ExactOp::bound_choice() {
  const Bounded& x = inputs_[0];
  if (x.is_exact()) return;
  if (const auto* pool = op_.as<layers::MaxPool>()) {
    Tensor error(outputs_[0].value.shape(), DType::kFloat64);
    for_each_window(*pool, x.value.shape(), error.shape(), [&](std::int64_t i, const auto& taps) {
      for (const std::int64_t tap : taps)
        error.data<double>()[i] = std::max(error.data<double>()[i], x.error.data<double>()[tap]);
    });
    outputs_[0].error = error;
  } else {
    outputs_[0].error = x.error;
    outputs_[0].disorder = x.disorder;
  }
}

std::vector<Bounded> ExactOp::choice_backward(const std::vector<Bounded>& d_outputs,
                                              const std::vector<bool>& wanted) const {
  const Bounded& x = inputs_[0];
  const Bounded& d_y = d_outputs[0];
  const std::vector<Tensor> exact = backward(exact_, {d_y.value}, wanted);
  if (!exact[0].defined()) return {{}};
  Bounded d_x{.value = exact[0], .error = {}, .disorder = {}};
  // Windows that overlap add up.
  const auto* pool = op_.as<layers::MaxPool>();
  Tensor error(d_x.value.shape(), DType::kFloat64);
  double* e = error.data<double>();
  if (!d_y.is_exact()) {
    const std::vector<Tensor> passed = backward(exact_, {d_y.error}, wanted);
    std::ranges::copy(passed[0].values<double>(), e);
  }
  const auto arriving = [&](std::int64_t i) { return std::abs(d_y.value.data<double>()[i]) + error_at(d_y.error, i); };
  if (pool != nullptr) {
    const Tensor sums = backward(exact_, {magnitude_of(d_y.value, {})}, wanted)[0];
    const double terms = static_cast<double>(pool->window[0] * pool->window[1]);
    for (std::int64_t i = 0; i < error.elements(); ++i) e[i] += terms * kRounding * sums.data<double>()[i];
    if (x.is_exact()) return {{.value = d_x.value, .error = error, .disorder = {}}};
    const double* value = x.value.data<double>();
    for_each_window(*pool, x.value.shape(), d_y.value.shape(), [&](std::int64_t i, const auto& taps) {
      double least = -INFINITY;
      bool certain = true;
      for (const std::int64_t tap : taps) least = std::max(least, value[tap] - error_at(x.order_error(), tap));
      std::vector<std::int64_t> candidates;
      for (const std::int64_t tap : taps)
        if (value[tap] + error_at(x.order_error(), tap) >= least) {
          candidates.push_back(tap);
          certain = certain && error_at(x.order_error(), tap) == 0;
        }
      if (certain || candidates.size() < 2) return;
      for (const std::int64_t tap : candidates) e[tap] = std::max(e[tap], arriving(i));
    });
    return {{.value = d_x.value, .error = error, .disorder = {}}};
  }
  const Range<float> bounds = clamp_bounds(op_);
  for (std::int64_t i = 0; i < error.elements() && !x.is_exact(); ++i) {
    const double value = x.value.data<double>()[i], reach = x.error.data<double>()[i];
    if (reach > 0 && (std::abs(value - bounds.min) <= reach || std::abs(value - bounds.max) <= reach))
      e[i] = arriving(i);
  }
  d_x.error = error;
  return {d_x};
}

void ExactOp::bound_by_trial() {
  std::vector<Tensor> exact = exact_.outputs;
  exact.insert(exact.end(), exact_.updates.begin(), exact_.updates.end());
  if (exact.empty() || inputs_.empty()) return;
  Trials trials(exact);
  Random random(hash_text(op_.type()));
  for (int trial = 0; trial < kTrials; ++trial) {
    const Run run = forward(jolted_inputs(op_, inputs_, random));
    std::vector<Tensor> tried = run.outputs;
    tried.insert(tried.end(), run.updates.begin(), run.updates.end());
    trials.add(tried);
  }
  const double terms = terms_inside();
  for (std::size_t k = 0; k < outputs_.size(); ++k) outputs_[k] = trials.bounded(k, terms);
  for (std::size_t k = 0; k < updates_.size(); ++k) updates_[k] = trials.bounded(outputs_.size() + k, terms);
}

std::vector<Bounded> ExactOp::trial_backward(const std::vector<Bounded>& d_outputs,
                                             const std::vector<bool>& wanted) const {
  const std::vector<Tensor> exact = backward(exact_, values_of(d_outputs), wanted);
  double arriving = 0;
  for (const Bounded& d_output : d_outputs)
    if (d_output.value.defined())
      for (const double value : d_output.value.values<double>()) arriving = std::max(arriving, std::abs(value));
  Trials trials(exact);
  Random random(hash_text(op_.type()));
  for (int trial = 0; trial < kTrials; ++trial)
    trials.add(backward(forward(jolted_inputs(op_, inputs_, random)), jolted(d_outputs, random), wanted));
  std::vector<Bounded> result(exact.size());
  for (std::size_t k = 0; k < exact.size(); ++k)
    if (exact[k].defined()) result[k] = trials.bounded(k, terms_inside(), arriving);
  if (gives_probabilities(op_) || output_range(op_.type())) add_probability_rounding(result[0], arriving);
  if (op_.as<layers::BatchNorm>()) add_statistics_rounding(result[0], d_outputs[0]);
  return result;
}

/// A probability near 1 has a rounding of its own, which differences of probabilities and gradients keep though they
/// cancel: no move of the logits makes it. So does a result near the end of its known range.
void ExactOp::add_probability_rounding(Bounded& d_logits, double arriving) const {
  if (!d_logits.value.defined()) return;
  const Shape& shape = d_logits.value.shape();
  const auto* loss = op_.as<layers::SoftmaxCrossEntropy>();
  const double rows = loss ? static_cast<double>(shape[0]) : 1;
  const bool weighted = loss && !loss->class_weights.empty();
  const double most = weighted ? std::ranges::max(loss->class_weights) : 1;
  for (double& e : d_logits.error.values<double>()) e += 4 * kRounding * most * arriving / rows;
}

}  // namespace miniqat::bench
