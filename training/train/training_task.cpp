#include "training/train/training_task.h"

#include <algorithm>
#include <utility>

#include "core/graph/graph_json.h"
#include "core/graph/reach.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "quantize/quantizers.h"
#include "quantize/range_kind.h"
#include "quantize/rewrite/explain.h"
#include "training/calibrate/batch_norm_statistics.h"
#include "training/run/data_of_run.h"
#include "training/settings/optimizers.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

std::int64_t whole_batches(const datasets::Splits& data, const TrainSettings& settings) {
  const std::int64_t batches = data.train.size() / settings.batch_size;
  if (batches == 0)
    fail("data set ", settings.dataset, " has ", counted(data.train.size(), concat("training ", data.train.noun())),
         ", fewer than one batch of ", settings.batch_size, ": give a smaller --batch-size");
  return batches;
}

/// Throws UsageError unless the graph file `model` is a float network.
void require_float(const Graph& graph, const std::string& model) {
  const quantize::Quantization found = quantize::quantization_of(graph);
  if (!found.is_float())
    throw UsageError(concat("--float: ", model, " is quantized already (", found.label(), ", ",
                            counted(found.quantizers, "quantizer"), "); leave --float out, or give the float graph"));
}

/// The notes without a rewrite.
quantize::RewriteReport float_report(const Graph& graph) {
  quantize::RewriteReport report;
  if (std::string note = quantize::note_on_still_batch_norms(graph); !note.empty())
    report.remarks.push_back(std::move(note));
  if (std::string note = note_on_unused_layers(graph); !note.empty()) report.remarks.push_back(std::move(note));
  return report;
}

quantize::RewriteReport quantize_training(Classifier& network, const TrainSettings& settings,
                                          const datasets::Dataset& data) {
  Graph& graph = network.graph;
  if (settings.float_only) {
    require_float(graph, settings.model);
    return float_report(graph);
  }
  require_scope(graph, settings.rewrite.scope, settings.model);
  quantize::require_observing(graph, settings.model);
  quantize::RewriteReport made =
      quantize::create_training_graph(graph, rewrite_for(settings.rewrite, *network.task, data));
  require_quantizers(graph, settings.rewrite.scope, settings.model, ", --float trains without quantization");
  return made;
}

/// Throws UsageError where --task auto would make another run of one that goes on.
void require_guessed_task(const TrainSettings& settings, const datasets::Dataset& data) {
  const std::string guess = guessed_task(settings.model, data).name;
  if (guess != settings.task)
    throw UsageError(concat("--task auto is ", guess, " for ", settings.dataset, ", and differs from the run's own (",
                            quote(settings.task), "); leave it out to resume"));
}

TrainSettings settled(TrainSettings settings, const Task& task) {
  settings.task = task.name;
  settings.rewrite.ranges = ranges_for(settings.rewrite.ranges, task);
  if (!settings.learning_rate) settings.learning_rate = default_learning_rate(settings);
  return settings;
}

FactorRounding rounding_of(const TrainSettings& settings) {
  if (settings.compute == FactorType::kBfloat16) return FactorRounding::kAllToBfloat16;
  if (settings.float_only) return FactorRounding::kNone;
  switch (settings.gradients) {
    case GradientType::kBfloat16:
      return FactorRounding::kGradientsToBfloat16;
    case GradientType::kInt8:
      return FactorRounding::kGradientsToInt8;
    default:
      return FactorRounding::kNone;
  }
}

SessionOptions session_options(const TrainSettings& settings) {
  return {.seed = static_cast<std::uint64_t>(settings.seed),
          .arithmetic = settings.arithmetic,
          .rounding = rounding_of(settings)};
}

}  // namespace

TrainingNetworks read_networks(const TrainSettings& settings) {
  TrainingNetworks made;
  made.data = load_wanted_data(settings);
  if (settings.task_is_guessed) require_guessed_task(settings, made.data.train);
  made.training = make_classifier(classifier_options(settings), made.data.train);
  require_answers(made.data, *made.training.task);
  if (is_graph_file(settings.model)) made.model_graph = graph_to_json(made.training.graph);
  made.class_weights = class_weights_of(settings, made.data.train);
  made.ends = as_usage([&] {
    return add_loss(made.training, {settings.label_smoothing, made.class_weights, settings.huber});
  });
  made.report = quantize_training(made.training, settings, made.data.train);
  made.evaluation = settings.float_only ? without_loss(made.training) : evaluation_of(made.training);
  // The second stage of `quantize` has standards of the first, which said them.
  for (const std::string& note : made.training.notes)
    if (settings.standards_of.empty() && std::ranges::find(made.report.remarks, note) == made.report.remarks.end())
      made.report.remarks.push_back(note);
  made.settings = settled(settings, *made.training.task);
  return made;
}

