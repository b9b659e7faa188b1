#include "layers/chain/chain_batch_norm.h"

#include <algorithm>

#include "core/graph/op.h"
#include "core/tensors/eigen.h"

namespace miniqat::layers {
namespace {

/// Vectors [c] of one batch norm.
class NormVectors {
 public:
  NormVectors(const ChainNorm& norm, const ForwardContext& context, ScratchScope& scope)
      : norm_(norm), context_(context), scope_(scope), channels_(context.input(norm.input).elements()) {}

  std::int64_t channels() const { return channels_; }
  ConstVectorMap<float> gamma() const { return vector_of<float>(context_.input(norm_.input)); }
  ConstVectorMap<float> beta() const { return vector_of<float>(context_.input(norm_.input + 1)); }
  ConstVectorMap<float> moving_mean() const { return vector_of<float>(context_.input(norm_.input + 2)); }
  ConstVectorMap<float> moving_variance() const { return vector_of<float>(context_.input(norm_.input + 3)); }
  ConstVectorMap<float> factor() const {
    return norm_.factor_input < 0 ? filled(1) : vector_of<float>(context_.input(norm_.factor_input));
  }
  VectorMap<float> room() const { return vector_of(scope_.take<float>(channels_)); }
  ConstVectorMap<float> filled(float value) const {
    return vector_of(std::span<const float>(scope_.filled<float>(channels_, value)));
  }

  template <class Formula>
  const float* row(const Formula& formula) const {
    VectorMap<float> values = room();
    values = formula;
    return ChannelRow(scope_, {values.data(), static_cast<std::size_t>(channels_)}).data();
  }

