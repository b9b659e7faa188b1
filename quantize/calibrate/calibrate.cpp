#include "quantize/calibrate/calibrate.h"

#include <algorithm>
#include <array>

#include "core/graph/op_queries.h"
#include "core/text/error.h"
#include "quantize/calibrate/histogram.h"
#include "quantize/op_roles.h"
#include "quantize/quantizers.h"
#include "quantize/range_training.h"

namespace miniqat::quantize {
namespace {

/// The range that a quantizer in training would store for an observed one.
Range<float> stored(Range<float> range, const GridOptions& options) {
  Observation<float> observation{.ranges = std::span(&range, 1)};
  widen(observation, options);
  return range;
}

/// The values of one channel of a tensor whose element i belongs to channel i % channels.
std::vector<float> channel_of(const Tensor& tensor, std::int64_t channel, std::int64_t channels) {
  const std::span<const float> all = tensor.values<float>();
  std::vector<float> values;
  values.reserve(all.size() / static_cast<std::size_t>(channels));
  for (std::size_t i = static_cast<std::size_t>(channel); i < all.size(); i += static_cast<std::size_t>(channels))
    values.push_back(all[i]);
  return values;
}

/// Every value by itself: weights are few, a filter's channel may have nine.
Range<float> least_squares_range(const std::vector<float>& values, const GridOptions& options) {
  std::vector<WeightedValue> weighted;
  weighted.reserve(values.size());
  for (const float value : values) weighted.push_back({value, 1});
  return least_squares_range(SquaredError(std::move(weighted)), options);
}

}  // namespace

std::span<const std::string_view> names_of(CalibrationMethod) {
  static constexpr std::array<std::string_view, 4> kNames = {"minmax", "moving-average", "percentile", "mse"};
  return kNames;
}

void CalibrationOptions::check() const {
  if (!(percentile > 50 && percentile <= 100))
    fail("percentile must be above 50 and at most 100, is ", exact(percentile));
}

/// A quantizer and what was seen of the values that it will quantize, by channel.
struct Calibrator::Quantizer {
  const Node* node;
  FakeQuantAttributes attributes;
  /// Without quantizers in between.
  Output input;
  bool is_weights = false;
  std::int64_t channels = 1;
  std::vector<Range<float>> seen = {};
  std::vector<Range<float>> average = {};
  std::vector<Histogram> histograms = {};
  /// The values of weights.
  Tensor weights = {};
};

Calibrator::Calibrator(Session& session, const CalibrationOptions& options)
    : session_(session), options_(options), network_(session) {
  options_.check();
  for (const Node* node : session.graph().topological_order())
    if (is_quantizer(*node)) add(*node);
  if (quantizers_.empty()) fail("the graph has no quantizers to calibrate");
  observe(true, {});
}

Calibrator::~Calibrator() = default;

void Calibrator::add(const Node& node) {
  const FakeQuantAttributes& attributes = *node.as<FakeQuant>();
  const RangeKindTraits& kind = traits_of(attributes.range);
  if (!kind.changes() || (kind.learned && !has_learned_variables(node))) return;
  Quantizer quantizer{.node = &node,
                      .attributes = attributes,
                      .input = source_through(node.input(0), OpRole::kQuantizer),
                      .is_weights = kind.follows_tensor() || (kind.learned && quantizes_weights(node)),
                      .channels = node.input(1).shape().elements()};
  const auto channels = static_cast<std::size_t>(quantizer.channels);
  quantizer.average.resize(channels);
  if (!quantizer.is_weights) quantizer.histograms.resize(channels);
  quantizers_.push_back(std::move(quantizer));
}

void Calibrator::observe(const Feeds& feeds) { observe(false, feeds); }

/// Runs the float network for all quantizers of weights, or for all others.
void Calibrator::observe(bool weights, const Feeds& feeds) {
  std::vector<Output> fetches;
  for (const Quantizer& quantizer : quantizers_)
    if (quantizer.is_weights == weights) fetches.push_back(quantizer.input);
  const std::vector<Tensor> fetched = network_.run(fetches, feeds);
  if (!weights) ++batches_;
  auto tensor = fetched.begin();
  for (Quantizer& quantizer : quantizers_)
    if (quantizer.is_weights == weights) observe(quantizer, *tensor++);
}

void Calibrator::observe(Quantizer& quantizer, const Tensor& values) {
  ScratchScope scope;
  Observation<float> observation = quantize::observe(values.values<float>(), quantizer.channels, scope);
  if (quantizer.seen.empty()) quantizer.seen.assign(observation.ranges.begin(), observation.ranges.end());
  for (std::size_t c = 0; c < quantizer.seen.size(); ++c) {
    const Range<float>& range = observation.ranges[c];
    quantizer.seen[c] = {std::min(quantizer.seen[c].min, range.min), std::max(quantizer.seen[c].max, range.max)};
  }
  if (!widen(observation, quantizer.attributes.grid_options()))
    throw NonFiniteValue(
        concat(describe(*quantizer.node), " ", quantizer.input.name(), " has values that are not finite"));
  if (quantizer.is_weights) {
    quantizer.weights = values;
    return;
  }
  const double weight = debiased_weight(quantizer.attributes.ema_decay, batches_);
  for (std::size_t c = 0; c < quantizer.average.size(); ++c) {
    Range<float>& average = quantizer.average[c];
    average = {move_towards(average.min, observation.ranges[c].min, weight),
               move_towards(average.max, observation.ranges[c].max, weight)};
  }
  if (options_.method != CalibrationMethod::kPercentile && options_.method != CalibrationMethod::kMse) return;
  if (quantizer.channels == 1) {
    quantizer.histograms[0].add(values.values<float>());
    return;
  }
  for (std::int64_t c = 0; c < quantizer.channels; ++c)
    quantizer.histograms[static_cast<std::size_t>(c)].add(channel_of(values, c, quantizer.channels));
}

Range<float> Calibrator::range_of(const Quantizer& quantizer, std::size_t channel) const {
  const GridOptions options = quantizer.attributes.grid_options();
  const bool by_error = options_.method == CalibrationMethod::kMse;
  if (quantizer.is_weights && by_error)
    return least_squares_range(channel_of(quantizer.weights, static_cast<std::int64_t>(channel), quantizer.channels),
                               options);
  if (quantizer.is_weights || options_.method == CalibrationMethod::kMinMax) return quantizer.seen[channel];
  if (options_.method == CalibrationMethod::kMovingAverage) return quantizer.average[channel];
  const Histogram& histogram = quantizer.histograms[channel];
  return by_error ? least_squares_range(SquaredError(histogram.values()), options)
                  : histogram.percentile(options_.percentile);
}

void Calibrator::store(const CalibratedRange& range, const Quantizer& quantizer) {
  const Output ends[] = {quantizer.node->input(1), quantizer.node->input(2)};
  for (const Output& end : ends) {
    Tensor values(end.shape());
    for (std::size_t c = 0; c < range.set.size(); ++c)
      values.data<float>()[c] = &end == ends ? range.set[c].min : range.set[c].max;
    session_.set_variable(end.node->name(), values);
  }
  // The other state, of dampening, counts steps of training.
  for (const OpState& state : state_of(quantizer.node->op()))
    if (state.name == "num_updates")
      session_.set_variable(state_name(*quantizer.node, state), Tensor::scalar(static_cast<float>(batches_)));
}

std::vector<CalibratedRange> Calibrator::finish() {
  if (batches_ == 0) fail("calibration has seen no batch");
  std::vector<CalibratedRange> results;
  for (const Quantizer& quantizer : quantizers_) {
    CalibratedRange result{.quantizer = quantizer.node->name(),
                           .attributes = quantizer.attributes,
                           .is_weights = quantizer.is_weights,
                           .seen = quantizer.seen};
    for (std::size_t c = 0; c < quantizer.seen.size(); ++c)
      result.set.push_back(stored(range_of(quantizer, c), quantizer.attributes.grid_options()));
    store(result, quantizer);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace miniqat::quantize
