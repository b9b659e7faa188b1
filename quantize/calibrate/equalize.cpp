#include "quantize/calibrate/equalize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/tensors/eigen.h"
#include "core/text/error.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/reshape.h"

namespace miniqat::quantize {
namespace {

/// Relative, of all scales in a sweep.
constexpr double kSettled = 1e-6;
constexpr int kMostSweeps = 1000;
constexpr double kReluSix = 6;

/// gamma / sigma of each channel, or ones.
std::vector<double> folded_factors(const ChannelLayer& layer, Session& session) {
  std::vector<double> factors(static_cast<std::size_t>(layer.outputs()), 1);
  if (layer.batch_norm == nullptr) return factors;
  const auto value = [&](int input) {
    return session.run({.fetches = {layer.batch_norm->input(input)}}, {}).fetched[0];
  };
  const Tensor gamma = value(1), variance = value(4);
  const double epsilon = layer.batch_norm->as<layers::BatchNorm>()->epsilon;
  vector_of(std::span(factors)) =
      vector_of<float>(gamma).cast<double>() / (vector_of<float>(variance).cast<double>() + epsilon).sqrt();
  return factors;
}

/// A layer's folded weights, and by what they are to be multiplied.
struct ScaledLayer {
  const ChannelLayer* layer = nullptr;
  /// The largest magnitude for each input and output channel, over the kernel; of a depthwise layer for each output.
  std::vector<double> magnitudes = {};
  std::vector<WeightPlace> cell_channels = {};
  /// The scales of the pair that ends here, and of the pair that begins here.
  std::vector<double> input_scales = {};
  std::vector<double> output_scales = {};

  ScaledLayer(const ChannelLayer& of, Session& session) : layer(&of) {
    const std::vector<double> factors = folded_factors(of, session);
    const Tensor weights = session.variable(of.weights->name());
    const bool depthwise = of.layer->as<layers::DepthwiseConv2d>();
    const std::int64_t cells = of.outputs() * (depthwise ? 1 : of.inputs());
    magnitudes.resize(static_cast<std::size_t>(cells));
    for (std::int64_t cell = 0; cell < cells; ++cell) cell_channels.push_back(place_of(of, cell));
    input_scales.assign(static_cast<std::size_t>(of.inputs()), 1);
    output_scales.assign(static_cast<std::size_t>(of.outputs()), 1);
    for (std::int64_t i = 0; i < weights.elements(); ++i) {
      const auto cell = static_cast<std::size_t>(i % cells);
      const double value =
          std::abs(weights.data<float>()[i] * factors[static_cast<std::size_t>(cell_channels[cell].output)]);
      if (!std::isfinite(value)) fail(describe(*of.layer), " has weights that are not finite");
      magnitudes[cell] = std::max(magnitudes[cell], value);
    }
  }

  double input_scale(std::size_t cell) const {
    return input_scales[static_cast<std::size_t>(cell_channels[cell].input)];
  }
  double output_scale(std::size_t cell) const {
    return output_scales[static_cast<std::size_t>(cell_channels[cell].output)];
  }

  /// r1: of each output channel, under the scales of the inputs alone.
  std::vector<double> output_ranges() const {
    std::vector<double> ranges(output_scales.size());
    for (std::size_t cell = 0; cell < magnitudes.size(); ++cell) {
      double& range = ranges[static_cast<std::size_t>(cell_channels[cell].output)];
      range = std::max(range, magnitudes[cell] * input_scale(cell));
    }
    return ranges;
  }

