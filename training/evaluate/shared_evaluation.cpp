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
static_assert(sizeof(ClassHits) == 3 * sizeof(std::int64_t));

/// Empty `more` adds nothing.
void add_up(std::vector<ClassHits>& sums, const std::vector<ClassHits>& more) {
  for (std::size_t k = 0; k < more.size(); ++k) {
    sums[k].labels += more[k].labels;
    sums[k].answers += more[k].answers;
    sums[k].correct += more[k].correct;
  }
}

}  // namespace

SharedEvaluation::Copy::Copy(const Classifier& original, const SessionOptions& options)
    : graph(original.graph.clone()),
      images(graph.output_at(original.images.name())),
      logits(graph.output_at(original.logits.name())),
      session(graph, options) {}

SharedEvaluation::SharedEvaluation(const Classifier& classifier, const SessionOptions& session,
                                   const ShardOptions& options)
    : options_(options), workers_(options.at_once, options.threads) {
  for (int worker = 0; worker < workers_.count(); ++worker)
    copies_.push_back(std::make_unique<Copy>(classifier, session));
}

Evaluation SharedEvaluation::evaluate(const Safetensors& checkpoint, const datasets::Dataset& dataset) {
  const std::int64_t size = copies_.front()->images.shape()[0], batches = (dataset.size() + size - 1) / size;
  const ShardRange& shards = options_.range;
  const std::int64_t first = batches * shards.first / shards.total;
  const std::int64_t last = batches * (shards.first + shards.count) / shards.total;
  std::vector<BatchCounts> counts(static_cast<std::size_t>(batches));
  const auto classes = static_cast<std::size_t>(copies_.front()->logits.shape()[1]);
  std::vector<std::vector<ClassHits>> of_workers(copies_.size(), std::vector<ClassHits>(classes));
  workers_.run([&](int worker) {
    Copy& copy = *copies_[static_cast<std::size_t>(worker)];
    copy.session.restore(checkpoint, Session::Restore::kVariables, "the training graph");
    const RunRequest request{.fetches = {copy.logits}};
    const auto evaluate_batch = [&](const datasets::EvaluationBatch& batch) {
      const Tensor logits = copy.session.run(request, {{copy.images, batch.images}}).fetched.front();
      Evaluation result;
      for (std::int64_t i = 0; i < batch.valid; ++i)
        result.count(logits.values<float>().subspan(static_cast<std::size_t>(i) * classes, classes),
                     batch.labels.values<std::int32_t>()[static_cast<std::size_t>(i)]);
      add_up(of_workers[static_cast<std::size_t>(worker)], result.by_class);
      counts[static_cast<std::size_t>(batch.first / size)] = {result.correct, std::bit_cast<std::int64_t>(result.loss)};
    };
    datasets::for_each_batch(dataset, size, evaluate_batch,
                             {.first = first + worker, .last = last, .stride = workers_.count()});
  });
  Evaluation whole;
  whole.by_class.resize(classes);
  for (const std::vector<ClassHits>& of_worker : of_workers) add_up(whole.by_class, of_worker);
  if (options_.exchange != nullptr) {
    options_.exchange->add_up({reinterpret_cast<std::int64_t*>(counts.data()), 2 * counts.size()});
    options_.exchange->add_up({reinterpret_cast<std::int64_t*>(whole.by_class.data()), 3 * classes});
  }
  whole.examples = dataset.size();
  for (const BatchCounts& batch : counts) {
    whole.correct += batch.correct;
    whole.loss += std::bit_cast<double>(batch.loss);
  }
  whole.finish();
  return whole;
}

}  // namespace miniqat::training
