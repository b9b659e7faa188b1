#include "training/evaluate/evaluator.h"

#include <algorithm>

#include "core/argmax.h"
#include "core/engine/profile.h"
#include "datasets/loader.h"
#include "training/evaluate/class_scores.h"

namespace miniqat::training {

void Evaluation::count(std::span<const float> logits, std::int32_t label) {
  Hits::count(argmax(logits), label);
  loss += cross_entropy(logits, label);
}

void Evaluation::finish() { loss /= static_cast<double>(std::max<std::int64_t>(examples, 1)); }

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
