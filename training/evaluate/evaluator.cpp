#include "training/evaluate/evaluator.h"

#include <algorithm>

#include "core/engine/profile.h"
#include "core/tensors/argmax.h"
#include "datasets/loader.h"
#include "training/evaluate/class_scores.h"

namespace miniqat::training {

void Evaluation::count(std::span<const float> logits, std::int32_t label) {
  if (label < 0 || label >= std::ssize(logits))
    fail("a picture has the label ", label, ", the network tells ", logits.size(), " classes apart");
  const std::int64_t answer = argmax(logits);
  Hits::count(answer, label);
  loss += cross_entropy(logits, label);
  if (by_class.size() < logits.size()) by_class.resize(logits.size());
  ++by_class[static_cast<std::size_t>(label)].labels;
  if (answer >= 0) ++by_class[static_cast<std::size_t>(answer)].answers;
  if (answer == label) ++by_class[static_cast<std::size_t>(label)].correct;
}

void Evaluation::finish() {
  loss /= static_cast<double>(std::max<std::int64_t>(examples, 1));
  double shares = 0;
  std::int64_t classes = 0;
  for (const ClassHits& one : by_class) {
    if (one.labels == 0) continue;
    shares += static_cast<double>(one.correct) / static_cast<double>(one.labels);
    ++classes;
  }
  if (classes > 0) balanced_accuracy = shares / static_cast<double>(classes);
}

bool Evaluation::has_uneven_classes() const {
  std::int64_t least = 0, most = 0;
  for (const ClassHits& one : by_class) {
    if (one.labels > 0 && (least == 0 || one.labels < least)) least = one.labels;
    most = std::max(most, one.labels);
  }
  return most > 2 * least;
}

Evaluation evaluate(Session& session, const Classifier& classifier, const datasets::Dataset& dataset,
                    const OnLogits& on_logits, Profile* profile) {
  Evaluation result;
  session.set_profile(profile);
  Profile::Time waiting = Profile::Clock::now();
  const RunRequest request{.fetches = {classifier.logits}};
  const auto classes = static_cast<std::size_t>(classifier.logits.shape()[1]);
  datasets::for_each_batch(dataset, classifier.images.shape()[0], [&](const datasets::EvaluationBatch& batch) {
    if (profile != nullptr)
      profile->record(ProfilePhase::kLoaderWait, "next batch", "(loader)", waiting, Profile::Clock::now());
    const Tensor logits = session.run(request, {{classifier.images, batch.images}}).fetched.front();
    for (std::int64_t i = 0; i < batch.valid; ++i) {
      const std::span<const float> row = logits.values<float>().subspan(i * classes, classes);
      result.count(row, batch.labels.values<std::int32_t>()[i]);
      if (on_logits) on_logits(batch.first + i, row);
    }
    waiting = Profile::Clock::now();
  });
  session.set_profile(nullptr);
  result.finish();
  return result;
}

}  // namespace miniqat::training
