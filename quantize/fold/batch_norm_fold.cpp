#include "quantize/fold/batch_norm_fold.h"

#include <array>
#include <cmath>

#include "core/graph/op.h"
#include "core/graph/op_interfaces.h"
#include "core/kernels/scratch.h"
#include "core/tensors/dtype.h"
#include "core/tensors/eigen.h"
#include "core/text/error.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/reference/batch_norm_fold.h"

namespace miniqat::quantize {
namespace {

void require_epsilon(double epsilon) {
  if (!(epsilon >= 0 && std::isfinite(epsilon))) fail("epsilon must be at least 0 and finite, is ", epsilon);
  require_float32(epsilon, "epsilon");
}

/// All inputs are [c] with the same c; returns this number of outputs like them.
std::vector<TensorSpec> infer_vectors(std::span<const TensorSpec> inputs, std::span<const std::string_view> roles,
                                      std::size_t outputs) {
  require_inputs(inputs, roles.size());
  require_float(inputs);
  require_rank(inputs, 0, 1, roles[0]);
  for (std::size_t i = 1; i < inputs.size(); ++i)
    if (inputs[i].shape != inputs[0].shape)
      fail(roles[i], " must have the shape of ", roles[0], "; ", roles[0], " ", inputs[0].shape, ", ", roles[i], " ",
           inputs[i].shape);
  return std::vector<TensorSpec>(outputs, inputs[0]);
}

// The fast paths: the formulas of batch_norm_fold.h and docs/rewrite.md over all channels at once. The reference has
// them for one channel, in the same order of operations, so that both give the same bits.

ConstVectorMap<float> input(const ForwardContext& context, int i) { return vector_of<float>(context.input(i)); }

/// sqrt(variance + epsilon), away from zero as in the reference; NaN stays NaN.
auto sigma(const ConstVectorMap<float>& variance, double epsilon) {
  constexpr float kLeast = 1e-12f;
  const auto shifted = variance + static_cast<float>(epsilon);
  return (shifted < kLeast).select(kLeast, shifted).sqrt();
}

/// 0 where no gradient arrives.
ConstVectorMap<float> gradient(const BackwardContext& context, int output, ScratchScope& scope) {
  const Tensor* d = context.d_outputs[output];
  if (d != nullptr) return vector_of<float>(*d);
  return vector_of(std::span<const float>(scope.filled<float>(context.forward->input(0).elements(), 0.0f)));
}

template <class Formula>
void store(Tensor* tensor, const Formula& values) {
  if (tensor != nullptr) vector_of<float>(*tensor) = values;
}

template <class T>
T value_at(const Tensor& tensor, std::int64_t c) {
  return tensor.data<T>()[c];
}

/// 0 where no gradient arrives.
template <class T>
T gradient_at(const Tensor* tensor, std::int64_t c) {
  return tensor == nullptr ? T(0) : tensor->data<T>()[c];
}

template <class T>
void put(Tensor* tensor, std::int64_t c, T value) {
  if (tensor != nullptr) tensor->data<T>()[c] = value;
}

class BatchNormFoldOp final : public OpOf<BatchNormFold> {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    constexpr std::array<std::string_view, 4> kRoles = {"gamma", "beta", "mean", "variance"};
    require_epsilon(attributes_.epsilon);
    return infer_vectors(inputs, kRoles, 2);
  }

  OpTraits traits() const override { return {.backward_inputs = {0, 2, 3}, .variance_inputs = {3}}; }

  void forward(const ForwardContext& context) const override {
    const auto gamma = input(context, 0), beta = input(context, 1), mean = input(context, 2);
    const auto multiplier = gamma / sigma(input(context, 3), attributes_.epsilon);
    store(context.outputs[0], multiplier);
    store(context.outputs[1], beta - mean * multiplier);
  }

  void backward(const BackwardContext& context) const override {
    const ForwardContext& forward = *context.forward;
    ScratchScope scope;
    const auto gamma = input(forward, 0), mean = input(forward, 2);
    const auto s = sigma(input(forward, 3), attributes_.epsilon);
    const auto d_multiplier = gradient(context, 0, scope), d_bias = gradient(context, 1, scope);
    // The bias, too, holds the multiplier.
    const auto d_all = d_multiplier - d_bias * mean;
    store(context.d_inputs[0], d_all / s);
    store(context.d_inputs[1], d_bias);
    store(context.d_inputs[2], -d_bias * gamma / s);
    store(context.d_inputs[3], -d_all * gamma / (2 * s * s * s));
  }

