// What only chooses elements: Relu, Relu6, Clip, MaxPool; and what errors before it do to the choice.

#include <algorithm>
#include <cmath>
#include <functional>

#include "layers/layers.h"
#include "quantize/clamp_bounds.h"
#include "quantize/judge/exact_math.h"
#include "quantize/judge/exact_op.h"

namespace miniqat::quantize {

Tensor magnitude_of(const Tensor& value, const Tensor& error) {
  if (!value.defined()) return {};
  Tensor magnitude(value.shape(), DType::kFloat64);
  for (std::int64_t i = 0; i < value.elements(); ++i)
    magnitude.data<double>()[i] = std::abs(value.data<double>()[i]) + error_at(error, i);
  return magnitude;
}

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

namespace {

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

}  // namespace

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

}  // namespace miniqat::quantize