  /// r2: of what is multiplied with each channel of the layer before, under the scales of the outputs alone.
  std::vector<double> input_ranges(std::size_t channels) const {
    std::vector<double> ranges(channels);
    for (std::size_t cell = 0; cell < magnitudes.size(); ++cell) {
      double& range = ranges[static_cast<std::size_t>(cell_channels[cell].input) % channels];
      range = std::max(range, magnitudes[cell] / output_scale(cell));
    }
    return ranges;
  }
};

/// Between which values a pair's scales may lie: at least `least`; `fixed` ones are 1.
struct ScaleLimits {
  std::vector<double> least;
  std::vector<bool> fixed;
};

ScaleLimits limits_of(const ChannelPair& pair, const std::vector<double>& peaks) {
  const double ceiling = pair.has_relu6 ? kReluSix : std::numeric_limits<double>::infinity();
  const double top = std::min(std::ranges::max(peaks), ceiling);
  ScaleLimits limits{.least = std::vector<double>(peaks.size(), 0), .fixed = std::vector<bool>(peaks.size(), false)};
  for (std::size_t c = 0; c < peaks.size(); ++c) {
    limits.fixed[c] = peaks[c] >= ceiling;
    if (peaks[c] > 0) limits.least[c] = peaks[c] / top;
  }
  return limits;
}

void scale(Session& session, const std::string& name, const auto& factor) {
  Tensor values = session.variable(name).clone();
  for (std::int64_t i = 0; i < values.elements(); ++i)
    values.data<float>()[i] = static_cast<float>(values.data<float>()[i] * factor(i));
  session.set_variable(name, values);
}

const Node* variable_of(Output tensor) {
  while (tensor.node->as<layers::Identity>()) tensor = tensor.node->input(0);
  return tensor.node;
}

/// The vectors that a factor on the outputs goes into; without a batch norm it goes into the weights, too.
std::vector<std::string> output_vectors(const ChannelLayer& layer) {
  if (layer.batch_norm != nullptr)
    return {variable_of(layer.batch_norm->input(1))->name(), variable_of(layer.batch_norm->input(2))->name()};
  if (layer.bias != nullptr) return {layer.bias->name()};
  return {};
}

void store(Session& session, const ScaledLayer& scaled) {
  const ChannelLayer& layer = *scaled.layer;
  const auto output_factor = [&](std::int64_t c) { return 1 / scaled.output_scales[static_cast<std::size_t>(c)]; };
  for (const std::string& name : output_vectors(layer)) scale(session, name, output_factor);
  const auto cells = std::ssize(scaled.magnitudes);
  scale(session, layer.weights->name(), [&](std::int64_t i) {
    const auto cell = static_cast<std::size_t>(i % cells);
    return scaled.input_scale(cell) / (layer.batch_norm != nullptr ? 1 : scaled.output_scale(cell));
  });
}

/// All pairs of a network.
class Sweeps {
 public:
  Sweeps(const std::vector<ChannelPair>& pairs, const std::vector<std::vector<double>>& peaks, Session& session)
      : pairs_(pairs) {
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      limits_.push_back(limits_of(pairs[k], peaks[k]));
      for (const ChannelLayer* layer : {&pairs[k].first, &pairs[k].second})
        layers_.try_emplace(layer->layer, *layer, session);
    }
  }

  /// The largest relative change of a scale.
  double sweep() {
    double change = 0;
    for (std::size_t k = 0; k < pairs_.size(); ++k) {
      ScaledLayer& first = layers_.at(pairs_[k].first.layer);
      ScaledLayer& second = layers_.at(pairs_[k].second.layer);
      const std::vector<double> r1 = first.output_ranges(), r2 = second.input_ranges(r1.size());
      for (std::size_t c = 0; c < r1.size(); ++c) {
        const double wanted = r1[c] > 0 && r2[c] > 0 ? std::sqrt(r1[c] / r2[c]) : 1;
        const double scale = limits_[k].fixed[c] ? 1 : std::max(wanted, limits_[k].least[c]);
        change = std::max(change, std::abs(scale / first.output_scales[c] - 1));
        first.output_scales[c] = scale;
      }
      for (std::size_t i = 0; i < second.input_scales.size(); ++i)
        second.input_scales[i] = first.output_scales[i % r1.size()];
    }
    return change;
  }