TrainingTask::TrainingTask(TrainingNetworks networks, distributed::Communicator& all)
    : TrainingNetworks(std::move(networks)),
      ranks(all, static_cast<int>(settings.shards)),
      delays(training.graph),
      session(training.graph, session_options(settings)),
      test_session(evaluation.graph, session_options(settings)) {
  quantization = quantize::quantization_of(training.graph);
  steps_per_epoch = whole_batches(data, settings);
  total_steps = length_of(settings);
  require_asked_data();
  optimizer = make_optimizer(settings, {.steps = total_steps, .epoch = steps_per_epoch});
  require_numbers_to_normalise(training, settings);
  if (settings.shards > 1) compute_in_shards();
  if (std::string note = note_on_outputs(); !note.empty()) report.remarks.push_back(std::move(note));
  if (dampens())
    for (Graph* graph : {&training.graph, &evaluation.graph}) dampen_weights(*graph);
  if (settings.reestimate.value_or(0) > 0) require_updating_batch_norms();
}

void TrainingTask::require_asked_data() const {
  const datasets::AugmentOptions augment = augmentation(settings);
  if (!augment.vary_sounds && !augment.none() && !data.train.has_pictures())
    throw UsageError(concat("--augment ", settings.augment, " is for pictures, and ", data.train.name, " has numbers"));
}

void TrainingTask::compute_in_shards() {
  const ShardOptions options{.exchange = ranks.exchange(),
                             .threads = static_cast<int>(settings.threads_per_shard),
                             .at_once = static_cast<int>(settings.slices_at_once())};
  session.set_shards(options);
  shared_evaluation = std::make_unique<SharedEvaluation>(evaluation, session_options(settings), options);
}

std::string TrainingTask::note_on_outputs() const {
  // Runs of earlier versions keep them all.
  const std::size_t outputs = training.graph.outputs().size() + training.left_out.size();
  if (outputs < 2) return "";
  const std::string name = training.output_name.empty() ? training.logits.name() : training.output_name;
  const std::string which = settings.output.empty() ? concat("the first, ", name, ",") : concat(name, ", as asked,");
  return concat(settings.model, " has ", counted(outputs, "output"), "; only ", which, " is trained",
                training.left_out.empty() || !settings.output.empty()
                    ? ""
                    : concat("; `output` chooses another: ", joined(training.left_out)));
}

void TrainingTask::dampen_weights(Graph& graph) const {
  const std::int64_t steps = std::max<std::int64_t>(total_steps - settings.rewrite.quant_delay, 1);
  if (quantize::dampen_weights(graph, settings.dampening, steps) == 0)
    throw UsageError(concat("--dampening has no effect: no weights of ", settings.model, " have a range that changes"));
}

/// At the end of the run, when a graph that freezes has counted every step.
void TrainingTask::require_updating_batch_norms() const {
  const std::string why = why_none_updates(training.graph, total_steps);
  if (!why.empty()) throw UsageError(concat("--reestimate: ", settings.model, " ", why));
}

bool TrainingTask::has_few_bits_behind_batch_norms() const {
  const std::set<std::int64_t>& bits = quantization.weight_bits;
  return !bits.empty() && *bits.begin() <= quantize::kFewBits && why_none_updates(training.graph, total_steps).empty();
}

std::int64_t TrainingTask::batches_to_estimate() const {
  if (settings.reestimate) return *settings.reestimate;
  return has_few_bits_behind_batch_norms() && quantization.per_channel ? kEstimateBatches : 0;
}

std::int64_t TrainingTask::length_of(const TrainSettings& wanted) const {
  return wanted.steps > 0 ? wanted.steps : wanted.epochs * steps_per_epoch;
}

double TrainingTask::epochs_done() const {
  return static_cast<double>(session.step()) / static_cast<double>(steps_per_epoch);
}

Feeds TrainingTask::feeds_of(const datasets::Batch& batch) const {
  Feeds feeds = {{training.images, batch.images}};
  if (ends.labels.node != nullptr) feeds.emplace_back(ends.labels, training.task->target_of(batch));
  return feeds;
}

Evaluation TrainingTask::evaluate_now(const datasets::Dataset& pictures) {
  if (shared_evaluation) return shared_evaluation->evaluate(session.checkpoint(), pictures);
  test_session.restore(session.checkpoint(), Session::Restore::kVariables, "the training graph");
  return evaluate(test_session, evaluation, pictures);
}

}  // namespace miniqat::training
