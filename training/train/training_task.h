#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/optimizer.h"
#include "core/engine/session.h"
#include "datasets/dataset.h"
#include "distributed/rank_exchange.h"
#include "quantize/quantizers.h"
#include "quantize/rewrite/rewrite.h"
#include "training/evaluate/evaluator.h"
#include "training/evaluate/shared_evaluation.h"
#include "training/model_source.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// A step that a training has taken.
struct TrainedStep {
  std::int64_t step = 0;
  /// The loss of the step's batch, in training.
  double loss = 0;
  bool ends_epoch = false;
  /// The last that this process was to take.
  bool is_last = false;
  /// Somebody wants the run to stop after it.
  bool stops = false;
};

/// What a training does between its steps.
class StepHook {
 public:
  virtual ~StepHook() = default;
  virtual void before_step() {}
  /// Comes for all hooks before the first after_step(), and no signal ends it.
  virtual void note_step(const TrainedStep&) {}
  virtual void after_step(const TrainedStep&) {}
};

/// Settings, data, and the graphs of a training and of its evaluation.
struct TrainingNetworks {
  /// With the task that the data have, its ranges and its learning rate.
  TrainSettings settings;
  datasets::Splits data;
  Classifier training;
  /// The network of a model file as it was read, a graph JSON; "" for a model that has a name.
  std::string model_graph;
  TrainingEnds ends;
  /// class_weights_of() the settings: their file may be one of a run that the new run replaces.
  std::vector<double> class_weights;
  quantize::RewriteReport report;
  Classifier evaluation;
};

/// Reads the data, builds the graphs and rewrites them, as the settings say. Throws the errors of these, UsageError for
/// a scope without a node, for --float of a graph that is quantized, and for an impossible --validation, and Error if
/// nothing was quantized.
TrainingNetworks read_networks(const TrainSettings& settings);

/// The parts of a training run, as its settings say: data, graphs, their sessions, the optimizer. Knows nothing of
/// files.
struct TrainingTask : TrainingNetworks {
  /// Throws UsageError for an impossible --reestimate, and Error if the data set is smaller than a batch, and for a
  /// batch norm that would get one number a channel. `ranks`, the processes that share the shards, must stay.
  explicit TrainingTask(TrainingNetworks networks, distributed::Communicator& ranks = distributed::alone());
  TrainingTask(const TrainingTask&) = delete;

  /// The length of the training, in steps.
  std::int64_t length_of(const TrainSettings& settings) const;
  double epochs_done() const;
  /// Weights of 4 bits and fewer in a network with batch norms that are not frozen at the end.
  bool has_few_bits_behind_batch_norms() const;
  /// After the last step, for the statistics of batch norms; 0: they keep their moving averages. Unless --reestimate
  /// says so, kEstimateBatches where weights of few bits have ranges per channel: such weights jump between integers
  /// until the end, and moving averages lag behind (docs/low-bits.md). With one range for all channels an estimate may
  /// do harm (docs/reestimate.md).
  std::int64_t batches_to_estimate() const;
  bool dampens() const { return settings.dampening > 0 && !settings.float_only; }
  /// --dampening on the weights of `graph`, of this model, over the steps of this run that quantize. Throws UsageError
  /// if no weights have a range that changes.
  void dampen_weights(Graph& graph) const;
  /// What a step is fed.
  Feeds feeds_of(const datasets::Batch& batch) const;
  /// With the training session's variables of this moment.
  Evaluation evaluate_now(const datasets::Dataset& pictures);

  distributed::RankExchange ranks;
  quantize::Quantization quantization;
  quantize::QuantizationDelays delays;
  Session session;
  Session test_session;
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;
  std::unique_ptr<Optimizer> optimizer;
  /// The evaluation of a run with shards; null for any other.
  std::unique_ptr<SharedEvaluation> shared_evaluation;

 private:
  /// Throws UsageError for settings of sounds or pictures where the data are none.
  void require_asked_data() const;
  void compute_in_shards();
  std::string note_on_outputs() const;
  void require_updating_batch_norms() const;
};

}  // namespace miniqat::training
