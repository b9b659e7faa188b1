#include "training/calibrate/batch_norm_statistics.h"

#include <algorithm>

#include "core/engine/session.h"
#include "core/error.h"
#include "core/graph/op_queries.h"
#include "core/kernels/finite.h"
#include "datasets/loader.h"
#include "layers/batch_norm.h"
#include "quantize/fake_quant.h"
#include "quantize/quantization_delays.h"

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
      fail("the estimate of \"", name, "\" is not finite: the network overflows on some pictures");
  return tensors;
}

/// Just before the last step that the network was trained for.
void set_to(const TrainedNetwork& network, const Safetensors& checkpoint, Session& session) {
  session.restore(checkpoint, Session::Restore::kVariables, "the run");
  session.set_quantization_step(std::max<std::int64_t>(network.quantization_step - 1, 0));
}

/// Adds the ranges of quantizers that follow their tensor: the scale of folded weights has changed with the variance,
/// and a training step would observe them anew as well. In a range of the former scale, weights of the new one would
/// lie between other integers than those that training found.
void observe_weights(const TrainedNetwork& network, NamedTensors& estimated, Session& session, const Tensor& images) {
  RunRequest request{.training = true};
  std::vector<std::string> ranges;
  for (const Node* node : network.training.graph.nodes()) {
    const auto* quantizer = node->as<quantize::FakeQuant>();
    if (quantizer == nullptr || !quantizer->observes_range()) continue;
    if (!quantize::traits_of(quantizer->range).follows_tensor()) continue;
    request.fetches.push_back(node->output());
    for (const int bound : {1, 2}) ranges.push_back(node->input(bound).node->name());
  }
  if (ranges.empty()) return;
  Safetensors checkpoint = network.checkpoint;
  put_back(checkpoint, estimated);
  set_to(network, checkpoint, session);
  session.run(request, {{network.training.images, images}});
  for (const std::string& name : ranges) estimated.emplace(name, session.variable(name).clone());
}

}  // namespace

void PooledStatistics::add(std::int64_t rows, std::span<const float> mean, std::span<const float> variance) {
  mean_.resize(mean.size());
  sum_.resize(mean.size());
  const auto before = static_cast<double>(rows_), added = static_cast<double>(rows), all = before + added;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const double distance = mean[c] - mean_[c];
    mean_[c] += distance * added / all;
    sum_[c] += variance[c] * added + distance * distance * before * added / all;
  }
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
  datasets::Loader loader(train, {.batch_size = images.shape()[0], .seed = static_cast<std::uint64_t>(options.seed)});
  Session session(network.training.graph, {.seed = static_cast<std::uint64_t>(options.seed)});
  const std::int64_t batches = batches_to_see(network, train, options);
  for (std::int64_t batch = 1; batch <= batches; ++batch) {
    if (observer.wants_to_stop()) throw Stopped();
    // Changes by a step in training mode (ranges, the moving statistics) must not reach the next batch, and no delay
    // may pass that the run has not reached.
    set_to(network, network.checkpoint, session);
    const std::vector<Tensor> seen = session.run(request, {{images, loader.next().images}}).fetched;
    for (std::size_t i = 0; i < statistics.size(); ++i)
      statistics[i].pooled.add(statistics[i].rows(), seen[2 * i].values<float>(), seen[2 * i + 1].values<float>());
    observer.on_batch(batch, batches);
  }
  NamedTensors estimated = finite_tensors(statistics, network.checkpoint.tensors);
  observe_weights(network, estimated, session, loader.next().images);
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

}  // namespace miniqat::training
