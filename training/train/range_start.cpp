#include "training/train/range_start.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "core/graph/source_ops.h"
#include "core/platform/interruption.h"
#include "core/text/error.h"
#include "datasets/loader.h"
#include "layers/batch_norm.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/fake_quant.h"
#include "quantize/quantizers.h"
#include "training/calibrate/batch_norm_statistics.h"

namespace miniqat::training {
namespace {

constexpr std::int64_t kBatches = 16;
/// A learned range that starts at four times its width, or a fourth of it, still finds its way.
constexpr double kFarOff = 4.0 * 4.0;
/// The inputs of a quantizer that are its range.
constexpr int kMin = 1, kMax = 2;

Tensor initial_values(const Node& variable) {
  Tensor values(variable.output_specs()[0].shape);
  variable.as<Variable>()->initializer.fill(values, 0);
  return values;
}

/// Gives the session one end of a calibrated range.
void store(Session& session, const quantize::CalibratedRange& range, const Node& quantizer, int end) {
  const Node& variable = *quantizer.input(end).node;
  Tensor values = initial_values(variable);
  for (std::size_t c = 0; c < range.set.size(); ++c) {
    const quantize::Range<float>& set = range.set[c];
    if (set.min != set.max) values.data<float>()[c] = end == kMin ? set.min : set.max;
  }
  session.set_variable(variable.name(), values);
}

/// Parts of `pictures` that a network for so many at once takes one after the other.
std::vector<CodedTensor> slices(const CodedTensor& pictures, const TensorSpec& slice) {
  std::vector<CodedTensor> parts;
  const std::int64_t step = slice.shape.elements();
  for (std::int64_t at = 0; at < pictures.elements(); at += step) parts.push_back(pictures.slice(at, slice.shape));
  return parts;
}

/// The mean square of what the moving statistics would make of the numbers that have the statistics `of_batch`, before
/// gamma and beta. 1 where both are the same.
double mean_square(const Node& norm, const NamedTensors& moving, const NamedTensors& of_batch) {
  const std::string &mean = norm.input(3).node->name(), &variance = norm.input(4).node->name();
  const double epsilon = norm.as<layers::BatchNorm>()->epsilon;
  const std::int64_t channels = norm.input(3).shape().elements();
  double sum = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto at = [&](const NamedTensors& values, const std::string& name) {
      return double{values.at(name).data<float>()[c]};
    };
    const double distance = at(of_batch, mean) - at(moving, mean);
    sum += (at(of_batch, variance) + distance * distance + epsilon) / (at(moving, variance) + epsilon);
  }
  return sum / static_cast<double>(channels);
}

/// Moving statistics with which some batch norm gives numbers of another magnitude than it will in training.
bool are_far_off(const TrainedNetwork& network, const NamedTensors& of_batch) {
  return std::ranges::any_of(updating_batch_norms(network.training.graph, network.quantization_step),
                             [&](const Node* norm) {
                               const double square = mean_square(*norm, network.checkpoint.tensors, of_batch);
                               return !(square >= 1 / kFarOff && square <= kFarOff);
                             });
}

std::int64_t delay_of(const Node& quantizer) { return quantizer.as<quantize::FakeQuant>()->delay; }

std::vector<const Node*> activations_among(const std::vector<const Node*>& quantizers) {
  std::vector<const Node*> found;
  std::ranges::copy_if(quantizers, std::back_inserter(found),
                       [](const Node* node) { return !quantize::quantizes_weights(*node); });
  return found;
}

}  // namespace

RangeStart::RangeStart(TrainingTask& task, RunObserver& observer) : task_(task), observer_(observer) {
  for (const Node* node : task_.training.graph.nodes()) {
    if (quantize::has_learned_variables(*node)) quantizers_.push_back(node);
  }
}

std::vector<const Node*> RangeStart::beginning_now() const {
  std::vector<const Node*> found;
  std::ranges::copy_if(quantizers_, std::back_inserter(found), [&](const Node* quantizer) {
    return task_.session.quantization_step() + 1 == std::max<std::int64_t>(delay_of(*quantizer), 1);
  });
  return found;
}

std::vector<const Node*> RangeStart::waiting() const {
  std::vector<const Node*> found;
  std::ranges::copy_if(quantizers_, std::back_inserter(found),
                       [&](const Node* quantizer) { return task_.session.quantization_step() < delay_of(*quantizer); });
  return found;
}

std::vector<const Node*> RangeStart::without_kept(const std::vector<const Node*>& quantizers) const {
  const auto is_kept = [&](const Node& quantizer, int end) {
    return kept_.contains(quantizer.input(end).node->name());
  };
  std::vector<const Node*> found;
  std::ranges::copy_if(quantizers, std::back_inserter(found),
                       [&](const Node* quantizer) { return !is_kept(*quantizer, kMin) || !is_kept(*quantizer, kMax); });
  return found;
}