  void reference_forward(const ForwardContext& context) const override {
    with_float_type(context.input(0), [&]<class T>(T) {
      const auto at = [&](int i, std::int64_t c) { return value_at<T>(context.input(i), c); };
      for (std::int64_t c = 0; c < context.input(0).elements(); ++c) {
        const auto folded = reference::fold(at(0, c), at(1, c), at(2, c), at(3, c), attributes_.epsilon);
        put(context.outputs[0], c, folded.multiplier);
        put(context.outputs[1], c, folded.bias);
      }
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    const ForwardContext& forward = *context.forward;
    with_float_type(forward.input(0), [&]<class T>(T) {
      const auto at = [&](int i, std::int64_t c) { return value_at<T>(forward.input(i), c); };
      for (std::int64_t c = 0; c < forward.input(0).elements(); ++c) {
        const auto d =
            reference::fold_backward(at(0, c), at(2, c), at(3, c), attributes_.epsilon,
                                     gradient_at<T>(context.d_outputs[0], c), gradient_at<T>(context.d_outputs[1], c));
        put(context.d_inputs[0], c, d.d_gamma);
        put(context.d_inputs[1], c, d.d_beta);
        put(context.d_inputs[2], c, d.d_mean);
        put(context.d_inputs[3], c, d.d_variance);
      }
    });
  }
};

class BatchNormCorrectionOp final : public OpOf<BatchNormCorrection>, public TakesShortcuts {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    constexpr std::array<std::string_view, 5> kRoles = {"gamma", "mean", "variance", "moving_mean", "moving_variance"};
    require_epsilon(attributes_.epsilon);
    if (attributes_.freeze_delay < -1)
      fail("freeze_delay must be a step or -1 for never, is ", attributes_.freeze_delay);
    return infer_vectors(inputs, kRoles, 3);
  }

  OpTraits traits() const override {
    OpTraits traits{.backward_inputs = {0, 1, 2, 3, 4}, .no_gradient = {3, 4}, .variance_inputs = {2, 4}};
    if (attributes_.freeze_delay >= 0) traits.delays = {attributes_.freeze_delay};
    return traits;
  }

  /// In a folded layer (see folded_layer.h) two of the three phases need only one of its two convolutions:
  /// - while the weights' quantizer is off, the BatchNorm's own output equals the output of add_fold;
  /// - if the moving statistics normalise, recip is 1 and offset 0. The layer's output needs no correction, and the
  ///   batch's statistics have no reader, as BatchNorm knows.
  /// In between, the addition of offset 0 is left out.
  std::vector<Shortcut> shortcuts(const Node& self, const Phase& phase) const override {
    const std::optional<FoldedLayer> folded = find_folded_layer(self);
    if (!folded) return {};
    std::vector<Shortcut> shortcuts;
    const auto replace = [&](const Node& node, Output taken) {
      for (const Use& use : node.uses()) shortcuts.push_back({use, taken});
    };
    if (!phase.training || attributes_.is_frozen(phase))
      replace(*folded->correction_add, folded->layer_output);
    else if (!quantizes_weights(*folded, phase.quantization_step))
      replace(*folded->add_fold, folded->batch_norm->output());
    else
      replace(*folded->correction_add, folded->post_conv_mul->output());
    return shortcuts;
  }

  void forward(const ForwardContext& context) const override {
    const auto gamma = input(context, 0), mean = input(context, 1), moving_mean = input(context, 3);
    const auto sigma_b = sigma(input(context, 2), attributes_.epsilon);
    const auto sigma_m = sigma(input(context, 4), attributes_.epsilon);
    store(context.outputs[0], sigma_b / sigma_m);
    if (attributes_.is_frozen(context)) {
      store(context.outputs[1], Eigen::ArrayXf::Ones(gamma.size()));
      store(context.outputs[2], gamma * (mean / sigma_b - moving_mean / sigma_m));
    } else {
      store(context.outputs[1], sigma_m / sigma_b);
      store(context.outputs[2], Eigen::ArrayXf::Zero(gamma.size()));
    }
  }

  void backward(const BackwardContext& context) const override {
    const ForwardContext& forward = *context.forward;
    ScratchScope scope;
    const auto gamma = input(forward, 0), mean = input(forward, 1), moving_mean = input(forward, 3);
    const auto sigma_b = sigma(input(forward, 2), attributes_.epsilon);
    const auto sigma_m = sigma(input(forward, 4), attributes_.epsilon);
    const auto d_scale = gradient(context, 0, scope), d_recip = gradient(context, 1, scope),
               d_offset = gradient(context, 2, scope);
    // d_variance = d_sigma_b / (2 sigma_b).
    if (attributes_.is_frozen(forward)) {
      store(context.d_inputs[0], d_offset * (mean / sigma_b - moving_mean / sigma_m));
      store(context.d_inputs[1], d_offset * gamma / sigma_b);
      store(context.d_inputs[2], (d_scale / sigma_m - d_offset * gamma * mean / (sigma_b * sigma_b)) / (2 * sigma_b));
    } else {
      store(context.d_inputs[0], Eigen::ArrayXf::Zero(gamma.size()));
      store(context.d_inputs[1], Eigen::ArrayXf::Zero(gamma.size()));
      store(context.d_inputs[2], (d_scale / sigma_m - d_recip * sigma_m / (sigma_b * sigma_b)) / (2 * sigma_b));
    }
  }

  void reference_forward(const ForwardContext& context) const override {
    with_float_type(context.input(0), [&]<class T>(T) {
      const auto at = [&](int i, std::int64_t c) { return value_at<T>(context.input(i), c); };
      for (std::int64_t c = 0; c < context.input(0).elements(); ++c) {
        const auto corrected = reference::correct(at(0, c), at(1, c), at(2, c), at(3, c), at(4, c), attributes_.epsilon,
                                                  attributes_.is_frozen(context));
        put(context.outputs[0], c, corrected.scale);
        put(context.outputs[1], c, corrected.recip);
        put(context.outputs[2], c, corrected.offset);
      }
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    const ForwardContext& forward = *context.forward;
    with_float_type(forward.input(0), [&]<class T>(T) {
      const auto at = [&](int i, std::int64_t c) { return value_at<T>(forward.input(i), c); };
      for (std::int64_t c = 0; c < forward.input(0).elements(); ++c) {
        const reference::CorrectedChannel<T> arriving = {gradient_at<T>(context.d_outputs[0], c),
                                                         gradient_at<T>(context.d_outputs[1], c),
                                                         gradient_at<T>(context.d_outputs[2], c)};
        const auto d = reference::correct_backward(at(0, c), at(1, c), at(2, c), at(3, c), at(4, c),
                                                   attributes_.epsilon, attributes_.is_frozen(forward), arriving);
        put(context.d_inputs[0], c, d.d_gamma);
        put(context.d_inputs[1], c, d.d_mean);
        put(context.d_inputs[2], c, d.d_variance);
      }
    });
  }
};

class BatchNormScaleOp final : public OpOf<BatchNormScale> {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    constexpr std::array<std::string_view, 2> kRoles = {"gamma", "moving_variance"};
    require_epsilon(attributes_.epsilon);
    if (!(attributes_.floor > 0 && std::isfinite(attributes_.floor)))
      fail("floor must be above 0 and finite, is ", attributes_.floor);
    require_float32(attributes_.floor, "floor");
    return infer_vectors(inputs, kRoles, 2);
  }

  OpTraits traits() const override { return {.no_gradient = {0, 1}, .variance_inputs = {1}}; }

  void forward(const ForwardContext& context) const override {
    const auto floor = static_cast<float>(attributes_.floor);
    const auto gamma = input(context, 0);
    const auto signed_floor = gamma.unaryExpr([floor](float of) { return std::copysign(floor, of); });
    const auto scale =
        (gamma.abs() < floor).select(signed_floor, gamma) / sigma(input(context, 1), attributes_.epsilon);
    store(context.outputs[0], scale);
    store(context.outputs[1], 1 / scale);
  }

  void reference_forward(const ForwardContext& context) const override {
    with_float_type(context.input(0), [&]<class T>(T) {
      for (std::int64_t c = 0; c < context.input(0).elements(); ++c) {
        const T scale = reference::weight_scale(value_at<T>(context.input(0), c), value_at<T>(context.input(1), c),
                                                attributes_.epsilon, attributes_.floor);
        put(context.outputs[0], c, scale);
        put(context.outputs[1], c, 1 / scale);
      }
    });
  }
};

}  // namespace

std::shared_ptr<Op> BatchNormFold::make(const Attributes& attributes) {
  return std::make_shared<BatchNormFoldOp>(attributes);
}

bool BatchNormCorrectionAttributes::is_frozen(const Phase& phase) const {
  return phase.training && freeze_delay >= 0 && phase.quantization_step >= freeze_delay;
}

std::shared_ptr<Op> BatchNormCorrection::make(const Attributes& attributes) {
  return std::make_shared<BatchNormCorrectionOp>(attributes);
}

std::shared_ptr<Op> BatchNormScale::make(const Attributes& attributes) {
  return std::make_shared<BatchNormScaleOp>(attributes);
}

}  // namespace miniqat::quantize
