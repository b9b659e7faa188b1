#include "training/evaluate/evaluator.h"

#include <algorithm>
#include <cmath>

#include "core/argmax.h"
#include "datasets/loader.h"

namespace miniqat::training {
namespace {

/// -log softmax(logits)[label], without overflow.
double cross_entropy(std::span<const float> logits, std::int32_t label) {
  const double highest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  return std::log(sum) + highest - logits[label];
}

}  // namespace

void Evaluation::count(std::span<const float> logits, std::int32_t label) {
  Hits::count(argmax(logits), label);
  loss += cross_entropy(logits, label);
}

void Evaluation::finish() { loss /= static_cast<double>(std::max<std::int64_t>(examples, 1)); }

Evaluation evaluate(Session& session, const Classifier& classifier, const datasets::Dataset& dataset,
                    const OnLogits& on_logits) {
  Evaluation result;
  const RunRequest request{.fetches = {classifier.logits}};
  const auto classes = static_cast<std::size_t>(classifier.logits.shape()[1]);
  datasets::for_each_batch(dataset, classifier.images.shape()[0], [&](const datasets::EvaluationBatch& batch) {
    const Tensor logits = session.run(request, {{classifier.images, batch.images}}).fetched.front();
    for (std::int64_t i = 0; i < batch.valid; ++i) {
      const std::span<const float> row = logits.values<float>().subspan(i * classes, classes);
      result.count(row, batch.labels.values<std::int32_t>()[i]);
      if (on_logits) on_logits(batch.first + i, row);
    }
  });
  result.finish();
  return result;
}

}  // namespace miniqat::training