void RangeStart::before_step() {
  const std::vector<const Node*> quantizers = beginning_now();
  if (quantizers.empty()) return;
  const Safetensors before = task_.session.checkpoint();
  try {
    start_quantizers(quantizers);
  } catch (const Interruption&) {
    task_.session.restore(before, Session::Restore::kExact, "before the start of learned ranges");
    throw;
  }
  widen_empty_ranges(quantizers);
}

void RangeStart::start_quantizers(const std::vector<const Node*>& quantizers) {
  // A checkpoint may have ranges already; those of a delay are of networks that have been trained since.
  const bool has_delay = task_.session.quantization_step() > 0;
  const std::vector<const Node*> starting = has_delay ? quantizers : without_kept(quantizers);
  if (starting.empty()) return;
  calibrate(starting);
  const NamedTensors statistics = batch_statistics();
  if (!statistics.empty()) calibrate(activations_among(starting), statistics);
  observer_.say(concat(
      counted(static_cast<std::int64_t>(starting.size()), "learned range"), " start", starting.size() == 1 ? "s" : "",
      " at least squares, after step ", task_.session.step(),
      statistics.empty()
          ? ""
          : "; those of activations with the batches' own statistics, as the moving ones of batch norms are far off"));
}

void RangeStart::widen_empty_ranges(const std::vector<const Node*>& quantizers) {
  for (const Node* quantizer : quantizers) {
    const Node &min = *quantizer->input(kMin).node, &max = *quantizer->input(kMax).node;
    Tensor mins = task_.session.variable(min.name()).clone(), maxs = task_.session.variable(max.name()).clone();
    const Tensor first_mins = initial_values(min), first_maxs = initial_values(max);
    for (std::int64_t c = 0; c < mins.elements(); ++c)
      if (mins.data<float>()[c] == maxs.data<float>()[c]) {
        mins.data<float>()[c] = first_mins.data<float>()[c];
        maxs.data<float>()[c] = first_maxs.data<float>()[c];
      }
    task_.session.set_variable(min.name(), mins);
    task_.session.set_variable(max.name(), maxs);
  }
}

void RangeStart::after_step(const TrainedStep& step) {
  if (!step.ends_epoch && !step.is_last && !step.stops) return;
  before_judging();
}

void RangeStart::before_judging() {
  if (const std::vector<const Node*> quantizers = waiting(); !quantizers.empty()) calibrate(quantizers);
}

NamedTensors RangeStart::batch_statistics() {
  const std::int64_t step = task_.session.quantization_step();
  if (updating_batch_norms(task_.training.graph, step + 1).empty()) return {};
  Classifier network = without_quantizers(task_.training);
  const Safetensors checkpoint = task_.session.checkpoint();
  const TrainedNetwork trained{.training = network, .checkpoint = checkpoint, .quantization_step = step + 1};
  // Nobody may stop the run in here.
  RunObserver silent;
  EstimateOptions options{.batches = 1, .seed = task_.settings.seed};
  const auto estimate = [&] { return estimate_statistics(trained, task_.data.train, options, silent); };
  if (!are_far_off(trained, estimate())) return {};
  options.batches = kBatches * task_.settings.batch_size / network.images.shape()[0];
  return estimate();
}

void RangeStart::calibrate(const std::vector<const Node*>& quantizers, const NamedTensors& statistics) {
  Safetensors checkpoint = task_.session.checkpoint();
  put_back(checkpoint, statistics);
  task_.test_session.restore(checkpoint, Session::Restore::kVariables, "the training graph");
  datasets::Loader loader(task_.data.train, {.batch_size = task_.settings.batch_size,
                                             .seed = static_cast<std::uint64_t>(task_.settings.seed)});
  quantize::Calibrator calibrator(task_.test_session, {quantize::CalibrationMethod::kMse});
  const std::int64_t batches = std::min(kBatches, task_.steps_per_epoch);
  for (std::int64_t batch = 0; batch < batches; ++batch)
    for (const CodedTensor& slice : slices(loader.next().images, task_.evaluation.images.spec()))
      calibrator.observe({{task_.evaluation.images, slice}});
  for (const quantize::CalibratedRange& range : calibrator.finish()) {
    const auto quantizer = std::ranges::find(quantizers, range.quantizer, &Node::name);
    if (quantizer == quantizers.end()) continue;
    for (const int end : {kMin, kMax}) store(task_.session, range, **quantizer, end);
  }
}

}  // namespace miniqat::training
