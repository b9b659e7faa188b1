#include "training/quantize/sensitivity.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "datasets/loader.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/fake_quant.h"
#include "quantize/range_kind.h"
#include "quantize/rewrite/layer_bits.h"
#include "quantize/rewrite/rewrite.h"
#include "training/calibrate/batch_norm_statistics.h"
#include "training/evaluate/part_results.h"
#include "training/figures.h"
#include "training/quantize/bit_allocation.h"
#include "training/run/data_of_run.h"
#include "training/run/run_source.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

constexpr std::int64_t kMostBits = 16;

using QuantizerNames = std::set<std::string>;

/// The rewritten evaluation graph at one width, with calibrated ranges.
struct CalibratedWidth {
  Graph graph;
  NamedTensors variables = {};
};

/// The outputs of a network for the pictures, one after the other.
struct NetworkOutputs {
  Evaluation evaluation;
  std::vector<float> logits;
};

FloatRun source_of(const SensitivityRequest& request) {
  FloatRun source = request.model ? read_float_model(*request.model) : read_float_run(request.run);
  source.settings.skip_broken = source.settings.skip_broken || request.skip_broken;
  return source;
}

class SensitivityMeasurement {
 public:
  SensitivityMeasurement(const SensitivityRequest& request, FloatRun source, RunObserver& observer)
      : request_(request), observer_(observer), source_(std::move(source)) {}

  Sensitivity run() {
    prepare();
    const auto started = std::chrono::steady_clock::now();
    total_ = 1 + static_cast<std::int64_t>(result_.bits.size() * (2 + result_.quantizers.size())) +
             (has_other_logits() ? 1 : 0) + (is_choosing() ? 1 + uniform_candidates() : 0);
    announce();
    for (const std::int64_t bits : result_.bits) calibrate_at(bits);
    if (has_other_logits()) calibrate_at(request_.logits_bits);
    begin("float");
    in_float_ = ask(widths_.front(), {});
    result_.in_float = in_float_.evaluation;
    if (const std::string warning =
            warning_of_one_answer(result_.in_float, data_.train, "the float network", result_.dataset);
        !warning.empty())
      observer_.warn(warning);
    if (!std::isfinite(result_.in_float.loss)) fail("the loss of the float network is NaN or infinite");
    for (std::size_t i = 0; i < result_.bits.size(); ++i) measure_at(i);
    result_.weight_front = greedy_front(costs_of(result_.quantizers, true), result_.bits);
    result_.activation_front = greedy_front(costs_of(result_.quantizers, false), result_.bits);
    if (is_choosing()) choose();
    observer_.on_evaluation(total_, total_, "");
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    return std::move(result_);
  }

 private:
  void prepare() {
    require_scope(source_.training.graph, request_.rewrite.scope, source_.settings.model);
    result_.model = source_.settings.model;
    result_.dataset = request_.dataset.empty() ? source_.settings.dataset : resolved_dataset(request_.dataset);
    check_dataset(result_.dataset, request_.data_dir);
    set_thread_count(request_.threads == 0 ? default_thread_count() : request_.threads);
    result_.bits = request_.bits;
    std::ranges::sort(result_.bits, std::greater());
    const std::string& data_dir = request_.data_dir.empty() ? source_.settings.data_dir : request_.data_dir;
    data_ = load_data(source_, result_.dataset, data_dir).splits;
    find_quantizers();
    check_bytes();
    warn_of_files(data_, observer_);
    share_pictures();
  }

  bool is_choosing() const { return request_.budget.average_bits || request_.budget.bytes; }

  std::int64_t uniform_candidates() const {
    return std::ranges::count_if(result_.bits,
                                 [&](std::int64_t bits) { return allows_everywhere(request_.budget, result_, bits); });
  }

  /// The logits have a width that is not among --bits.
  bool has_other_logits() const {
    return std::ranges::count(result_.bits, request_.logits_bits) == 0 &&
           std::ranges::any_of(result_.quantizers, [](const auto& one) { return one.fixed_bits.has_value(); });
  }

  /// `layer_bits` says more than `bits`.
  RewriteSettings rewrite_at(std::int64_t bits, std::vector<quantize::LayerBits> layer_bits = {}) const {
    RewriteSettings rewrite = request_.rewrite;
    rewrite.weight_bits = rewrite.activation_bits = static_cast<int>(bits);
    // Learned ranges would have 8 bits here. Beside layer_bits it would come before them.
    if (layer_bits.empty()) rewrite.logits_bits = bits;
    rewrite.ends_bits = {};
    rewrite.layer_bits = std::move(layer_bits);
    return rewrite;
  }

