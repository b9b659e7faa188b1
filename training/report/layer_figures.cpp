#include "training/report/layer_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <unordered_map>

#include "core/engine/session.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "datasets/loader.h"
#include "quantize/op_roles.h"
#include "training/report/quantization_points.h"

namespace miniqat::training {
namespace {

/// A picture has no room for more.
constexpr std::int64_t kMostCounts = 256;

void count(Bins& bins, double place) {
  if (!(place >= 0))
    ++bins.below;
  else if (place >= static_cast<double>(bins.counts.size()))
    ++bins.above;
  else
    ++bins.counts[static_cast<std::size_t>(place)];
}

using quantize::QuantizerRange;

bool is_finite(const QuantizerRange& range) {
  return std::ranges::all_of(range.ranges,
                             [](const auto& one) { return std::isfinite(one.min) && std::isfinite(one.max); });
}

std::vector<std::int64_t> extents(const Shape& shape) { return {shape.extents().begin(), shape.extents().end()}; }

/// The first pictures, in the network's batches.
struct Pictures {
  std::vector<CodedTensor> batches = {};
  std::vector<std::int64_t> valid = {};

  /// The numbers of a tensor of the batch that belong to pictures.
  std::int64_t elements(const Tensor& tensor, std::size_t batch) const {
    return tensor.elements() / tensor.shape()[0] * valid[batch];
  }
};

Pictures read_pictures(const LayerSubject& subject) {
  Pictures pictures;
  if (subject.pictures == nullptr) return pictures;
  const datasets::Dataset head = datasets::first_examples(*subject.pictures, subject.examples);
  datasets::for_each_batch(head, subject.network.images.shape()[0], [&](const datasets::EvaluationBatch& batch) {
    pictures.batches.push_back(batch.images.clone());
    pictures.valid.push_back(batch.valid);
  });
  return pictures;
}

std::map<std::string, QuantizerRange> finite_ranges(const LayerSubject& subject) {
  std::map<std::string, QuantizerRange> ranges;
  for (QuantizerRange& range : quantize::quantizer_ranges(subject.network.graph, subject.variables))
    if (is_finite(range)) ranges.emplace(range.quantizer, std::move(range));
  return ranges;
}

class LayerExamination {
 public:
  LayerExamination(const LayerSubject& subject, Pictures pictures, const ReportProgress& progress)
      : subject_(subject),
        progress_(progress),
        pictures_(std::move(pictures)),
        points_(find_quantization_points(subject.network.graph)),
        ranges_(finite_ranges(subject)) {}

  std::vector<LayerFigures> run() {
    describe();
    look_at_weights();
    if (!pictures_.batches.empty() && !ranges_.empty()) look_at_outputs();
    return std::move(figures_);
  }

 private:
  void describe() {
    const std::vector<LayerCost> costs = layer_costs(subject_.network.graph, subject_.network.images.shape()[0]);
    std::unordered_map<const Node*, const LayerCost*> cost_of;
    for (const LayerCost& cost : costs) cost_of.emplace(cost.layer, &cost);
    for (const QuantizationPoint& point : points_) {
      LayerFigures& one = figures_.emplace_back(LayerFigures{.name = point.name, .type = {}});
      const Shape& output = point.tap().shape();
      one.output_shape = extents(Shape(output.extents().subspan(output.rank() > 1 ? 1 : 0)));
      if (point.output != nullptr) one.output_bits = point.output->as<quantize::FakeQuant>()->bits;
      if (point.layer == nullptr) continue;
      one.type = point.layer->type();
      one.weight_shape = extents(point.layer->input(1).shape());
      one.cost = *cost_of.at(point.layer);
    }
  }

  const QuantizerRange* range_of(const Node* quantizer) const {
    const auto found = quantizer == nullptr ? ranges_.end() : ranges_.find(quantizer->name());
    return found == ranges_.end() ? nullptr : &found->second;
  }

  std::unique_ptr<Session> session_of(Graph& graph) const {
    auto session = std::make_unique<Session>(graph);
    session->restore({.tensors = subject_.variables, .metadata = {}}, Session::Restore::kByName, "the run");
    return session;
  }

