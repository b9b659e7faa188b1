#include "layers/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/graph.h"
#include "core/node_check.h"
#include "core/parallel.h"
#include "layers/chain_fusion.h"
#include "layers/padding.h"
#include "layers/reference/batch_norm.h"

namespace miniqat::layers {
namespace {

/// x seen as [rows, channels].
struct Extents {
  std::int64_t rows;
  std::int64_t channels;

  explicit Extents(const Shape& x) : rows(x.elements() / x.channels()), channels(x.channels()) {}
  /// Rows that make a worthwhile piece of work for a thread.
  std::int64_t grain() const { return std::max<std::int64_t>(1, kPointwiseGrain / channels); }
};

/// Sums run in float32 over blocks of this many rows, which stay in cache, and in float64 over the blocks.
constexpr std::int64_t kBlockRows = 64;

/// Calls reduce(part, begin, end) for each thread's share of the rows and then merge(part) in order: partial results
/// are merged in the same order every time.
template <class Reduce, class Merge>
void reduce_rows(const Extents& extents, int parts, const Reduce& reduce, const Merge& merge) {
  parallel_for(parts, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t part = first; part < last; ++part)
      reduce(part, extents.rows * part / parts, extents.rows * (part + 1) / parts);
  });
  for (std::int64_t part = 0; part < parts; ++part) merge(part);
}

/// Count, mean and sum of squared deviations of some rows, per channel.
struct Moments {
  std::int64_t rows = 0;
  std::vector<double> mean;
  std::vector<double> squares;

  explicit Moments(std::int64_t channels) : mean(channels, 0.0), squares(channels, 0.0) {}

  /// The moments of two sets of rows together (Chan, Golub and LeVeque 1979): unlike a sum of squares, exact also where
  /// the mean is large beside the deviation.
  template <class Number>
  void merge(std::int64_t other_rows, const double* other_mean, const Number* other_squares) {
    const double all = static_cast<double>(rows + other_rows);
    const double share = static_cast<double>(other_rows) / all;
    for (std::size_t c = 0; c < mean.size(); ++c) {
      const double delta = other_mean[c] - mean[c];
      mean[c] += delta * share;
      squares[c] += other_squares[c] + delta * delta * static_cast<double>(rows) * share;
    }
    rows += other_rows;
  }
};

// The first row of a block serves as its origin: float32 sums of differences stay accurate where the mean is large.

void add_rows(const float* __restrict x, std::int64_t rows, std::int64_t channels, float* __restrict sum) {
  for (std::int64_t r = 1; r < rows; ++r)
    for (std::int64_t c = 0; c < channels; ++c) sum[c] += x[r * channels + c] - x[c];
}

void add_squares(const float* __restrict x, const float* __restrict mean, std::int64_t rows, std::int64_t channels,
                 float* __restrict squares) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < channels; ++c) {
      const float deviation = x[r * channels + c] - x[c] - mean[c];
      squares[c] += deviation * deviation;
    }
}

void batch_statistics(const Extents& extents, const float* x, float* mean, float* variance) {
  const auto [rows, channels] = extents;
  const int parts = parallel_parts(rows, extents.grain());
  std::vector<Moments> partial(parts, Moments(channels));
  Moments total(channels);
  const auto reduce = [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    std::vector<float> from_origin(channels);
    std::vector<float> squares(channels);
    std::vector<double> block_mean(channels);
    for (std::int64_t row = begin; row < end; row += kBlockRows) {
      const std::int64_t count = std::min(kBlockRows, end - row);
      const float* block = x + row * channels;
      std::ranges::fill(from_origin, 0.0f);
      std::ranges::fill(squares, 0.0f);
      add_rows(block, count, channels, from_origin.data());
      for (std::int64_t c = 0; c < channels; ++c) {
        from_origin[c] /= static_cast<float>(count);
        block_mean[c] = static_cast<double>(block[c]) + from_origin[c];
      }
      add_squares(block, from_origin.data(), count, channels, squares.data());
      partial[part].merge(count, block_mean.data(), squares.data());
    }
  };
  reduce_rows(extents, parts, reduce, [&](std::int64_t part) {
    total.merge(partial[part].rows, partial[part].mean.data(), partial[part].squares.data());
  });
  for (std::int64_t c = 0; c < channels; ++c) {
    mean[c] = static_cast<float>(total.mean[c]);
    variance[c] = static_cast<float>(total.squares[c] / static_cast<double>(rows));
  }
}

