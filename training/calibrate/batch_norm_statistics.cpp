#include "training/calibrate/batch_norm_statistics.h"

#include <algorithm>
#include <cmath>

#include "core/engine/session.h"
#include "core/graph/op_queries.h"
#include "core/graph/reach.h"
#include "core/kernels/finite.h"
#include "core/tensors/eigen.h"
#include "core/text/error.h"
#include "datasets/loader.h"
#include "layers/batch_norm.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/fold/spelled_out_batch_norm.h"
#include "quantize/quantizers.h"

namespace miniqat::training {
namespace {

constexpr std::string_view kTrainedPrefix = "trained:";
/// A channel whose variance is below this part of epsilon is constant.
constexpr double kConstant = 1e-3;

std::string kept_name(const std::string& variable) { return std::string(kTrainedPrefix) + variable; }

Tensor as_tensor(const std::vector<double>& values, double factor) {
  Tensor tensor(Shape{std::ssize(values)});
  std::ranges::transform(values, tensor.data<float>(),
                         [&](double value) { return static_cast<float>(value * factor); });
  return tensor;
}

/// What a batch norm has seen.
struct SeenStatistics {
  const Node* norm;
  PooledStatistics pooled = {};

  const std::string& mean_name() const { return norm->input(3).node->name(); }
  const std::string& variance_name() const { return norm->input(4).node->name(); }
  std::int64_t rows() const {
    const Shape& x = norm->input(0).shape();
    return x.elements() / x.channels();
  }
};

/// A channel that is constant comes out as beta whatever its variance is. But the variance scales its weights before
/// they are rounded: if all weights of a channel round to 0, it is constant, and a variance of 0 would make them so
/// large that they no longer do.
Tensor variance_of(const SeenStatistics& seen, const Tensor& moving) {
  Tensor variance = seen.pooled.variance();
  const double constant = kConstant * seen.norm->as<layers::BatchNorm>()->epsilon;
  for (std::int64_t c = 0; c < variance.elements(); ++c)
    if (variance.data<float>()[c] <= constant) variance.data<float>()[c] = moving.data<float>()[c];
  return variance;
}

NamedTensors finite_tensors(const std::vector<SeenStatistics>& statistics, const NamedTensors& moving) {
  NamedTensors tensors;
  for (const SeenStatistics& seen : statistics) {
    tensors.emplace(seen.mean_name(), seen.pooled.mean());
    tensors.emplace(seen.variance_name(), variance_of(seen, moving.at(seen.variance_name())));
  }
  for (const auto& [name, tensor] : tensors)
    if (!is_finite(tensor))
      throw NonFiniteValue(
          concat("the estimate of \"", name, "\" is not finite: the network overflows on some examples"));
  return tensors;
}

/// A run in training mode. Throws NonFiniteValue.
std::vector<Tensor> seen_by(Session& session, const RunRequest& request, const Feeds& feeds) {
  try {
    return session.run(request, feeds).fetched;
  } catch (const NonFiniteUpdate& error) {
    throw NonFiniteValue(concat("the network overflows on some examples: ", error.what()));
  }
}

/// Just before the last step that the network was trained for.
void set_to(const TrainedNetwork& network, const Safetensors& checkpoint, Session& session) {
  session.restore(checkpoint, Session::Restore::kVariables, "the run");
  session.set_quantization_step(std::max<std::int64_t>(network.quantization_step - 1, 0));
}

/// Quantizers whose ranges go with the scale of their weights.
struct WeightRanges {
  /// Observed: a training step would observe them anew as well.
  std::vector<const Node*> observed;
  /// Learned, of weights that a batch norm scales.
  std::vector<const Node*> learned;