  /// Weights that a fold computes depend on variables, never on pictures. Several at once: each run has to find its way
  /// through the whole graph.
  void look_at_weights() {
    progress_("weights");
    Graph graph = subject_.network.graph.clone();
    const std::unique_ptr<Session> session = session_of(graph);
    constexpr std::size_t kMostTensors = 64;
    constexpr std::int64_t kMostElements = std::int64_t{1} << 24;
    std::vector<std::size_t> chosen;
    std::vector<Output> taps;
    std::int64_t elements = 0;
    const auto look = [&] {
      if (taps.empty()) return;
      const std::vector<Tensor> values = session->run({.fetches = taps}, {}).fetched;
      for (std::size_t k = 0; k < chosen.size(); ++k) look_at_weights_of(chosen[k], values[k]);
      chosen.clear();
      taps.clear();
      elements = 0;
    };
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (points_[i].layer == nullptr) continue;
      const bool quantized = range_of(points_[i].weights) != nullptr;
      const Node& node = graph.at((quantized ? points_[i].weights : points_[i].layer)->name());
      chosen.push_back(i);
      taps.push_back(node.input(quantized ? 0 : 1));
      elements += taps.back().shape().elements();
      if (taps.size() == kMostTensors || elements >= kMostElements) look();
    }
    look();
  }

  void look_at_weights_of(std::size_t i, const Tensor& x) {
    const QuantizerRange* range = range_of(points_[i].weights);
    if (range == nullptr) {
      figures_[i].float_weights = float_figures(x);
      return;
    }
    TensorCounter counter(*range);
    counter.add(x, x.elements());
    figures_[i].weights = counter.finish();
    figures_[i].samples = samples_of(*range, x);
  }

  static std::vector<WeightSample> samples_of(const QuantizerRange& range, const Tensor& x) {
    constexpr std::int64_t kMost = 8;
    const std::vector<quantize::Affine<float>> grids = range.grids();
    const std::int64_t count = std::min(kMost, x.elements());
    std::vector<WeightSample> samples;
    for (std::int64_t i = 0; i < count; ++i) {
      // All channels come up, also those of a tensor whose channels are a multiple of `count`.
      const std::int64_t index = i * (x.elements() - 1) / std::max<std::int64_t>(count - 1, 1);
      const quantize::Affine<float>& grid = grids[static_cast<std::size_t>(index) % grids.size()];
      const float value = x.data<float>()[index], integer = quantize::quantize(grid, value);
      samples.push_back({index, value, static_cast<std::int64_t>(integer), quantize::dequantize(grid, integer)});
    }
    return samples;
  }

  std::vector<Tensor> run_batch(Session& session, const std::vector<Output>& taps, std::size_t batch) const {
    const Output images = session.graph().at(subject_.network.images.node->name()).output();
    return session.run({.fetches = taps}, {{images, pictures_.batches[batch]}}).fetched;
  }

  void add_noise(std::optional<NoiseSum>& sum, const Tensor& exact, const Tensor& quantized, std::size_t batch) const {
    if (!sum) sum.emplace();
    const std::int64_t elements = pictures_.elements(exact, batch);
    for (std::int64_t k = 0; k < elements; ++k) sum->add(exact.data<float>()[k], quantized.data<float>()[k]);
  }

  /// From the picture on, each quantizer alone, and what each of them reads.
  void look_at_outputs() {
    AloneNetwork alone = alone_network(subject_.network.graph, points_);
    const std::unique_ptr<Session> float_session = session_of(alone.graph);
    Graph graph = subject_.network.graph.clone();
    const std::unique_ptr<Session> session = session_of(graph);
    std::vector<std::optional<TensorCounter>> counters(points_.size());
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (const QuantizerRange* range = range_of(points_[i].output)) counters[i].emplace(*range);
    for (std::size_t batch = 0; batch < pictures_.batches.size(); ++batch) {
      progress_(concat("outputs, batch ", batch + 1, " of ", pictures_.batches.size()));
      count_batch(*float_session, alone, *session, counters, batch);
    }
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (counters[i]) figures_[i].output = counters[i]->finish();
  }

  void count_batch(Session& float_session, const AloneNetwork& alone, Session& session,
                   std::vector<std::optional<TensorCounter>>& counters, std::size_t batch) {
    const std::size_t count = points_.size();
    std::vector<Output> taps = alone.exact;
    for (const Output& one : alone.alone)
      if (one.node != nullptr) taps.push_back(one);
    const std::vector<Tensor> in_float = run_batch(float_session, taps, batch);
    std::vector<Output> own, read;
    for (const QuantizationPoint& point : points_) {
      const Node& node = session.graph().at(point.tap().node->name());
      own.push_back(node.output());
      read.push_back(point.output != nullptr ? node.input(0) : node.output());
    }
    own.insert(own.end(), read.begin(), read.end());
    const std::vector<Tensor> values = run_batch(session, own, batch);
    std::vector<const Tensor*> alone_values(count);
    for (std::size_t i = 0, next = count; i < count; ++i)
      if (alone.alone[i].node != nullptr) alone_values[i] = &in_float[next++];
    // Each point has sums of its own.
    parallel_for(static_cast<std::int64_t>(count), 1, [&](std::int64_t first, std::int64_t last) {
      for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
        add_noise(figures_[i].from_picture, in_float[i], values[i], batch);
        if (alone_values[i] != nullptr) add_noise(figures_[i].alone, in_float[i], *alone_values[i], batch);
        const Tensor& x = values[count + i];
        if (counters[i]) counters[i]->add(x, pictures_.elements(x, batch));
      }
    });
  }

