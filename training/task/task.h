#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "datasets/loader.h"
#include "training/task/evaluation.h"

namespace miniqat::training {

/// What decides a loss beside the task.
struct LossOptions {
  /// For classes (SoftmaxCrossEntropyAttributes).
  double label_smoothing = 0;
  std::vector<double> class_weights = {};
  /// For numbers (HuberAttributes): the delta of the Huber loss; 0: the squared error.
  double huber = 0;

  /// Throws Error for options of classes.
  void require_no_classes() const;
  /// Throws Error for options of numbers.
  void require_no_numbers() const;
};

/// What is added to a network so that it can be trained.
struct TrainingEnds {
  /// The placeholder of what the outputs should have been. No node where the input itself is that.
  Output labels;
  Output loss;
};

/// What conclude() is given.
struct Scored {
  /// [examples, Task::scores]
  std::span<const double> scores;
  /// How many numbers an example has there.
  std::size_t each = 0;
  /// Numbers that the network gives for an example.
  std::int64_t outputs = 0;
  /// Sums are made of so many examples at a time, then of these sums; 0: of all at once.
  std::int64_t batch = 0;
  /// The units of the data; null: those of the targets.
  const datasets::Standard* units = nullptr;

  /// Number k of each example.
  std::vector<double> column(std::size_t k) const;
};

/// What a network learns: the loss of its outputs, and what is measured of them (docs/tasks.md).
struct Task {
  /// The name in --task.
  const char* name;
  /// What the outputs are called: "logits", "numbers".
  const char* outputs;
  /// What it looks for in an example, of which a threshold decides: "anomaly", "label". Null: the task is another.
  const char* finding = nullptr;
  /// The type of the op that turns logits into probabilities, which the loss does itself; "" for a task without logits.
  std::string_view op_of_loss = {};
  /// The outputs themselves are the answer, not what the greatest or a threshold makes of them.
  bool answers_numbers = false;
  /// All that may be measured, the first of which decides.
  std::span<const MeasureKind> measures;

  /// How many numbers a network gives for an example of the data. Throws Error where these lack what the task needs.
  std::int64_t (*outputs_for)(const datasets::Dataset& data);
  /// Adds the loss of `output` [n, ...]. `input`: what the network was given. Throws Error for options that mean
  /// nothing here.
  TrainingEnds (*add_loss)(Graph& graph, const Output& input, const Output& output, const LossOptions& options);
  /// What a batch gives to TrainingEnds::labels; undefined where there are none.
  Tensor (*target_of)(const datasets::Examples& batch);

  /// How many numbers score() leaves of an example with so many outputs.
  std::size_t (*scores)(std::int64_t outputs);
  /// What conclude() needs of example `row` of a batch. Throws Error for a label that the network does not know.
  void (*score)(std::span<const float> output, const datasets::Examples& batch, std::int64_t row,
                std::span<double> scores);
  Evaluation (*conclude)(const Scored& scored);
  /// The first that can be measured of a part of the data; null: the first of `measures`.
  const MeasureKind& (*decides)(const datasets::Dataset& part) = nullptr;

  const MeasureKind& decides_on(const datasets::Dataset& part) const {
    return decides == nullptr ? measures.front() : decides(part);
  }
};

/// The loss of numbers: the mean squared error, or with LossOptions::huber that of Huber. Throws Error for options of
/// classes.
Output add_loss_of_numbers(Graph& graph, const Output& numbers, const Output& targets, const LossOptions& options);

/// A Task::score(): the outputs, then the targets.
void score_targets(std::span<const float> output, const datasets::Examples& batch, std::int64_t row,
                   std::span<double> scores);

/// `classify`: tells classes apart. A logit a class, softmax cross entropy with labels [n] int32. Measures the share of
/// right answers (of equal logits the lower class is the answer; a NaN is wrong), and the mean of these shares over the
/// classes that have examples (balanced accuracy, Brodersen et al. 2010).
const Task& classification();

/// `regress`: predicts numbers. The mean squared error (or Huber's) of targets [n, k], standardised as the data say.
/// Measures R^2, the mean over the k numbers, and the mean absolute and mean squared error in the units of the data.
const Task& regression();

/// `reconstruct`: gives back what it was given. The mean squared error of the input. Where the data have classes, class
/// 0 is normal and any other an anomaly; measures then how well the errors of examples, or of the windows of a
/// recording in the mean, tell the two apart: the area under the ROC curve, and its part up to a false positive rate of
/// 0.1.
const Task& reconstruction();

/// `multilabel`: finds labels of which several may hold. A logit a label, sigmoid cross entropy with targets [n, k] of
/// zeros and ones; a label is answered where its logit is at least 0, its probability 0.5. Measures the share of right
/// answers over all labels, and the mean over the labels of F1.
const Task& multilabel();

/// All of them, classification first.
std::span<const Task* const> tasks();
/// Throws Error that lists the names.
const Task& find_task(const std::string& name);
/// What data of this kind are for: classes to tell apart, numbers to predict, labels of which several hold, or
/// themselves, as recordings of which none has a class but 0.
const Task& task_for(const datasets::Dataset& data);

/// What number k of the targets is called: its name, or its number.
std::string target_name(const datasets::Dataset& data, std::size_t k);

/// Gathers what a task needs of each example.
class Tally {
 public:
  /// Task and outputs must stay. `outputs`: numbers that the network gives for an example.
  Tally(const Task& task, std::int64_t outputs) : task_(task), outputs_(outputs), each_(task.scores(outputs)) {}

  /// The first `valid` examples of a batch, with their outputs [batch, ...] float32.
  void add(std::span<const float> outputs, const datasets::Examples& batch, std::int64_t valid);
  std::int64_t examples() const { return each_ == 0 ? 0 : std::ssize(scores_) / static_cast<std::int64_t>(each_); }
  Evaluation conclude(const datasets::Dataset& data) const;

 private:
  const Task& task_;
  const std::int64_t outputs_;
  const std::size_t each_;
  std::vector<double> scores_;
};

}  // namespace miniqat::training