  explicit WeightRanges(const Graph& graph) {
    for (const Node* node : graph.nodes()) {
      const auto* quantizer = node->as<quantize::FakeQuant>();
      if (quantizer == nullptr) continue;
      if (quantizer->observes_range() && quantize::traits_of(quantizer->range).follows_tensor())
        observed.push_back(node);
      else if (quantize::has_learned_variables(*node) && quantize::scaling_variance(node->input(0)).node != nullptr)
        learned.push_back(node);
    }
  }
};

/// The Euclidean norm of the weights of each channel (the last axis, or the last two of depthwise weights). With one
/// channel that of the whole tensor.
std::vector<double> lengths_of(const Tensor& weights, std::int64_t channels) {
  std::vector<double> lengths(static_cast<std::size_t>(channels));
  const std::span<const float> values = weights.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) lengths[i % lengths.size()] += double{values[i]} * double{values[i]};
  for (double& length : lengths) length = std::sqrt(length);
  return lengths;
}

/// The factor of each channel's range: the growth of its weights, or the power of two next to it if scales are powers
/// of two. (The growth itself would now and then move such a scale by 2.) 1 if there is no such factor, so that no
/// range vanishes: all weights are 0, or one is not finite.
std::vector<double> growth_of(const Node& quantizer, const Tensor& before, const Tensor& after) {
  const bool power_of_two = quantizer.as<quantize::FakeQuant>()->power_of_two;
  const std::int64_t channels = quantizer.input(1).shape().elements();
  const std::vector<double> from = lengths_of(before, channels), to = lengths_of(after, channels);
  std::vector<double> growth(from.size());
  std::ranges::transform(from, to, growth.begin(), [&](double old_length, double length) {
    const double factor = length / old_length;
    if (!(std::isfinite(factor) && factor > 0)) return 1.0;
    return power_of_two ? std::exp2(std::round(std::log2(factor))) : factor;
  });
  return growth;
}

/// One end of each channel's range times its factor, which is positive: the ends keep their signs.
Tensor scaled(const Tensor& end, const std::vector<double>& growth) {
  Tensor result(end.shape());
  std::ranges::transform(end.values<float>(), growth, result.data<float>(),
                         [](float value, double factor) { return static_cast<float>(value * factor); });
  return result;
}

/// The variance with which the weights of each channel grow by just its factor of `growth`.
Tensor variance_for(const std::vector<double>& growth, const Tensor& former, double epsilon) {
  Tensor variance = former.clone();
  for (std::size_t c = 0; c < growth.size(); ++c)
    if (const double factor = growth[c]; factor != 1)
      variance.data<float>()[c] =
          static_cast<float>(std::max((variance.data<float>()[c] + epsilon) / (factor * factor) - epsilon, 0.0));
  return variance;
}

/// A scale that is a power of two cannot follow its weights, so their integers would change, and with these the
/// statistics that were measured. So the weights follow the scale: the variance becomes the one with which they grow by
/// just the powers of two in `growth`, which are made smaller where it would be negative. For a range for each channel.
void keep_integers(const Node& quantizer, const std::vector<SeenStatistics>& statistics, const NamedTensors& former,
                   std::vector<double>& growth, NamedTensors& estimated) {
  const std::string& name = quantize::scaling_variance(quantizer.input(0)).node->name();
  const auto seen = std::ranges::find(statistics, name, &SeenStatistics::variance_name);
  const Tensor& variance = former.at(name);
  if (seen == statistics.end() || std::ssize(growth) != variance.elements()) return;
  const double epsilon = seen->norm->as<layers::BatchNorm>()->epsilon;
  for (std::size_t c = 0; c < growth.size(); ++c)
    while (variance.data<float>()[c] + epsilon < growth[c] * growth[c] * epsilon) growth[c] /= 2;
  estimated.insert_or_assign(name, variance_for(growth, variance, epsilon));
}

/// Adds the ranges of folded weights: their scale has changed with the variance. In a range of the former scale,
/// weights of the new one would lie between other integers than those that training found. Observed ranges are observed
/// again. Learned ones grow as their weights do, and with a range for each channel all integers stay; where scales are
/// powers of two, both grow by such. One range for all channels cannot do that: the weights of each channel grow by a
/// factor of their own.
void follow_weights(const TrainedNetwork& network, const std::vector<SeenStatistics>& statistics,
                    NamedTensors& estimated, Session& session, const CodedTensor& images) {
  const WeightRanges ranges(network.training.graph);
  if (ranges.observed.empty() && ranges.learned.empty()) return;
  RunRequest request{.training = true};
  for (const Node* node : ranges.learned) request.fetches.push_back(node->input(0));
  for (const Node* node : ranges.observed) request.fetches.push_back(node->output());
  const auto weights_with = [&](const NamedTensors& statistics) {
    Safetensors checkpoint = network.checkpoint;
    put_back(checkpoint, statistics);
    set_to(network, checkpoint, session);
    return seen_by(session, request, {{network.training.images, images}});
  };
  std::vector<Tensor> before;
  if (!ranges.learned.empty()) before = weights_with({});
  const std::vector<Tensor> after = weights_with(estimated);
  for (const Node* node : ranges.observed)
    for (const int end : {1, 2}) {
      const std::string& name = node->input(end).node->name();
      estimated.emplace(name, session.variable(name).clone());
    }
  for (std::size_t i = 0; i < ranges.learned.size(); ++i) {
    const Node& quantizer = *ranges.learned[i];
    std::vector<double> growth = growth_of(quantizer, before[i], after[i]);
    if (quantizer.as<quantize::FakeQuant>()->power_of_two)
      keep_integers(quantizer, statistics, network.checkpoint.tensors, growth, estimated);
    for (const int end : {1, 2}) {
      const std::string& name = quantizer.input(end).node->name();
      estimated.emplace(name, scaled(network.checkpoint.tensors.at(name), growth));
    }
  }
}

[[noreturn]] void refuse(const Node& norm, const Shape& x, const TrainSettings& settings) {
  const std::string batch = settings.has_shards() ? concat("slices of ", settings.slice_size(), " (`batch_size` ",
                                                           settings.batch_size, " in ", settings.shards, " `shards`)")
                                                  : concat("batches of ", settings.batch_size, " (`batch_size`)");
  fail(settings.model, ": ", describe(norm), " gets one number a channel from ", batch, ": input ", x,
       "; less its own mean that is 0, so its output would always be beta. Train with larger ",
       settings.has_shards() ? "slices" : "batches");
}

}  // namespace