std::vector<float> inverse_sigmas(std::int64_t channels, const float* variance, double epsilon) {
  std::vector<float> result(channels);
  for (std::int64_t c = 0; c < channels; ++c) result[c] = reference::inverse_sigma(variance[c], epsilon);
  return result;
}

void normalise_rows(const float* __restrict x, const float* __restrict mean, const float* __restrict slope,
                    const float* __restrict beta, std::int64_t rows, std::int64_t channels, float* __restrict y) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < channels; ++c)
      y[r * channels + c] = slope[c] * (x[r * channels + c] - mean[c]) + beta[c];
}

void add_gradient_rows(const float* __restrict x, const float* __restrict d_y, const float* __restrict mean,
                       std::int64_t rows, std::int64_t channels, float* __restrict d_beta, float* __restrict d_slope) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t i = r * channels + c;
      d_beta[c] += d_y[i];
      d_slope[c] += d_y[i] * (x[i] - mean[c]);
    }
}

struct ParameterGradients {
  std::vector<float> d_gamma;
  std::vector<float> d_beta;
};

ParameterGradients parameter_gradients(const Extents& extents, const float* x, const float* d_y, const float* mean,
                                       const std::vector<float>& inverse_sigma) {
  const auto [rows, channels] = extents;
  const int parts = parallel_parts(rows, extents.grain());
  // d_beta in the first half of each, d_gamma * sigma in the second.
  std::vector<std::vector<double>> partial(parts, std::vector<double>(2 * channels, 0.0));
  std::vector<double> total(2 * channels, 0.0);
  const auto reduce = [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    std::vector<float> block(2 * channels);
    for (std::int64_t row = begin; row < end; row += kBlockRows) {
      const std::int64_t at = row * channels;
      std::ranges::fill(block, 0.0f);
      add_gradient_rows(x + at, d_y + at, mean, std::min(kBlockRows, end - row), channels, block.data(),
                        block.data() + channels);
      for (std::size_t i = 0; i < block.size(); ++i) partial[part][i] += block[i];
    }
  };
  reduce_rows(extents, parts, reduce, [&](std::int64_t part) {
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += partial[part][i];
  });
  ParameterGradients result{std::vector<float>(channels), std::vector<float>(channels)};
  for (std::int64_t c = 0; c < channels; ++c) {
    result.d_beta[c] = static_cast<float>(total[c]);
    result.d_gamma[c] = static_cast<float>(total[channels + c] * inverse_sigma[c]);
  }
  return result;
}

/// d_x = slope * d_y + offset + curve * (x - mean), where d_y may be null for 0.
void input_gradient_rows(const float* __restrict x, const float* __restrict d_y, const float* __restrict mean,
                         const float* __restrict slope, const float* __restrict offset, const float* __restrict curve,
                         std::int64_t rows, std::int64_t channels, float* __restrict d_x) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t at = r * channels;
    for (std::int64_t c = 0; c < channels; ++c) d_x[at + c] = offset[c] + curve[c] * (x[at + c] - mean[c]);
    if (d_y == nullptr) continue;
    for (std::int64_t c = 0; c < channels; ++c) d_x[at + c] += slope[c] * d_y[at + c];
  }
}

template <class T>
const T* data_or_null(const Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->data<T>();
}

