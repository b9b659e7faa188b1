#pragma once

#include <limits>
#include <vector>

#include "core/graph/op.h"
#include "core/graph/op_queries.h"
#include "core/tensors/tensor.h"
#include "quantize/fake_quant.h"

namespace miniqat::testing {

/// On which backend, in which precision.
struct Way {
  Backend backend;
  DType precision;
};

/// The fast path, and the reference in both precisions.
inline constexpr Way kWays[] = {
    {Backend::kFast, DType::kFloat32}, {Backend::kReference, DType::kFloat32}, {Backend::kReference, DType::kFloat64}};

/// One FakeQuant with the contexts that a session would make for it: stored range, staged updates and state.
class Quantizer {
 public:
  Quantizer(quantize::FakeQuantAttributes attributes, Backend backend, DType precision, const Shape& x,
            const Shape& range)
      : op_(quantize::FakeQuant::make(attributes)),
        fast_(backend == Backend::kFast),
        min_(range, precision),
        max_(range, precision),
        count_(Shape{}, precision),
        y_(x, precision),
        precision_(precision) {
    for (const TensorSpec& spec : saved_by(*op_, std::vector<TensorSpec>{{x, precision}, min_.spec(), max_.spec()}))
      saved_.emplace_back(spec);
  }

  void set_range(std::vector<double> min, std::vector<double> max) {
    min_ = Tensor::from(min_.shape(), min).to(precision_);
    max_ = Tensor::from(max_.shape(), max).to(precision_);
  }

  /// Runs forward, then backward on dy, then commits what was staged, as after a training step.
  void step(const std::vector<double>& x, bool training = true, bool quantizing = true,
            const std::vector<double>& dy = {}) {
    const Tensor input = Tensor::from(y_.shape(), x).to(precision_).clone();
    Tensor new_min = min_.clone(), new_max = max_.clone(), new_count = count_.clone();
    ForwardContext forward;
    forward.inputs = {&input, &min_, &max_};
    forward.outputs = {&y_};
    if (fast_)
      for (Tensor& saved : saved_) forward.saved.push_back(&saved);
    if (training && !op_->traits().updated_inputs.empty()) forward.updates = {nullptr, &new_min, &new_max};
    if (!state_of(*op_).empty()) forward.state = {&new_count};
    forward.training = training;
    forward.quantization_step = quantizing ? std::numeric_limits<std::int64_t>::max() : -1;
    fast_ ? op_->forward(forward) : op_->reference_forward(forward);
    if (!dy.empty()) backward(forward, dy);
    if (!training) return;
    min_ = new_min;
    max_ = new_max;
    count_ = new_count;
  }

  std::vector<double> y() const { return doubles(y_); }
  std::vector<double> min() const { return doubles(min_); }
  std::vector<double> max() const { return doubles(max_); }
  double count() const { return doubles(count_)[0]; }
  void set_count(double count) { count_ = Tensor::scalar(count).to(precision_); }
  std::vector<double> dx, d_min, d_max;

 private:
  static std::vector<double> doubles(const Tensor& tensor) {
    const Tensor wide = tensor.to(DType::kFloat64);
    return {wide.values<double>().begin(), wide.values<double>().end()};
  }

  void backward(const ForwardContext& forward, const std::vector<double>& dy) {
    const Tensor d_y = Tensor::from(y_.shape(), dy).to(precision_);
    Tensor d_x(y_.spec()), d_low(min_.spec()), d_high(max_.spec());
    const bool ends = op_->traits().no_gradient.empty();
    const BackwardContext context{&forward, {&d_y}, {&d_x, ends ? &d_low : nullptr, ends ? &d_high : nullptr}};
    fast_ ? op_->backward(context) : op_->reference_backward(context);
    dx = doubles(d_x);
    d_min = doubles(d_low);
    d_max = doubles(d_high);
  }

  std::shared_ptr<const Op> op_;
  bool fast_;
  Tensor min_, max_, count_, y_;
  DType precision_;
  std::vector<Tensor> saved_;
};

}  // namespace miniqat::testing