void PooledStatistics::add(std::int64_t rows, std::span<const float> mean, std::span<const float> variance) {
  mean_.resize(mean.size());
  sum_.resize(mean.size());
  const auto before = static_cast<double>(rows_), added = static_cast<double>(rows), all = before + added;
  VectorMap<double> pooled_mean = vector_of(std::span(mean_)), pooled_sum = vector_of(std::span(sum_));
  const Eigen::ArrayXd distance = vector_of(mean).cast<double>() - pooled_mean;
  pooled_mean += distance * added / all;
  pooled_sum += vector_of(variance).cast<double>() * added + distance.square() * before * added / all;
  rows_ += rows;
}

Tensor PooledStatistics::mean() const { return as_tensor(mean_, 1); }

Tensor PooledStatistics::variance() const {
  return as_tensor(sum_, 1 / static_cast<double>(std::max<std::int64_t>(rows_ - 1, 1)));
}

std::vector<Node*> updating_batch_norms(const Graph& graph, std::int64_t quantization_step) {
  std::vector<Node*> norms;
  for (Node* node : graph.nodes()) {
    const auto* norm = node->as<layers::BatchNorm>();
    if (norm == nullptr || !norm->is_training) continue;
    const std::optional<std::int64_t> freeze = quantize::freeze_delay_of(*node);
    if (!freeze || quantization_step < *freeze) norms.push_back(node);
  }
  return norms;
}

std::string why_none_updates(const Graph& graph, std::int64_t quantization_step) {
  if (!updating_batch_norms(graph, quantization_step).empty()) return "";
  std::string why = "has no batch norm";
  for (const Node* node : graph.nodes()) {
    const auto* norm = node->as<layers::BatchNorm>();
    if (norm == nullptr) continue;
    if (norm->is_training)
      return concat("has frozen its batch norms at step ", norm->freeze_delay,
                    " (--freeze-bn-delay) and was trained with these statistics");
    why = "has only batch norms that keep their moving statistics in training";
  }
  return why;
}