  EqualizedPair report(std::size_t k) const {
    const ScaledLayer& first = layers_.at(pairs_[k].first.layer);
    const ScaledLayer& second = layers_.at(pairs_[k].second.layer);
    const std::vector<double> r1 = first.output_ranges(), r2 = second.input_ranges(r1.size());
    EqualizedPair pair{.first = pairs_[k].first.layer->name(),
                       .second = pairs_[k].second.layer->name(),
                       .scales = first.output_scales};
    for (std::size_t c = 0; c < r1.size(); ++c) {
      const bool empty = r1[c] == 0 || r2[c] == 0, fixed = limits_[k].fixed[c];
      pair.clipped += fixed;
      pair.empty += empty && !fixed;
      pair.limited += !empty && !fixed && limits_[k].least[c] > std::sqrt(r1[c] / r2[c]);
    }
    return pair;
  }

  const std::map<const Node*, ScaledLayer>& layers() const { return layers_; }

 private:
  const std::vector<ChannelPair>& pairs_;
  std::vector<ScaleLimits> limits_;
  std::map<const Node*, ScaledLayer> layers_;
};

std::string scales_text(const EqualizedPair& pair) {
  const auto [least, most] = std::ranges::minmax(pair.scales);
  std::string text = concat(counted(pair.scales.size(), "channel"), ", scales ", least, " to ", most);
  if (pair.limited > 0) text += concat(", ", pair.limited, " limited by the activation's range");
  if (pair.clipped > 0) text += concat(", ", pair.clipped, " kept because they reach 6");
  if (pair.empty > 0) text += concat(", ", pair.empty, " kept because their weights are 0");
  return text;
}

}  // namespace

std::string Equalization::text() const {
  std::string text;
  for (const EqualizedPair& pair : pairs)
    text += concat("  equalized  ", pair.first, " and ", pair.second, ": ", scales_text(pair), "\n");
  for (const LeftOutLayer& layer : left_out) text += concat("  left out   ", layer.layer, ": ", layer.reason, "\n");
  return text;
}

Equalizer::Equalizer(Session& session, const std::string& scope)
    : session_(session), search_(find_channel_pairs(session.graph(), scope)) {
  for (const ChannelPair& pair : search_.pairs) peaks_.emplace_back(static_cast<std::size_t>(pair.first.outputs()), 0);
}

void Equalizer::observe(const Feeds& feeds) {
  ++batches_;
  RunRequest request;
  for (const ChannelPair& pair : search_.pairs) request.fetches.push_back(pair.before_clamp);
  if (request.fetches.empty()) return;
  const std::vector<Tensor> fetched = session_.run(request, feeds).fetched;
  for (std::size_t k = 0; k < fetched.size(); ++k) {
    std::vector<double>& peaks = peaks_[k];
    const bool signless = search_.pairs[k].activation == nullptr;
    std::size_t channel = 0;
    for (const float value : fetched[k].values<float>()) {
      if (!std::isfinite(value)) fail(describe(*search_.pairs[k].before_clamp.node), " has values that are not finite");
      peaks[channel] = std::max<double>(peaks[channel], signless ? std::abs(value) : value);
      if (++channel == peaks.size()) channel = 0;
    }
  }
}

Equalization Equalizer::finish() {
  if (batches_ == 0) fail("equalization has seen no batch");
  Equalization result{.pairs = {}, .left_out = search_.left_out};
  Sweeps sweeps(search_.pairs, peaks_, session_);
  while (result.sweeps < kMostSweeps) {
    ++result.sweeps;
    if (sweeps.sweep() < kSettled) break;
  }
  for (std::size_t k = 0; k < search_.pairs.size(); ++k) result.pairs.push_back(sweeps.report(k));
  for (const auto& [node, layer] : sweeps.layers()) store(session_, layer);
  return result;
}

std::vector<std::string> Equalizer::variables() const {
  std::set<std::string> names;
  for (const ChannelPair& pair : search_.pairs) {
    names.insert(pair.second.weights->name());
    if (pair.first.batch_norm == nullptr) names.insert(pair.first.weights->name());
    for (const std::string& name : output_vectors(pair.first)) names.insert(name);
  }
  return {names.begin(), names.end()};
}

}  // namespace miniqat::quantize