  const LayerSubject& subject_;
  const ReportProgress& progress_;
  const Pictures pictures_;
  const std::vector<QuantizationPoint> points_;
  const std::map<std::string, QuantizerRange> ranges_;
  std::vector<LayerFigures> figures_;
};

}  // namespace

std::optional<double> NoiseSum::decibels() const {
  const double value = 10 * std::log10(signal / noise);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

TensorCounter::TensorCounter(const quantize::QuantizerRange& quantizer) : grids_(quantizer.grids()) {
  figures_.quantizer = quantizer;
  const std::int64_t bits = quantizer.attributes.bits;
  figures_.quant_min = quantizer.attributes.narrow_range ? 1 : 0;
  figures_.quant_max = (std::int64_t{1} << bits) - 1;
  const std::int64_t levels = figures_.levels();
  counts_.resize(static_cast<std::size_t>(levels));
  figures_.integers_per_count = std::max<std::int64_t>(1, (std::int64_t{1} << bits) / kMostCounts);
  // A power of two: then a bin ends exactly where one integer becomes the next.
  bins_per_integer_ = bits <= 4 ? 8 : bits <= 5 ? 4 : bits <= 6 ? 2 : 1;
  margin_ = std::max<std::int64_t>(1, levels / 8 / figures_.integers_per_count) * figures_.integers_per_count;
  Bins& bins = figures_.floats;
  bins.width = static_cast<double>(figures_.integers_per_count) / static_cast<double>(bins_per_integer_);
  bins.first = static_cast<double>(figures_.quant_min - margin_) - 0.5;
  const std::int64_t groups = (levels + figures_.integers_per_count - 1) / figures_.integers_per_count;
  bins.counts.resize(
      static_cast<std::size_t>((groups + 2 * margin_ / figures_.integers_per_count) * bins_per_integer_));
}

void TensorCounter::add(const Tensor& x, std::int64_t elements) {
  const float* values = x.data<float>();
  for (std::int64_t i = 0; i < elements; ++i) {
    const quantize::Affine<float>& grid = grids_[static_cast<std::size_t>(i) % grids_.size()];
    const float value = values[i];
    if (std::isnan(value)) {
      ++figures_.nan;
      continue;
    }
    const float integer = quantize::quantize(grid, value);
    if (figures_.values == 0) figures_.min = figures_.max = value;
    ++figures_.values;
    figures_.min = std::min(figures_.min, value);
    figures_.max = std::max(figures_.max, value);
    ++counts_[static_cast<std::size_t>(static_cast<std::int64_t>(integer) - figures_.quant_min)];
    figures_.noise.add(value, quantize::dequantize(grid, integer));
    // The sum that quantize() rounds down: an integer's bins are those of the numbers that become it.
    const float steps = (value - grid.nudged_min) / grid.scale + 0.5f;
    figures_.clipped += steps < 0 || steps >= static_cast<float>(counts_.size()) ? 1 : 0;
    count(figures_.floats, (static_cast<double>(steps) + static_cast<double>(margin_)) / figures_.floats.width);
  }
}

TensorFigures TensorCounter::finish() const {
  TensorFigures figures = figures_;
  figures.unused = std::ranges::count(counts_, 0);
  const auto group = static_cast<std::size_t>(figures.integers_per_count);
  figures.integers.assign((counts_.size() + group - 1) / group, 0);
  for (std::size_t i = 0; i < counts_.size(); ++i) figures.integers[i / group] += counts_[i];
  return figures;
}

FloatFigures float_figures(const Tensor& x) {
  constexpr std::size_t kBins = 64;
  FloatFigures figures{.values = x.elements()};
  const auto values = x.values<float>();
  const bool is_finite = std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
  if (values.empty() || !is_finite) return figures;
  const auto [min, max] = std::ranges::minmax(values);
  figures.min = min;
  figures.max = max;
  const double width = (static_cast<double>(max) - min) / kBins;
  figures.floats = {.first = min, .width = width > 0 ? width : 1, .counts = std::vector<std::int64_t>(kBins)};
  // The largest lies on the end of the last bin.
  for (const float value : values)
    ++figures.floats
          .counts[std::min(kBins - 1, static_cast<std::size_t>((value - figures.floats.first) / figures.floats.width))];
  return figures;
}

std::vector<LayerFigures> layer_figures(const LayerSubject& subject, const ReportProgress& progress) {
  return LayerExamination(subject, read_pictures(subject), progress).run();
}

}  // namespace miniqat::training
