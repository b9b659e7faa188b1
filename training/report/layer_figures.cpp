#include "training/report/layer_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/engine/session.h"
#include "core/error.h"
#include "core/text/counted.h"
#include "datasets/loader.h"
#include "quantize/op_roles.h"
#include "training/report/places.h"

namespace miniqat::training {
namespace {

using quantize::QuantizerRange;

bool is_finite(const QuantizerRange& range) {
  return std::ranges::all_of(range.ranges,
                             [](const auto& one) { return std::isfinite(one.min) && std::isfinite(one.max); });
}

std::vector<std::int64_t> extents(const Shape& shape) { return {shape.extents().begin(), shape.extents().end()}; }

/// The first pictures, in the network's batches.
class Pictures {
 public:
  explicit Pictures(const LayerSubject& subject) {
    if (subject.pictures == nullptr) return;
    const datasets::Dataset head = datasets::first_examples(*subject.pictures, subject.examples);
    datasets::for_each_batch(head, subject.network.images.shape()[0], [&](const datasets::EvaluationBatch& batch) {
      images_.push_back(batch.images.clone());
      valid_.push_back(batch.valid);
    });
  }

  std::size_t batches() const { return images_.size(); }
  const Tensor& images(std::size_t batch) const { return images_[batch]; }
  /// The numbers of a tensor of the batch that belong to pictures.
  std::int64_t elements(const Tensor& tensor, std::size_t batch) const {
    return tensor.elements() / tensor.shape()[0] * valid_[batch];
  }

 private:
  std::vector<Tensor> images_;
  std::vector<std::int64_t> valid_;
};

class LayerExamination {
 public:
  LayerExamination(const LayerSubject& subject, const ReportProgress& progress)
      : subject_(subject), progress_(progress), pictures_(subject), places_(find_places(subject.network.graph)) {
    for (QuantizerRange& range : quantize::quantizer_ranges(subject.network.graph, subject.variables))
      if (is_finite(range)) ranges_.emplace(range.quantizer, std::move(range));
  }

  std::vector<LayerFigures> run() {
    describe();
    look_at_weights();
    if (pictures_.batches() > 0 && !ranges_.empty()) look_at_outputs();
    return std::move(figures_);
  }

 private:
  void describe() {
    const std::vector<LayerCost> costs = layer_costs(subject_.network.graph, subject_.network.images.shape()[0]);
    for (const Place& place : places_) {
      LayerFigures& one = figures_.emplace_back(LayerFigures{.name = place.name, .type = {}});
      const Shape& output = tap(place).shape();
      one.output_shape = extents(Shape(output.extents().subspan(output.rank() > 1 ? 1 : 0)));
      if (place.output != nullptr) one.output_bits = place.output->as<quantize::FakeQuant>()->bits;
      if (place.layer == nullptr) continue;
      one.type = place.layer->type();
      one.weight_shape = extents(place.layer->input(1).shape());
      one.cost = *std::ranges::find(costs, place.layer, &LayerCost::layer);
    }
  }

  /// Where the noise of a place is measured.
  static Output tap(const Place& place) {
    return place.output != nullptr ? place.output->output() : place.layer->output();
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

  /// Weights that a fold computes depend on variables, never on pictures.
  void look_at_weights() {
    progress_("weights");
    Graph graph = subject_.network.graph.clone();
    const std::unique_ptr<Session> session = session_of(graph);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].layer == nullptr) continue;
      const QuantizerRange* range = range_of(places_[i].weights);
      const Node& node = graph.at((range != nullptr ? places_[i].weights : places_[i].layer)->name());
      const Tensor x = session->run({.fetches = {node.input(range != nullptr ? 0 : 1)}}, {}).fetched.front();
      if (range == nullptr) {
        figures_[i].float_weights = float_figures(x);
        continue;
      }
      TensorCounter counter(*range);
      counter.add(x, x.elements());
      figures_[i].weights = counter.finish();
      figures_[i].samples = samples_of(*range, x);
    }
  }

  static std::vector<WeightSample> samples_of(const QuantizerRange& range, const Tensor& x) {
    constexpr std::int64_t kMost = 8;
    const std::vector<quantize::Affine<float>> grids = range.grids();
    const std::int64_t count = std::min(kMost, x.elements());
    std::vector<WeightSample> samples;
    for (std::int64_t i = 0; i < count; ++i) {
      // Also of a tensor whose channels are a multiple of `count`, all come up.
      const std::int64_t index = i * (x.elements() - 1) / std::max<std::int64_t>(count - 1, 1);
      const quantize::Affine<float>& grid = grids[static_cast<std::size_t>(index) % grids.size()];
      const float value = x.data<float>()[index], integer = quantize::quantize(grid, value);
      samples.push_back({index, value, static_cast<std::int64_t>(integer), quantize::dequantize(grid, integer)});
    }
    return samples;
  }

