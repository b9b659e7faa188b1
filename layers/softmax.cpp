#include "layers/softmax.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/graph/op.h"
#include "core/graph/op_interfaces.h"
#include "core/kernels/scratch.h"
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
    return {.forward_in_place = true, .backward_in_place = true, .backward_outputs = {0}};
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

void check_labels(const ForwardContext& context, std::int64_t classes) {
  const std::span<const std::int32_t> values = context.input(1).values<std::int32_t>();
  for (std::int64_t row = 0; row < std::ssize(values); ++row)
    if (values[row] < 0 || values[row] >= classes)
      fail("label ", values[row], " of row ", context.slice * std::ssize(values) + row, " is outside [0, ", classes,
           ")");
}

void check_weights(const std::vector<double>& weights, std::int64_t classes) {
  if (weights.empty()) return;
  if (std::ssize(weights) != classes)
    fail("class_weights has ", counted(weights.size(), "number"), " for ", counted(classes, "class"));
  for (const double weight : weights)
    if (!(weight >= 0 && std::isfinite(static_cast<float>(weight))))
      fail("class_weights must be finite and not negative, got ", weight);
  if (*std::ranges::max_element(weights) == 0) fail("class_weights are all 0");
}

/// How far the logit of the label is above the mean of the row.
double lead(const float* logits, std::int64_t classes, std::int32_t label) {
  return logits[label] - std::accumulate(logits, logits + classes, 0.0) / static_cast<double>(classes);
}

/// The loss of one row, without smoothing. Writes its softmax to `probabilities` unless that is null.
double row_loss(const float* logits, std::int64_t classes, std::int32_t label, float* probabilities) {
  float largest = logits[0];
  for (std::int64_t c = 1; c < classes; ++c) largest = logits[c] > largest ? logits[c] : largest;
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    const float power = std::exp(logits[c] - largest);
    sum += power;
    if (probabilities) probabilities[c] = power;
  }
  if (probabilities) {
    const float scale = static_cast<float>(1 / sum);
    for (std::int64_t c = 0; c < classes; ++c) probabilities[c] *= scale;
  }
  return std::log(sum) + (static_cast<double>(largest) - logits[label]);
}

class SoftmaxCrossEntropyOp final : public OpOf<SoftmaxCrossEntropy>, public MeasuresLoss {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    const double smoothing = attributes_.label_smoothing;
    if (!(smoothing >= 0 && smoothing < 1)) fail("label_smoothing must be in [0, 1), got ", smoothing);
    require_inputs(inputs, 2);
    require_float(inputs[0], "logits");
    require_rank(inputs, 0, 2, "logits");
    require_rank(inputs, 1, 1, "labels");
    const Shape& logits = inputs[0].shape;
    const Shape& labels = inputs[1].shape;
    if (inputs[1].dtype != DType::kInt32)
      fail("labels must be int32, are ", name_of(inputs[1].dtype), "; labels ", labels);
    if (labels[0] != logits[0])
      fail("logits have ", counted(logits[0], "row"), ", labels ", labels[0], "; logits ", logits, ", labels ", labels);
    if (logits.elements() == 0) fail("logits need at least one row and one class; logits ", logits);
    check_weights(attributes_.class_weights, logits[1]);
    return {{Shape{}, DType::kFloat32}};
  }

  OpTraits traits() const override { return {.backward_inputs = {1}, .no_gradient = {1}}; }

  LossInputs loss_inputs() const override { return {.prediction = 0, .target = 1, .values = TargetValues::kClasses}; }

  std::vector<TensorSpec> saved(std::span<const TensorSpec> inputs) const override { return {inputs[0]}; }

  void forward(const ForwardContext& context) const override {
    const std::int64_t rows = context.input(0).shape()[0];
    const std::int64_t classes = context.input(0).shape()[1];
    check_labels(context, classes);
    const float* logits = context.input(0).data<float>();
    const std::int32_t* labels = context.input(1).data<std::int32_t>();
    float* probabilities = context.saved.empty() ? nullptr : context.saved[0]->data<float>();
    const double smoothing = attributes_.label_smoothing;
    const std::vector<double>& weights = attributes_.class_weights;
    ScratchScope scope;
    const std::span<double> losses = scope.take<double>(rows);
    parallel_for(rows, row_grain(classes), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const float* row = logits + r * classes;
        losses[r] = row_loss(row, classes, labels[r], probabilities ? probabilities + r * classes : nullptr);
        if (smoothing > 0) losses[r] += smoothing * lead(row, classes, labels[r]);
        if (!weights.empty()) losses[r] *= weights[labels[r]];
      }
    });
    const double total = std::accumulate(losses.begin(), losses.end(), 0.0);
    *context.output(0).data<float>() = static_cast<float>(total / static_cast<double>(rows));
  }

  void backward(const BackwardContext& context) const override {
    if (!context.d_inputs[0]) return;
    const Tensor& saved = *context.forward->saved[0];
    const std::int64_t rows = saved.shape()[0];
    const std::int64_t classes = saved.shape()[1];
    const float* probabilities = saved.data<float>();
    const std::int32_t* labels = context.forward->input(1).data<std::int32_t>();
    const float mean_scale = *context.d_outputs[0]->data<float>() / static_cast<float>(rows);
    const std::vector<double>& weights = attributes_.class_weights;
    const auto kept = static_cast<float>(1 - attributes_.label_smoothing);
    const auto spread = static_cast<float>(attributes_.label_smoothing / static_cast<double>(classes));
    float* d_logits = context.d_inputs[0]->data<float>();
    parallel_for(rows, row_grain(classes), [=, &weights](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const float scale = weights.empty() ? mean_scale : mean_scale * static_cast<float>(weights[labels[r]]);
        const float* p = probabilities + r * classes;
        float* d = d_logits + r * classes;
        for (std::int64_t c = 0; c < classes; ++c) d[c] = (p[c] - spread) * scale;
        d[labels[r]] = (p[labels[r]] - spread - kept) * scale;
      }
    });
  }

  void reference_forward(const ForwardContext& context) const override {
    const Tensor& logits = context.input(0);
    check_labels(context, logits.shape()[1]);
    with_float_type(logits, [&]<class T>(T) {
      *context.output(0).data<T>() = reference::softmax_cross_entropy(
          logits.shape()[0], logits.shape()[1], logits.data<T>(), context.input(1).data<std::int32_t>(),
          attributes_.label_smoothing, attributes_.class_weights);
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    const Tensor& logits = context.forward->input(0);
    if (Tensor* d_logits = context.d_inputs[0])
      with_float_type(logits, [&]<class T>(T) {
        reference::softmax_cross_entropy_d_logits(logits.shape()[0], logits.shape()[1], logits.data<T>(),
                                                  context.forward->input(1).data<std::int32_t>(),
                                                  attributes_.label_smoothing, attributes_.class_weights,
                                                  *context.d_outputs[0]->data<T>(), d_logits->data<T>());
      });
  }
};

}  // namespace

std::shared_ptr<Op> Softmax::make(const Attributes& attributes) { return std::make_shared<SoftmaxOp>(attributes); }

std::shared_ptr<Op> SoftmaxCrossEntropy::make(const Attributes& attributes) {
  return std::make_shared<SoftmaxCrossEntropyOp>(attributes);
}

}  // namespace miniqat::layers
