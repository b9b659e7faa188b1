#include "training/evaluate/evaluator.h"

#include <algorithm>
#include <numeric>

#include "core/engine/profile.h"
#include "core/tensors/tensor.h"
#include "datasets/loader.h"
#include "integer/engine.h"
#include "training/run/integer_source.h"
#include "training/run/run_source.h"

namespace miniqat::training {
namespace {

constexpr std::int64_t kBatch = 100;

/// The same examples with some answers, which a tally compares with outputs at which nobody looks.
datasets::Dataset with_some_answers(const RunSource& run, const datasets::Dataset& examples) {
  datasets::Dataset some = examples;
  const Task& task = task_of(run.settings);
  const bool tells_classes = &task == &classification();
  if (examples.has_classes() || tells_classes) some.labels = Tensor({some.size()}, DType::kInt32);
  if (tells_classes) {
    some.targets = Tensor();
    some.classes = trained_on(run).classes;
  } else if (examples.targets.defined()) {
    some.targets = Tensor(examples.targets.shape());
  } else if (!examples.has_classes() && &task != &reconstruction()) {
    some.targets = Tensor({some.size(), trained_on(run).outputs});
  }
  return some;
}

}  // namespace

Evaluation evaluate(Session& session, const Classifier& classifier, const datasets::Dataset& dataset,
                    const OnLogits& on_logits, Profile* profile) {
  require_fit(classifier, dataset, "the classifier");
  session.set_profile(profile);
  Profile::Time waiting = Profile::Clock::now();
  const RunRequest request{.fetches = {classifier.logits}};
  const std::int64_t outputs = classifier.outputs();
  Tally tally(*classifier.task, outputs);
  datasets::for_each_batch(dataset, classifier.images.shape()[0], [&](const datasets::EvaluationBatch& batch) {
    if (profile != nullptr)
      profile->record(ProfilePhase::kLoaderWait, "next batch", "(loader)", waiting, Profile::Clock::now());
    const Tensor logits = session.run(request, {{classifier.images, batch.images}}).fetched.front();
    tally.add(logits.values<float>(), batch, batch.valid);
    for (std::int64_t i = 0; on_logits && i < batch.valid; ++i)
      on_logits(batch.first + i, logits.values<float>().subspan(i * outputs, outputs));
    waiting = Profile::Clock::now();
  });
  session.set_profile(nullptr);
  return tally.conclude(dataset);
}

Evaluation evaluate_integers(const integer::Model& model, const Task& task, const datasets::Dataset& dataset,
                             const OnLogits& on_logits) {
  // A model may know more classes than the data.
  if (&task == &classification()) {
    require_pictures_fit(model, dataset, "the model");
    task.outputs_for(dataset);
  } else {
    require_fit(model, task, dataset, "the model");
  }
  integer::Engine engine(model);
  const integer::TensorInfo& output = model.tensor(model.output);
  const std::int64_t outputs = output.shape.elements();
  Tally tally(task, outputs);
  std::vector<float> numbers;
  datasets::for_each_batch(dataset, kBatch, [&](const datasets::EvaluationBatch& batch) {
    const Tensor& integers = engine.run(as_input(batch.images, model.tensor(model.input).grid));
    numbers.clear();
    for (const std::uint8_t q : integers.values<std::uint8_t>()) numbers.push_back(integer::dequantize(output.grid, q));
    tally.add(numbers, batch, batch.valid);
    for (std::int64_t i = 0; on_logits && i < batch.valid; ++i)
      on_logits(batch.first + i, std::span<const float>(numbers).subspan(i * outputs, outputs));
  });
  return tally.conclude(dataset);
}

std::vector<std::int64_t> Prediction::ranking() const {
  std::vector<std::int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::int64_t k) { return scores[static_cast<std::size_t>(k)]; });
  return order;
}

std::vector<Prediction> predict(const RunSource& run, const datasets::Dataset& asked, bool integer) {
  std::vector<Prediction> predictions;
  const datasets::Dataset pictures = with_some_answers(run, asked);
  const Task& task = task_of(run.settings);
  const datasets::Standard* units = pictures.target_standard.get();
  const OnLogits keep = [&](std::int64_t, std::span<const float> logits) {
    if (&task == &classification()) {
      predictions.push_back({.predicted = argmax(logits), .scores = class_scores(logits)});
      return;
    }
    Prediction& one = predictions.emplace_back();
    for (std::size_t k = 0; k < logits.size(); ++k)
      one.outputs.push_back(units == nullptr ? logits[k] : units->restored(k, logits[k]));
  };
  if (integer) {
    const integer::Model model = convert_run(run.directory, run.checkpoint, grid_of(pictures));
    require_fit(model, task, pictures, run.directory.eval_graph().string());
    evaluate_integers(model, task, pictures, keep);
  } else {
    EvaluationSession simulation(run, pictures);
    evaluate(simulation.session, simulation.classifier, pictures, keep);
  }
  return predictions;
}

}  // namespace miniqat::training
