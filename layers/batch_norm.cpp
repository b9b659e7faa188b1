#include "layers/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/graph/op.h"
#include "core/graph/op_interfaces.h"
#include "core/tensors/dtype.h"
#include "core/text/error.h"
#include "layers/chain/chain_batch_norm.h"
#include "layers/chain/chain_fusion.h"
#include "layers/kernels/column_statistics.h"
#include "layers/reference/batch_norm.h"

namespace miniqat::layers {
namespace {

/// x seen as [rows, channels].
struct Extents {
  std::int64_t rows;
  std::int64_t channels;

  explicit Extents(const Shape& x) : rows(x.elements() / x.channels()), channels(x.channels()) {}
};

template <class T>
const T* data_or_null(const Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->data<T>();
}

/// How x's gradient follows from the others, per channel.
template <class T>
std::vector<reference::InputGradient<T>> reference_input_gradient(const BackwardContext& context, bool from_batch,
                                                                  std::int64_t rows, double epsilon, const T* d_gamma,
                                                                  const T* d_beta) {
  const T* gamma = context.forward->input(1).data<T>();
  const T* variance = context.forward->output(2).data<T>();
  const T* d_mean = data_or_null<T>(context.d_outputs[1]);
  const T* d_variance = data_or_null<T>(context.d_outputs[2]);
  std::vector<reference::InputGradient<T>> result;
  for (std::int64_t c = 0; c < context.forward->input(1).elements(); ++c) {
    const T inverse_sigma = reference::inverse_sigma(variance[c], epsilon);
    result.push_back(from_batch ? reference::InputGradient<T>::from_batch(rows, gamma[c], inverse_sigma, d_gamma[c],
                                                                          d_beta[c], d_mean != nullptr ? d_mean[c] : 0,
                                                                          d_variance != nullptr ? d_variance[c] : 0)
                                : reference::InputGradient<T>::from_moving(gamma[c], inverse_sigma));
  }
  return result;
}

/// The statistics that normalise, into outputs 1 and 2: the moving ones.
void copy_moving_statistics(const ForwardContext& context) {
  context.output(1).assign(context.input(3));
  context.output(2).assign(context.input(4));
}

/// Stages the moving statistics, from those of this run's tensor.
template <class T>
void reference_update_moving(const ForwardContext& context, std::int64_t rows, double decay) {
  const std::int64_t channels = context.output(1).elements();
  const T *mean = context.output(1).data<T>(), *variance = context.output(2).data<T>();
  if (context.update_of(3) != nullptr)
    reference::update_moving(rows, channels, decay, mean, variance, context.update_of(3)->data<T>(),
                             context.update_of(4)->data<T>());
  if (context.observed.empty()) return;
  const auto n = static_cast<double>(rows);
  for (std::int64_t c = 0; c < channels; ++c)
    context.observed[c] = {
        .kind = ShardStatistic::Kind::kMoments, .count = n, .a = double{mean[c]}, .b = n * double{variance[c]}};
}

/// Updates the moving statistics by those of a whole batch.
template <class T>
void reference_store_moving(const ForwardContext& context, double decay) {
  const std::span<const ShardStatistic> batch = context.observed;
  std::vector<T> mean, variance;
  for (const ShardStatistic& channel : batch) {
    mean.push_back(static_cast<T>(channel.a));
    variance.push_back(static_cast<T>(channel.b / channel.count));
  }
  reference::update_moving(static_cast<std::int64_t>(batch.front().count), std::ssize(batch), decay, mean.data(),
                           variance.data(), context.update_of(3)->data<T>(), context.update_of(4)->data<T>());
}

class BatchNormOp final : public OpOf<BatchNorm>,
                          public ObservesBatch,
                          public TakesShortcuts,
                          public RefusesRuns,
                          public ChainMember {
 public:
  using OpOf::OpOf;

  void take_defaults_of(int format_version) override {
    if (format_version == 1) attributes_.decay = 0.999;
  }
  /// So that a reader need not know what a version means by silence.
  bool writes_default(std::string_view attribute) const override { return attribute == "decay"; }

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 5);
    require_float(inputs);
    require_elements(inputs);
    const auto [epsilon, decay, is_training, freeze_delay, folds_late] = attributes_;
    if (!(epsilon >= 0 && std::isfinite(epsilon))) fail("epsilon must be at least 0 and finite, is ", epsilon);
    require_float32(epsilon, "epsilon");
    if (!(decay >= 0 && decay <= 1)) fail("decay must be in 0..1, is ", decay);
    if (freeze_delay < -1) fail("freeze_delay must be a step or -1 for never, is ", freeze_delay);
    const Shape& x = inputs[0].shape;
    if (x.rank() < 1) fail("input must have a channel axis; input ", x);
    constexpr std::array<std::string_view, 5> kRoles = {"input", "gamma", "beta", "moving_mean", "moving_variance"};
    for (std::size_t i = 1; i < inputs.size(); ++i)
      if (inputs[i].shape != Shape{x.channels()})
        fail(kRoles[i], " must have the shape [", x.channels(), "] of the input's channels; input ", x, ", ", kRoles[i],
             " ", inputs[i].shape);
    return {{x}, {Shape{x.channels()}}, {Shape{x.channels()}}};
  }

  OpTraits traits() const override {
    OpTraits traits{.backward_in_place = true,
                    .gradient_over_input = 0,
                    .backward_inputs = {0, 1},
                    .no_gradient = {3, 4},
                    .optional_outputs = {0, 1, 2},
                    .variance_inputs = {4}};
    if (attributes_.is_training) traits.updated_inputs = {3, 4};
    if (attributes_.is_training && attributes_.freeze_delay >= 0) traits.delays = {attributes_.freeze_delay};
    return traits;
  }