  Graph rewritten(const RewriteSettings& rewrite) const {
    Graph graph = source_.evaluation.graph.clone();
    quantize::create_eval_graph(graph, rewrite_for(rewrite, *source_.evaluation.task, data_.train));
    return graph;
  }

  void find_quantizers() {
    const std::int64_t batch = source_.evaluation.images.shape()[0];
    RewriteSettings rewrite = rewrite_at(result_.bits.front());
    // The logits are known by a width that no other quantizer has here.
    rewrite.logits_bits = result_.bits.front() == kMostBits ? kMostBits - 1 : kMostBits;
    Graph graph = source_.evaluation.graph.clone();
    const auto add = [&](const std::string& layer, const auto& tensors, bool weights) {
      if (tensors.empty()) return;
      QuantizerSensitivity& one = result_.quantizers.emplace_back();
      one.layer = quantize::unfolded_name(layer);
      one.is_weights = weights;
      for (const quantize::QuantizedTensor& tensor : tensors) {
        one.quantizers.push_back(tensor.quantizer);
        one.elements += weights ? tensor.elements : tensor.elements / batch;
        working_.insert(tensor.quantizer);
        if (graph.at(tensor.quantizer).template as<quantize::FakeQuant>()->bits == *rewrite.logits_bits)
          one.fixed_bits = request_.logits_bits;
      }
    };
    for (const auto& layer :
         quantize::create_eval_graph(graph, rewrite_for(rewrite, *source_.evaluation.task, data_.train)).quantizers) {
      add(layer.layer, layer.weights, true);
      add(layer.layer, layer.output, false);
    }
    require_quantizers(graph, rewrite.scope, result_.model);
    for (const Node* node : graph.topological_order())
      if (node->as<quantize::FakeQuant>() != nullptr && !working_.contains(node->name()))
        result_.others.push_back(node->name());
  }

  /// Before minutes of evaluations.
  void check_bytes() const {
    if (!request_.budget.bytes) return;
    std::int64_t least = 0;
    for (const WidthCosts& cost : costs_of(result_.quantizers, true))
      least += packed_bytes(cost.elements, result_.bits.back());
    if (*request_.budget.bytes < least)
      throw UsageError(concat("--bytes ", *request_.budget.bytes, " is impossible: with ", result_.bits.back(),
                              " bits, the fewest of --bits, the weights take ", counted(least, "byte")));
  }

  void share_pictures() {
    result_.batch_size = slots();
    const std::int64_t all = data_.train.size() / result_.batch_size;
    if (all < 2) return share_few();
    result_.batches = std::min(request_.settings.batches, all / 2);
    result_.pictures = std::min(request_.settings.pictures, (all - result_.batches) * result_.batch_size);
  }

  /// Less than two batches of the network: half of the pictures calibrates, as often as it fits into one.
  void share_few() {
    const std::int64_t count = data_.train.size();
    if (count < 2)
      fail(result_.dataset, " has ", counted(count, concat("training ", data_.train.noun())),
           "; calibration and evaluation need one each");
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    Random random(mix(hash_text("training/sensitivity"), static_cast<std::uint64_t>(request_.settings.seed)));
    for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
    result_.batches = 1;
    result_.batch_size = count / 2;
    result_.pictures = std::min(request_.settings.pictures, count - result_.batch_size);
    const auto half = static_cast<std::size_t>(result_.batch_size);
    std::vector<std::int64_t> first;
    for (std::size_t i = 0; i < static_cast<std::size_t>(slots()); ++i) first.push_back(order[i % half]);
    halves_ = {
        datasets::examples_at(data_.train, first),
        datasets::examples_at(data_.train, std::span(order).subspan(half, static_cast<std::size_t>(result_.pictures)))};
  }

  /// Examples that the network takes at a time.
  std::int64_t slots() const { return source_.evaluation.images.shape()[0]; }

  void announce() {
    if (!source_.note.empty()) observer_.warn(source_.note);
    observer_.say(concat(printable(result_.model), " on ", result_.dataset, ": ",
                         counted(result_.quantizers.size(), "quantizer"), " of layers, ",
                         counted(result_.batches, "batch"), " of ", result_.batch_size, " training ",
                         data_.train.noun(), "s for calibration, ", counted(result_.pictures, "other"),
                         " for evaluation", result_.pictures < request_.settings.pictures ? " (all there are)" : ""));
    if (!request_.rewrite.per_channel && result_.bits.back() <= quantize::kFewBits &&
        why_none_updates(source_.training.graph, 0).empty())
      observer_.warn(
          "note: measured with one range of weights for all channels of a layer; quantize gives each channel its own at 4 bits and fewer where there are batch norms: --per-channel measures that");
    if (!result_.others.empty())
      observer_.warn(concat("note: ", counted(result_.others.size(), "quantizer"), " between layers (",
                            result_.others.front(), result_.others.size() > 1 ? ", ..." : "",
                            ") not measured: --activation-bits decides there, not a layer's bits"));
  }