std::int64_t batches_to_see(const TrainedNetwork& network, const datasets::Dataset& train,
                            const EstimateOptions& options) {
  return std::min(options.batches, train.size() / network.training.images.shape()[0]);
}

NamedTensors estimate_statistics(const TrainedNetwork& network, const datasets::Dataset& train,
                                 const EstimateOptions& options, RunObserver& observer) {
  const std::string why = why_none_updates(network.training.graph, network.quantization_step);
  if (!why.empty()) fail("the network ", why);
  std::vector<SeenStatistics> statistics;
  RunRequest request{.training = true};
  for (const Node* norm : updating_batch_norms(network.training.graph, network.quantization_step)) {
    statistics.push_back({.norm = norm});
    for (const int statistic : {1, 2}) request.fetches.push_back(norm->output(statistic));
  }
  const Output images = network.training.images;
  datasets::Loader loader(
      train,
      {.batch_size = images.shape()[0], .seed = static_cast<std::uint64_t>(options.seed), .augment = options.augment});
  Session session(network.training.graph, {.seed = static_cast<std::uint64_t>(options.seed)});
  const std::int64_t batches = batches_to_see(network, train, options);
  for (std::int64_t batch = 1; batch <= batches; ++batch) {
    observer.require_no_stop();
    // Changes by a step in training mode (ranges, the moving statistics) must not reach the next batch, and no delay
    // may pass that the run has not reached.
    set_to(network, network.checkpoint, session);
    const std::vector<Tensor> seen = seen_by(session, request, {{images, loader.next().images}});
    for (std::size_t i = 0; i < statistics.size(); ++i)
      statistics[i].pooled.add(statistics[i].rows(), seen[2 * i].values<float>(), seen[2 * i + 1].values<float>());
    observer.on_batch(batch, batches);
  }
  NamedTensors estimated = finite_tensors(statistics, network.checkpoint.tensors);
  follow_weights(network, statistics, estimated, session, loader.next().images);
  return estimated;
}

void keep_trained(Safetensors& checkpoint, const NamedTensors& trained) {
  for (const auto& [name, tensor] : trained) checkpoint.tensors.insert_or_assign(kept_name(name), tensor);
}

void put_estimated(Safetensors& checkpoint, const NamedTensors& estimated) {
  NamedTensors trained;
  for (const auto& [name, tensor] : estimated) trained.emplace(name, checkpoint.tensors.at(name));
  keep_trained(checkpoint, trained);
  put_back(checkpoint, estimated);
}

NamedTensors take_trained(Safetensors& checkpoint) {
  NamedTensors trained;
  for (const auto& [name, tensor] : checkpoint.tensors)
    if (name.starts_with(kTrainedPrefix)) trained.emplace(name.substr(kTrainedPrefix.size()), tensor);
  for (const auto& [name, tensor] : trained) checkpoint.tensors.erase(kept_name(name));
  return trained;
}

void put_back(Safetensors& checkpoint, const NamedTensors& values) {
  for (const auto& [name, tensor] : values) checkpoint.tensors.insert_or_assign(name, tensor);
}

void require_numbers_to_normalise(const Classifier& training, const TrainSettings& settings) {
  const auto needed = nodes_behind(std::span(&training.logits, 1));
  const auto check = [&](const Node& norm, const Shape& x) {
    if (needed.contains(&norm) && x.elements() == x.channels()) refuse(norm, x, settings);
  };
  // In the first step; a batch norm that freezes later trains until then.
  for (const Node* norm : updating_batch_norms(training.graph, 1)) check(*norm, norm->input(0).shape());
  for (const quantize::UnfusedBatchNorm& norm : quantize::find_unfused_batch_norms(training.graph))
    if (norm.takes_moments()) check(*norm.result, norm.x.shape());
}

}  // namespace miniqat::training