/// How x's gradient follows from the others, per channel.
template <class T>
std::vector<reference::InputGradient<T>> input_gradient(const BackwardContext& context, bool from_batch,
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

void fast_input_gradient(const Extents& extents, const std::vector<reference::InputGradient<float>>& gradient,
                         const float* x, const float* d_y, const float* mean, float* d_x) {
  const std::int64_t channels = extents.channels;
  std::vector<float> slope;
  std::vector<float> offset;
  std::vector<float> curve;
  for (const auto& channel : gradient) {
    slope.push_back(channel.slope);
    offset.push_back(channel.through_mean);
    curve.push_back(channel.through_variance);
  }
  parallel_for(extents.rows, extents.grain(), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * channels;
    input_gradient_rows(x + at, d_y == nullptr ? nullptr : d_y + at, mean, slope.data(), offset.data(), curve.data(),
                        end - begin, channels, d_x + at);
  });
}

/// The statistics that normalise, into outputs 1 and 2: the moving ones.
void copy_moving_statistics(const ForwardContext& context) {
  context.output(1).assign(context.input(3));
  context.output(2).assign(context.input(4));
}

template <class T>
void update_moving_statistics(const ForwardContext& context, std::int64_t rows, double decay) {
  if (context.updates.empty()) return;
  reference::update_moving(rows, context.output(1).elements(), decay, context.output(1).data<T>(),
                           context.output(2).data<T>(), context.updates[0]->data<T>(), context.updates[1]->data<T>());
}

}  // namespace

void BatchNormAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("epsilon", epsilon);
  visitor.field("decay", decay);
  visitor.field("is_training", is_training);
  visitor.field("freeze_delay", freeze_delay);
}

std::vector<TensorSpec> BatchNorm::infer(std::span<const TensorSpec> inputs) const {
  require_inputs(inputs, 5);
  require_float(inputs);
  require_elements(inputs);
  const auto [epsilon, decay, is_training, freeze_delay] = attributes_;
  if (!(epsilon >= 0 && std::isfinite(epsilon))) fail("epsilon must be at least 0 and finite, is ", epsilon);
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

OpTraits BatchNorm::traits() const {
  OpTraits traits;
  traits.backward_inputs = {0, 1};
  traits.backward_outputs = {1, 2};
  traits.no_gradient = {3, 4};
  if (attributes_.is_training) traits.updated_inputs = traits.freezing_inputs = {3, 4};
  traits.optional_outputs = {0};
  return traits;
}

std::optional<std::int64_t> BatchNorm::freeze_delay() const {
  const bool freezes = attributes_.is_training && attributes_.freeze_delay >= 0;
  return freezes ? std::optional(attributes_.freeze_delay) : std::nullopt;
}

/// Outputs 1 and 2 are copies of the moving statistics unless they come from the batch: whoever reads only these needs
/// neither this op nor its x.
std::vector<Shortcut> BatchNorm::shortcuts(const Node& self, const Phase& phase) const {
  const std::optional<std::int64_t> freeze = freeze_delay();
  if (phase.training && attributes_.is_training && !(freeze && phase.quantization_step >= *freeze)) return {};
  std::vector<Shortcut> shortcuts;
  for (const int i : {1, 2})
    for (const Use& use : self.uses(i)) shortcuts.push_back({use, self.input(i + 2)});
  return shortcuts;
}

std::optional<Fusion> BatchNorm::fuse(const Node& self, const FusionScope& scope) const {
  return fuse_chain(self, scope);
}

void BatchNorm::forward(const ForwardContext& context) const {
  const Tensor& x = context.input(0);
  const Extents extents(x.shape());
  float* mean = context.output(1).data<float>();
  float* variance = context.output(2).data<float>();
  if (uses_batch(context)) {
    batch_statistics(extents, x.data<float>(), mean, variance);
    update_moving_statistics<float>(context, extents.rows, attributes_.decay);
  } else {
    copy_moving_statistics(context);
  }
  if (context.outputs[0] == nullptr) return;
  std::vector<float> slope = inverse_sigmas(extents.channels, variance, attributes_.epsilon);
  const float* gamma = context.input(1).data<float>();
  for (std::int64_t c = 0; c < extents.channels; ++c) slope[c] *= gamma[c];
  parallel_for(extents.rows, extents.grain(), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * extents.channels;
    normalise_rows(x.data<float>() + at, mean, slope.data(), context.input(2).data<float>(), end - begin,
                   extents.channels, context.output(0).data<float>() + at);
  });
}

