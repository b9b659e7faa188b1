#include "training/evaluate/shared_evaluation.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>

#include "datasets/loader.h"

namespace miniqat::training {
namespace {

/// Numbers of one batch. In a process that did not see the batch they are 0, so that all processes' sum is the one
/// process's numbers.
struct BatchCounts {
  std::int64_t correct = 0;
  /// The bits of a double: the sum of the losses.
  std::int64_t loss = 0;
};
static_assert(sizeof(BatchCounts) == 2 * sizeof(std::int64_t));

}  // namespace

SharedEvaluation::Copy::Copy(const Classifier& original, std::uint64_t seed)
    : graph(original.graph.clone()),
      images(graph.output_at(original.images.name())),
      logits(graph.output_at(original.logits.name())),
      session(graph, {.seed = seed}) {}

SharedEvaluation::SharedEvaluation(const Classifier& classifier, std::uint64_t seed, const ShardOptions& options)
    : options_(options), lanes_(options.at_once, options.threads) {
  for (int lane = 0; lane < lanes_.count(); ++lane) copies_.push_back(std::make_unique<Copy>(classifier, seed));
}

Evaluation SharedEvaluation::evaluate(const Safetensors& checkpoint, const datasets::Dataset& dataset) {
  const std::int64_t size = copies_.front()->images.shape()[0], batches = (dataset.size() + size - 1) / size;
  const ShardRange& shards = options_.range;
  const std::int64_t first = batches * shards.first / shards.total;
  const std::int64_t last = batches * (shards.first + shards.count) / shards.total;
  std::vector<BatchCounts> counts(static_cast<std::size_t>(batches));
  lanes_.run([&](int lane) {
    Copy& copy = *copies_[static_cast<std::size_t>(lane)];
    copy.session.restore(checkpoint, Session::Restore::kVariables, "the training graph");
    const RunRequest request{.fetches = {copy.logits}};
    const auto classes = static_cast<std::size_t>(copy.logits.shape()[1]);
    const auto evaluate_batch = [&](const datasets::EvaluationBatch& batch) {
      const Tensor logits = copy.session.run(request, {{copy.images, batch.images}}).fetched.front();
      Evaluation result;
      for (std::int64_t i = 0; i < batch.valid; ++i)
        result.count(logits.values<float>().subspan(static_cast<std::size_t>(i) * classes, classes),
                     batch.labels.values<std::int32_t>()[static_cast<std::size_t>(i)]);
      counts[static_cast<std::size_t>(batch.first / size)] = {result.correct, std::bit_cast<std::int64_t>(result.loss)};
    };
    datasets::for_each_batch(dataset, size, evaluate_batch,
                             {.first = first + lane, .last = last, .stride = lanes_.count()});
  });
  if (options_.exchange != nullptr)
    options_.exchange->add_up({reinterpret_cast<std::int64_t*>(counts.data()), 2 * counts.size()});
  Evaluation whole;
  whole.examples = dataset.size();
  for (const BatchCounts& batch : counts) {
    whole.correct += batch.correct;
    whole.loss += std::bit_cast<double>(batch.loss);
  }
  whole.finish();
  return whole;
}

}  // namespace miniqat::training
