#include "training/evaluate/shared_evaluation.h"

#include <algorithm>
#include <bit>
#include <span>

#include "datasets/loader.h"

namespace miniqat::training {
SharedEvaluation::Copy::Copy(const Classifier& original, const SessionOptions& options)
    : graph(original.graph.clone()),
      images(graph.output_at(original.images.name())),
      logits(graph.output_at(original.logits.name())),
      session(graph, options) {}

SharedEvaluation::SharedEvaluation(const Classifier& classifier, const SessionOptions& session,
                                   const ShardOptions& options)
    : options_(options),
      task_(*classifier.task),
      outputs_(classifier.outputs()),
      workers_(options.at_once, options.threads) {
  for (int worker = 0; worker < workers_.count(); ++worker)
    copies_.push_back(std::make_unique<Copy>(classifier, session));
}

Evaluation SharedEvaluation::evaluate(const Safetensors& checkpoint, const datasets::Dataset& dataset) {
  const std::int64_t size = copies_.front()->images.shape()[0], batches = (dataset.size() + size - 1) / size;
  const ShardRange shards = options_.exchange.range();
  const std::int64_t first = batches * shards.first / shards.total;
  const std::int64_t last = batches * (shards.first + shards.count) / shards.total;
  const auto each = static_cast<std::int64_t>(task_.scores(outputs_));
  // In a process that did not see an example its numbers are 0, so that all processes' sum is the one process's.
  std::vector<double> scores(static_cast<std::size_t>(dataset.size() * each));
  workers_.run([&](int worker) {
    Copy& copy = *copies_[static_cast<std::size_t>(worker)];
    copy.session.restore(checkpoint, Session::Restore::kVariables, "the training graph");
    const RunRequest request{.fetches = {copy.logits}};
    const auto evaluate_batch = [&](const datasets::EvaluationBatch& batch) {
      const Tensor logits = copy.session.run(request, {{copy.images, batch.images}}).fetched.front();
      for (std::int64_t i = 0; i < batch.valid; ++i)
        task_.score(logits.values<float>().subspan(i * outputs_, outputs_), batch, i,
                    std::span(scores).subspan((batch.first + i) * each, each));
    };
    datasets::for_each_batch(dataset, size, evaluate_batch,
                             {.first = first + worker, .last = last, .stride = workers_.count()});
  });
  std::vector<std::int64_t> bits(scores.size());
  std::ranges::transform(scores, bits.begin(), [](double score) { return std::bit_cast<std::int64_t>(score); });
  options_.exchange.add_up(bits);
  std::ranges::transform(bits, scores.begin(), [](std::int64_t one) { return std::bit_cast<double>(one); });
  return task_.conclude({.scores = scores,
                         .each = static_cast<std::size_t>(each),
                         .outputs = outputs_,
                         .batch = size,
                         .units = dataset.target_standard.get()});
}

}  // namespace miniqat::training