  std::vector<TensorSpec> saved(std::span<const TensorSpec> inputs) const override {
    return {{Shape{2, inputs[0].shape.channels()}}};
  }

  bool updates(int, const Phase& phase) const override { return attributes_.uses_batch(phase); }

  std::size_t observations(std::span<const TensorSpec> inputs, const Phase& phase) const override {
    return attributes_.uses_batch(phase) ? static_cast<std::size_t>(inputs[1].shape.elements()) : 0;
  }

  void store_observed(const ForwardContext& context, Backend backend) const override {
    if (backend == Backend::kFast) return store_moments({attributes_}, context, context.observed);
    with_float_type(*context.update_of(3), [&]<class T>(T) { reference_store_moving<T>(context, attributes_.decay); });
  }

  /// Outputs 1 and 2 are copies of the moving statistics unless they come from the batch: whoever reads only these
  /// needs neither this op nor its x.
  std::vector<Shortcut> shortcuts(const Node& self, const Phase& phase) const override {
    if (attributes_.uses_batch(phase)) return {};
    std::vector<Shortcut> shortcuts;
    for (const int i : {1, 2})
      for (const Use& use : self.uses(i)) shortcuts.push_back({use, self.input(i + 2)});
    return shortcuts;
  }

  void check_run(std::span<const TensorSpec> inputs, const Phase& phase) const override {
    const Shape& x = inputs[0].shape;
    if (attributes_.uses_batch(phase) && Extents(x).rows == 1)
      fail("sees one number a channel in a training step: input ", x, x.rank() > 1 ? concat(", a batch of ", x[0]) : "",
           "; less its own mean that is 0, so every output would be beta; train with a larger batch");
  }

  std::optional<ChainRole> chain_role() const override { return chain_role::Normalization{attributes_}; }

  void forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    const auto [rows, channels] = Extents(x.shape());
    ScratchScope scope;
    ChannelMoments batch;
    if (attributes_.uses_batch(context)) {
      batch = {scope.take<float>(channels), scope.take<float>(channels)};
      column_moments(x.data<float>(), rows, channels, batch.mean.data(), batch.variance.data(), nullptr, nullptr);
    }
    const ChainMap map = normalisation({attributes_}, context, batch, scope);
    if (Tensor* y = context.outputs[0])
      chain_forward({.x = x.data<float>(), .y = y->data<float>(), .n = x.elements(), .map = map});
  }

  void backward(const BackwardContext& context) const override {
    const Tensor& x = context.forward->input(0);
    Tensor* d_x = context.d_inputs[0];
    ScratchScope scope;
    normalisation_backward({attributes_}, context,
                           {.d_y = data_or_null<float>(context.d_outputs[0]),
                            .n = x.elements(),
                            .width = ChannelRow::width(x.shape().channels()),
                            .d_x = d_x == nullptr ? nullptr : d_x->data<float>()},
                           scope);
  }

  void reference_forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    with_float_type(x, [&]<class T>(T) {
      const auto [rows, channels] = Extents(x.shape());
      T* mean = context.output(1).data<T>();
      T* variance = context.output(2).data<T>();
      if (attributes_.uses_batch(context)) {
        reference::batch_statistics(rows, channels, x.data<T>(), mean, variance);
        reference_update_moving<T>(context, rows, attributes_.decay);
      } else {
        copy_moving_statistics(context);
      }
      reference::batch_norm(rows, channels, attributes_.epsilon, x.data<T>(), context.input(1).data<T>(),
                            context.input(2).data<T>(), mean, variance, context.output(0).data<T>());
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    const Tensor& x = context.forward->input(0);
    const Tensor d_y = context.d_outputs[0] != nullptr ? *context.d_outputs[0] : Tensor(x.spec());
    with_float_type(x, [&]<class T>(T) {
      const auto [rows, channels] = Extents(x.shape());
      const T* mean = context.forward->output(1).data<T>();
      const T* variance = context.forward->output(2).data<T>();
      std::vector<T> d_gamma(channels);
      std::vector<T> d_beta(channels);
      reference::batch_norm_backward_parameters(rows, channels, attributes_.epsilon, x.data<T>(), d_y.data<T>(), mean,
                                                variance, d_gamma.data(), d_beta.data());
      if (context.d_inputs[1] != nullptr) std::ranges::copy(d_gamma, context.d_inputs[1]->data<T>());
      if (context.d_inputs[2] != nullptr) std::ranges::copy(d_beta, context.d_inputs[2]->data<T>());
      if (context.d_inputs[0] == nullptr) return;
      const auto gradient = reference_input_gradient(context, attributes_.uses_batch(*context.forward), rows,
                                                     attributes_.epsilon, d_gamma.data(), d_beta.data());
      reference::batch_norm_backward_input(rows, channels, x.data<T>(), mean, d_y.data<T>(), gradient.data(),
                                           context.d_inputs[0]->data<T>());
    });
  }
};

}  // namespace

bool BatchNormAttributes::uses_batch(const Phase& phase) const {
  const bool frozen = freeze_delay >= 0 && phase.quantization_step >= freeze_delay;
  return phase.training && is_training && !frozen;
}

std::shared_ptr<Op> BatchNorm::make(const Attributes& attributes) { return std::make_shared<BatchNormOp>(attributes); }

}  // namespace miniqat::layers