 private:
  const ChainNorm& norm_;
  const ForwardContext& context_;
  ScratchScope& scope_;
  const std::int64_t channels_;
};

/// The map of x to y, with what normalises it.
ChainMap map_of(const NormVectors& v, const VectorMap<float>& shift, const VectorMap<float>& inverse_sigma) {
  return {.shift = v.row(shift),
          .scale = v.row(v.gamma() * (v.factor() * inverse_sigma)),
          .offset = v.row(v.beta()),
          .width = ChannelRow::width(v.channels())};
}

/// moving = decay * moving + (1 - decay) * value, the variance made unbiased: times n / (n - 1).
void update_moving(const ChainNorm& norm, const ForwardContext& context, std::int64_t n, const VectorMap<float>& mean,
                   const VectorMap<float>& variance) {
  const auto keep = static_cast<float>(norm.attributes.decay), take = static_cast<float>(1 - norm.attributes.decay);
  const float unbias = static_cast<float>(n) / static_cast<float>(std::max<std::int64_t>(n - 1, 1));
  VectorMap<float> moving_mean = vector_of<float>(*context.update_of(norm.input + 2));
  VectorMap<float> moving_variance = vector_of<float>(*context.update_of(norm.input + 3));
  moving_mean = keep * moving_mean + take * mean;
  moving_variance = keep * moving_variance + take * variance * unbias;
}

/// The first of ForwardContext::observed.
void leave_moments(const ForwardContext& context, std::int64_t n, const VectorMap<float>& mean,
                   const VectorMap<float>& variance) {
  const auto count = static_cast<double>(n);
  for (std::int64_t c = 0; c < mean.size(); ++c)
    context.observed[c] = {
        .kind = ShardStatistic::Kind::kMoments, .count = count, .a = mean[c], .b = count * variance[c]};
}

}  // namespace

void store_moments(const ChainNorm& norm, const ForwardContext& context, std::span<const ShardStatistic> batch) {
  ScratchScope scope;
  VectorMap<float> mean = vector_of(scope.take<float>(batch.size()));
  VectorMap<float> variance = vector_of(scope.take<float>(batch.size()));
  for (std::size_t c = 0; c < batch.size(); ++c) {
    mean[c] = static_cast<float>(batch[c].a);
    variance[c] = static_cast<float>(batch[c].b / batch[c].count);
  }
  update_moving(norm, context, static_cast<std::int64_t>(batch.front().count), mean, variance);
}

/// mean(z) = factor * mean(x), variance(z) = factor^2 * variance(x), and
/// gamma * (z - mean(z)) / sigma(z) + beta = (x - mean(x)) * (gamma * factor / sigma(z)) + beta.
ChainMap normalisation(const ChainNorm& norm, const ForwardContext& context, const ChannelMoments& batch,
                       ScratchScope& scope) {
  const NormVectors v(norm, context, scope);
  const bool from_batch = !batch.mean.empty();
  const auto f = v.factor();
  VectorMap<float> mean = v.room(), variance = v.room(), shift = v.room(), inverse_sigma = v.room();
  if (from_batch) {
    mean = f * vector_of(batch.mean);
    variance = f * f * vector_of(batch.variance);
    shift = vector_of(batch.mean);
  } else {
    mean = v.moving_mean();
    variance = v.moving_variance();
    shift = mean / f;
  }
  inverse_sigma = 1 / (variance + static_cast<float>(norm.attributes.epsilon)).sqrt();
  if (!context.saved.empty()) vector_of<float>(*context.saved.back()) << shift, inverse_sigma;
  if (context.outputs[1] != nullptr) vector_of<float>(*context.outputs[1]) = mean;
  if (context.outputs[2] != nullptr) vector_of<float>(*context.outputs[2]) = variance;
  const std::int64_t n = context.input(0).elements() / v.channels();
  if (from_batch && context.update_of(norm.input + 2) != nullptr) update_moving(norm, context, n, mean, variance);
  if (from_batch && !context.observed.empty()) leave_moments(context, n, mean, variance);
  return map_of(v, shift, inverse_sigma);
}

ChainMap saved_normalisation(const ChainNorm& norm, const ForwardContext& context, ScratchScope& scope) {
  const NormVectors v(norm, context, scope);
  const std::int64_t channels = v.channels();
  float* saved = context.saved.back()->data<float>();
  return map_of(v, {saved, channels}, {saved + channels, channels});
}

void normalisation_backward(const ChainNorm& norm, const BackwardContext& context, ChainBackward work,
                            ScratchScope& scope) {
  const ForwardContext& forward = *context.forward;
  const NormVectors v(norm, forward, scope);
  const std::int64_t channels = v.channels();
  const VectorMap<float> saved = vector_of<float>(*forward.saved.back());
  const auto shift = saved.head(channels), inverse_sigma = saved.tail(channels);
  const auto gamma = v.gamma(), f = v.factor();
  work.x = forward.input(0).data<float>();
  work.shift = v.row(shift);
  work.slope = v.row(gamma * (f * inverse_sigma));
  Tensor *const d_gamma_out = context.d_inputs[norm.input], *const d_beta_out = context.d_inputs[norm.input + 1];
  const bool from_batch = norm.attributes.uses_batch(forward),
             parameters = d_gamma_out != nullptr || d_beta_out != nullptr;
  const bool y_has_gradient = work.d_y != nullptr;
  ChainTotals totals = {scope.filled<float>(channels, 0.0f), scope.filled<float>(channels, 0.0f)};
  if (!from_batch) {
    // Only those of a batch pass on the gradients of the statistics.
    if (!y_has_gradient) work.d_y = scope.filled<float>(work.n, 0.0f).data();
    totals = chain_backward(work, channels, parameters, parameters, scope);
    if (!parameters) return;
  } else if (y_has_gradient) {
    // d_x depends on sums over all of d_y.
    ChainBackward looking = work;
    looking.d_x = looking.d_addend = nullptr;
    totals = chain_backward(looking, channels, true, true, scope);
  }
  const VectorMap<float> d_beta = vector_of(totals.sums);
  VectorMap<float> d_gamma = vector_of(totals.products);
  if (!from_batch || y_has_gradient) d_gamma *= f * inverse_sigma;
  if (d_gamma_out != nullptr) vector_of<float>(*d_gamma_out) = d_gamma;
  if (d_beta_out != nullptr) vector_of<float>(*d_beta_out) = d_beta;
  if (!from_batch || (work.d_x == nullptr && work.d_addend == nullptr)) return;
  const auto of_statistic = [&](int output) {
    const Tensor* d = context.d_outputs[output];
    return d == nullptr ? v.filled(0) : vector_of<float>(*d);
  };
  const auto n = static_cast<float>(work.n / channels);
  const auto slope = gamma * inverse_sigma;
  const auto through_mean = (of_statistic(1) - slope * d_beta) / n;
  const auto through_variance = (2 * of_statistic(2) - slope * inverse_sigma * d_gamma) / n;
  work.curve = v.row(through_variance * f * f);
  work.constant = v.row(through_mean * f);
  chain_backward(work, channels, false, false, scope);
}

}  // namespace miniqat::layers
