#include <algorithm>
#include <utility>
#include <vector>

#include "core/text/error.h"
#include "layers/layers.h"
#include "training/task/task.h"

namespace miniqat::training {
namespace {

constexpr MeasureKind kClassMeasures[] = {
    {.name = "accuracy", .brief = "accuracy", .key = "accuracy", .is_share = true},
    {.name = "balanced accuracy", .brief = "balanced", .key = "balanced_accuracy", .is_share = true}};

/// The numbers of an example.
enum ClassScore : std::size_t { kLoss, kLabel, kAnswer, kClassScores };

std::int64_t classes_of_data(const datasets::Dataset& data) {
  if (!data.has_classes())
    fail("data set ", data.name, " has no classes to tell apart",
         data.targets.defined() ? concat(", but numbers for `task` ", task_for(data).name,
                                         "; whole numbers become classes with `answers` classes")
                                : "");
  return data.classes;
}

TrainingEnds add_class_loss(Graph& graph, const Output&, const Output& logits, const LossOptions& options) {
  options.require_no_numbers();
  const Output labels = layers::placeholder(graph, graph.unique_name("labels"), {logits.shape()[0]}, DType::kInt32);
  return {labels, layers::softmax_cross_entropy(
                      graph, logits, labels, graph.unique_name("loss"),
                      {.label_smoothing = options.label_smoothing, .class_weights = options.class_weights})};
}

void score_class(std::span<const float> logits, const datasets::Examples& batch, std::int64_t row,
                 std::span<double> scores) {
  const std::int32_t label = batch.labels.values<std::int32_t>()[static_cast<std::size_t>(row)];
  if (label < 0 || label >= std::ssize(logits))
    fail("a picture has the label ", label, ", the network tells ", counted(logits.size(), "class"), " apart");
  scores[kLoss] = cross_entropy(logits, label);
  scores[kLabel] = label;
  scores[kAnswer] = static_cast<double>(argmax(logits));
}

/// The mean over the classes that have examples of the share that was answered rightly.
double balanced(const std::vector<ClassHits>& classes) {
  double shares = 0;
  std::int64_t count = 0;
  for (const ClassHits& one : classes) {
    if (one.labels == 0) continue;
    shares += static_cast<double>(one.correct) / static_cast<double>(one.labels);
    ++count;
  }
  return shares / static_cast<double>(count);
}

Evaluation conclude_classes(const Scored& scored) {
  Evaluation result{.examples = std::ssize(scored.scores) / static_cast<std::int64_t>(kClassScores)};
  result.by_class.resize(static_cast<std::size_t>(scored.outputs));
  Hits hits;
  const std::int64_t batch = scored.batch == 0 ? std::max<std::int64_t>(result.examples, 1) : scored.batch;
  double of_batch = 0;
  for (std::int64_t i = 0; i < result.examples; ++i) {
    const double* one = &scored.scores[static_cast<std::size_t>(i) * kClassScores];
    const auto label = static_cast<std::int64_t>(one[kLabel]), answer = static_cast<std::int64_t>(one[kAnswer]);
    of_batch += one[kLoss];
    result.losses.push_back(one[kLoss]);
    if ((i + 1) % batch == 0 || i + 1 == result.examples) result.loss += std::exchange(of_batch, 0);
    hits.count(answer, label);
    ++result.by_class[static_cast<std::size_t>(label)].labels;
    if (answer >= 0) ++result.by_class[static_cast<std::size_t>(answer)].answers;
    if (answer == label) ++result.by_class[static_cast<std::size_t>(label)].correct;
  }
  result.loss /= static_cast<double>(std::max<std::int64_t>(result.examples, 1));
  if (result.examples == 0) return result;
  result.measures.push_back({&kClassMeasures[0], hits.accuracy(), concat(hits.correct, " of ", hits.examples)});
  result.measures.push_back({&kClassMeasures[1], balanced(result.by_class), "", !result.has_uneven_classes()});
  return result;
}

}  // namespace

const Task& classification() {
  static constexpr Task kTask{.name = "classify",
                              .outputs = "logits",
                              .op_of_loss = layers::Softmax::kType,
                              .measures = kClassMeasures,
                              .outputs_for = classes_of_data,
                              .add_loss = add_class_loss,
                              .target_of = [](const datasets::Examples& batch) { return batch.labels; },
                              .scores = [](std::int64_t) -> std::size_t { return kClassScores; },
                              .score = score_class,
                              .conclude = conclude_classes};
  return kTask;
}

}  // namespace miniqat::training