  void begin(const std::string& next) {
    observer_.require_no_stop();
    observer_.on_evaluation(done_++, total_, next);
  }

  datasets::Loader loader(std::int64_t first_batch) const {
    return datasets::Loader(data_.train, {.batch_size = result_.batch_size,
                                          .seed = static_cast<std::uint64_t>(request_.settings.seed),
                                          .first_batch = first_batch});
  }

  void calibrate_at(std::int64_t bits) {
    begin(concat("calibration at ", bits, " bits"));
    CalibratedWidth& width = widths_.emplace_back(CalibratedWidth{.graph = rewritten(rewrite_at(bits))});
    Session session(width.graph);
    take_over(session, source_);
    quantize::Calibrator calibrator(session, {quantize::CalibrationMethod::kMse});
    const Output images = width.graph.at(source_.evaluation.images.node->name()).output();
    const auto observe = [&](const datasets::Examples& batch) {
      observer_.require_no_stop();
      calibrator.observe({{images, batch.images}});
    };
    if (halves_) {
      datasets::for_each_batch(halves_->calibration, slots(), observe);
    } else {
      datasets::Loader batches = loader(0);
      for (std::int64_t batch = 0; batch < result_.batches; ++batch) observe(batches.next());
    }
    calibrator.finish();
    width.variables = session.variables();
  }

  /// The network with the named quantizers at work, and all others bypassed.
  NetworkOutputs ask(const CalibratedWidth& width, const QuantizerNames& working) const {
    Graph graph = with_quantizers(width.graph, working);
    Session session(graph);
    session.restore({.tensors = width.variables, .metadata = {}}, Session::Restore::kByName, "the calibrated graph");
    const Output images = graph.at(source_.evaluation.images.node->name()).output();
    const RunRequest request{.fetches = {graph.outputs().front()}};
    const auto outputs = static_cast<std::size_t>(source_.evaluation.outputs());
    NetworkOutputs answers;
    Tally tally(*source_.evaluation.task, source_.evaluation.outputs());
    const auto add = [&](const datasets::Examples& batch) {
      const Tensor logits = session.run(request, {{images, batch.images}}).fetched.front();
      const std::int64_t valid = std::min(slots(), result_.pictures - tally.examples());
      const auto values = logits.values<float>().first(static_cast<std::size_t>(valid) * outputs);
      tally.add(values, batch, valid);
      answers.logits.insert(answers.logits.end(), values.begin(), values.end());
    };
    if (halves_) {
      datasets::for_each_batch(halves_->evaluation, slots(), add);
    } else {
      // Behind the batches of calibration, in the same pass over the pictures: each picture comes once.
      datasets::Loader batches = loader(result_.batches);
      while (tally.examples() < result_.pictures) add(batches.next());
    }
    answers.evaluation = tally.conclude(data_.train);
    return answers;
  }

  Measurement measure(const CalibratedWidth& width, std::int64_t bits, const QuantizerNames& working) const {
    const NetworkOutputs answers = ask(width, working);
    return {.bits = bits,
            .evaluation = answers.evaluation,
            .loss_increase = answers.evaluation.loss - in_float_.evaluation.loss,
            .snr_db = signal_to_noise(in_float_.logits, answers.logits)};
  }

  void measure_at(std::size_t place) {
    const std::int64_t bits = result_.bits[place];
    for (QuantizerSensitivity& one : result_.quantizers) {
      begin(concat(one.layer, " ", one.kind(), ", ", bits, " bits"));
      one.alone.push_back(measure(widths_[place], bits, {one.quantizers.begin(), one.quantizers.end()}));
    }
    begin(concat("all at ", bits, " bits"));
    RewriteSettings rewrite = rewrite_at(bits);
    rewrite.logits_bits = request_.logits_bits;
    result_.together.push_back(measure_as(rewrite, bits));
  }