  /// The tensors at which the places' outputs are measured, in a clone of the network. A quantizer that is bypassed
  /// there hands out what it reads.
  std::vector<Output> taps_in(const Graph& graph, bool in_float) const {
    std::vector<Output> taps;
    for (const Place& place : places_) {
      const Node& node = *tap(place).node;
      const Node& same = graph.at(node.name());
      taps.push_back(in_float && quantize::is_quantizer(node) ? same.input(0) : same.output());
    }
    return taps;
  }

  std::vector<Tensor> run_batch(Session& session, const std::vector<Output>& taps, std::size_t batch) const {
    const Output images = session.graph().at(subject_.network.images.node->name()).output();
    return session.run({.fetches = taps}, {{images, pictures_.images(batch)}}).fetched;
  }

  void look_at_outputs() {
    progress_("outputs, in float");
    Graph in_float = with_quantizers(subject_.network.graph, {});
    const std::unique_ptr<Session> session = session_of(in_float);
    const std::vector<Output> taps = taps_in(in_float, true);
    for (std::size_t batch = 0; batch < pictures_.batches(); ++batch)
      exact_.push_back(run_batch(*session, taps, batch));
    count_outputs();
    for (std::size_t i = 0; i < places_.size(); ++i) measure_alone(i);
  }

  void add_noise(std::optional<NoiseSum>& sum, const Tensor& exact, const Tensor& quantized, std::size_t batch) const {
    if (!sum) sum.emplace();
    const std::int64_t elements = pictures_.elements(exact, batch);
    for (std::int64_t k = 0; k < elements; ++k) sum->add(exact.data<float>()[k], quantized.data<float>()[k]);
  }

  /// From the picture on: what each quantizer reads, and what it makes of that.
  void count_outputs() {
    progress_("outputs, quantized");
    Graph graph = subject_.network.graph.clone();
    const std::unique_ptr<Session> session = session_of(graph);
    std::vector<Output> taps = taps_in(graph, false), read = taps_in(graph, true);
    taps.insert(taps.end(), read.begin(), read.end());
    std::vector<std::optional<TensorCounter>> counters(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (const QuantizerRange* range = range_of(places_[i].output)) counters[i].emplace(*range);
    for (std::size_t batch = 0; batch < pictures_.batches(); ++batch) {
      const std::vector<Tensor> values = run_batch(*session, taps, batch);
      for (std::size_t i = 0; i < places_.size(); ++i) {
        add_noise(figures_[i].from_picture, exact_[batch][i], values[i], batch);
        const Tensor& x = values[places_.size() + i];
        if (counters[i]) counters[i]->add(x, pictures_.elements(x, batch));
      }
    }
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (counters[i]) figures_[i].output = counters[i]->finish();
  }

  void measure_alone(std::size_t i) {
    const Place& place = places_[i];
    std::set<std::string> working;
    for (const Node* quantizer : {place.weights, place.output})
      if (quantizer != nullptr) working.insert(quantizer->name());
    if (working.empty()) return;
    progress_(concat("place ", i + 1, " of ", places_.size(), " alone: ", place.name));
    Graph graph = with_quantizers(subject_.network.graph, working);
    const std::unique_ptr<Session> session = session_of(graph);
    const std::vector<Output> taps = {graph.at(tap(place).node->name()).output()};
    for (std::size_t batch = 0; batch < pictures_.batches(); ++batch)
      add_noise(figures_[i].alone, exact_[batch][i], run_batch(*session, taps, batch).front(), batch);
  }

  const LayerSubject& subject_;
  const ReportProgress& progress_;
  const Pictures pictures_;
  const std::vector<Place> places_;
  std::map<std::string, QuantizerRange> ranges_;
  std::vector<LayerFigures> figures_;
  /// By batch and place, of the network in float.
  std::vector<std::vector<Tensor>> exact_;
};

}  // namespace

std::vector<LayerFigures> layer_figures(const LayerSubject& subject, const ReportProgress& progress) {
  return LayerExamination(subject, progress).run();
}

}  // namespace miniqat::training