void BatchNorm::backward(const BackwardContext& context) const {
  const Tensor& x = context.forward->input(0);
  const Extents extents(x.shape());
  const auto [d_x, d_gamma, d_beta] = std::array{context.d_inputs[0], context.d_inputs[1], context.d_inputs[2]};
  const float* d_y = data_or_null<float>(context.d_outputs[0]);
  const float* mean = context.forward->output(1).data<float>();
  const bool from_batch = uses_batch(*context.forward);
  ParameterGradients parameters{std::vector<float>(extents.channels), std::vector<float>(extents.channels)};
  if (d_y != nullptr && (from_batch || d_gamma != nullptr || d_beta != nullptr))
    parameters = parameter_gradients(
        extents, x.data<float>(), d_y, mean,
        inverse_sigmas(extents.channels, context.forward->output(2).data<float>(), attributes_.epsilon));
  if (d_gamma != nullptr) std::ranges::copy(parameters.d_gamma, d_gamma->data<float>());
  if (d_beta != nullptr) std::ranges::copy(parameters.d_beta, d_beta->data<float>());
  if (d_x == nullptr) return;
  const auto gradient = input_gradient(context, from_batch, extents.rows, attributes_.epsilon,
                                       parameters.d_gamma.data(), parameters.d_beta.data());
  fast_input_gradient(extents, gradient, x.data<float>(), d_y, mean, d_x->data<float>());
}

void BatchNorm::reference_forward(const ForwardContext& context) const {
  const Tensor& x = context.input(0);
  const auto [rows, channels] = Extents(x.shape());
  with_float_type(x, [&]<class T>(T) {
    T* mean = context.output(1).data<T>();
    T* variance = context.output(2).data<T>();
    if (uses_batch(context)) {
      reference::batch_statistics(rows, channels, x.data<T>(), mean, variance);
      update_moving_statistics<T>(context, rows, attributes_.decay);
    } else {
      copy_moving_statistics(context);
    }
    reference::batch_norm(rows, channels, attributes_.epsilon, x.data<T>(), context.input(1).data<T>(),
                          context.input(2).data<T>(), mean, variance, context.output(0).data<T>());
  });
}

void BatchNorm::reference_backward(const BackwardContext& context) const {
  const Tensor& x = context.forward->input(0);
  const auto [rows, channels] = Extents(x.shape());
  const Tensor d_y = context.d_outputs[0] != nullptr ? *context.d_outputs[0] : Tensor(x.spec());
  with_float_type(x, [&]<class T>(T) {
    const T* mean = context.forward->output(1).data<T>();
    const T* variance = context.forward->output(2).data<T>();
    std::vector<T> d_gamma(channels);
    std::vector<T> d_beta(channels);
    reference::batch_norm_backward_parameters(rows, channels, attributes_.epsilon, x.data<T>(), d_y.data<T>(), mean,
                                              variance, d_gamma.data(), d_beta.data());
    if (context.d_inputs[1] != nullptr) std::ranges::copy(d_gamma, context.d_inputs[1]->data<T>());
    if (context.d_inputs[2] != nullptr) std::ranges::copy(d_beta, context.d_inputs[2]->data<T>());
    if (context.d_inputs[0] == nullptr) return;
    const auto gradient =
        input_gradient(context, uses_batch(*context.forward), rows, attributes_.epsilon, d_gamma.data(), d_beta.data());
    reference::batch_norm_backward_input(rows, channels, x.data<T>(), mean, d_y.data<T>(), gradient.data(),
                                         context.d_inputs[0]->data<T>());
  });
}

Output batch_norm(Graph& graph, const std::string& name, Output x, Output gamma, Output beta, Output moving_mean,
                  Output moving_variance, const BatchNormAttributes& attributes) {
  return graph.add(name, std::make_unique<BatchNorm>(attributes), {x, gamma, beta, moving_mean, moving_variance})
      .output();
}

}  // namespace miniqat::layers