  void choose() {
    const BitBudget& budget = request_.budget;
    const WidthChoice activations = activations_within(result_, budget);
    logits_increase_ = logits_increase();
    consider({}, weights_within(result_, budget), activations);
    for (const std::int64_t bits : result_.bits)
      if (allows_everywhere(budget, result_, bits))
        consider(bits, choice_at(result_, bits, true), budget.bytes ? activations : choice_at(result_, bits, false));
    result_.choice = best_of(result_.candidates);
  }

  void consider(std::optional<std::int64_t> uniform, const WidthChoice& weights, const WidthChoice& activations) {
    ChosenBits& one = result_.candidates.emplace_back();
    one.uniform_bits = uniform;
    one.layers = layer_bits_of(result_.quantizers, weights, activations);
    one.average_weight_bits = weights.average;
    one.average_activation_bits = activations.average;
    one.predicted_loss_increase = weights.loss_increase + activations.loss_increase + logits_increase_;
    one.weight_bytes = bytes_of(result_, weights);
    begin(uniform ? concat("in the budget: ", *uniform, " bits") : "in the budget: bits by layer");
    one.measured = measure_as(rewrite_at(result_.bits.front(), one.layers), 0);
  }

  /// The loss increases of outputs with a width of their own, each alone, summed up.
  double logits_increase() const {
    double sum = 0;
    for (const QuantizerSensitivity& one : result_.quantizers) {
      if (!one.fixed_bits) continue;
      const QuantizerNames names{one.quantizers.begin(), one.quantizers.end()};
      sum += std::max(measure(calibrated(*one.fixed_bits), 0, names).loss_increase, 0.0);
    }
    return sum;
  }

  const CalibratedWidth& calibrated(std::int64_t bits) const {
    const auto place = std::ranges::find(result_.bits, bits) - result_.bits.begin();
    return widths_.at(static_cast<std::size_t>(place));
  }

  /// All quantizers by way of the rewrite, as whoever uses these bits will do. Each range is that of its quantizer's
  /// width.
  Measurement measure_as(const RewriteSettings& rewrite, std::int64_t bits) const {
    CalibratedWidth mixed{.graph = rewritten(rewrite), .variables = widths_.front().variables};
    for (const std::string& name : working_)
      for (const auto& [variable, value] : calibrated(mixed.graph.at(name).as<quantize::FakeQuant>()->bits).variables)
        if (variable.starts_with(name + "/")) mixed.variables.insert_or_assign(variable, value);
    return measure(mixed, bits, working_);
  }

  const SensitivityRequest& request_;
  RunObserver& observer_;
  const FloatRun source_;
  Sensitivity result_;
  /// All quantizers of layers.
  QuantizerNames working_;
  datasets::Splits data_;
  /// Where there are too few pictures for batches of the network.
  struct Halves {
    datasets::Dataset calibration, evaluation;
  };
  std::optional<Halves> halves_;
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
  /// As result_.bits; behind them that of the logits, unless it is one of these.
  std::vector<CalibratedWidth> widths_;
  NetworkOutputs in_float_;
  double logits_increase_ = 0;
};

}  // namespace

void SensitivityRequest::check() const {
  if (bits.empty()) throw UsageError("--bits must name a width");
  std::vector<std::int64_t> seen;
  for (const std::int64_t width : bits) {
    if (width < 2 || width > kMostBits) throw UsageError(concat("--bits must be 2 to 16 each, not ", width));
    if (std::ranges::count(seen, width) > 0) throw UsageError(concat("--bits names ", width, " twice"));
    seen.push_back(width);
  }
  if (logits_bits < 2 || logits_bits > kMostBits)
    throw UsageError(concat("--logits-bits must be 2 to 16, not ", logits_bits));
  const std::int64_t fewest = std::ranges::min(bits);
  check_limits(SensitivitySettings::table(), settings);
  if (budget.average_bits && budget.bytes) throw UsageError("give one of --average-bits and --bytes");
  if (budget.average_bits && !(*budget.average_bits >= static_cast<double>(fewest)))
    throw UsageError(
        concat("--average-bits ", *budget.average_bits, " is impossible: the fewest of --bits is ", fewest));
  if (!budget.activation_bits) return;
  if (!budget.bytes) throw UsageError("--activation-bits goes with --bytes");
  if (std::ranges::count(bits, *budget.activation_bits) == 0)
    throw UsageError(concat("--activation-bits ", *budget.activation_bits, " is not among --bits"));
}

Sensitivity measure_sensitivity(const SensitivityRequest& request, RunObserver& observer) {
  request.check();
  return SensitivityMeasurement(request, source_of(request), observer).run();
}

}  // namespace miniqat::training
