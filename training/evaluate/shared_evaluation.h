#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/engine/shard_exchange.h"
#include "core/engine/worker_threads.h"
#include "training/evaluate/evaluator.h"

namespace miniqat::training {

/// Evaluates a network as evaluate() does, but batches side by side, and every process of an exchange its share of
/// them. The loss is added up batch by batch in their order. So the result has the same bits however
/// many batches are at a time and however many processes there are.
class SharedEvaluation {
 public:
  /// `classifier` is copied. Of `options`, `threads` is for each batch, `at_once` for batches.
  SharedEvaluation(const Classifier& classifier, const SessionOptions& session, const ShardOptions& options);

  /// With the variables of a checkpoint. All processes of the exchange call this with the same data set.
  Evaluation evaluate(const Safetensors& checkpoint, const datasets::Dataset& dataset);

 private:
  /// What one worker works with.
  struct Copy {
    Copy(const Classifier& classifier, const SessionOptions& options);

    Graph graph;
    Output images;
    Output logits;
    Session session;
  };

  const ShardOptions options_;
  const Task& task_;
  const std::int64_t outputs_;
  std::vector<std::unique_ptr<Copy>> copies_;
  WorkerThreads workers_;
};

}  // namespace miniqat::training
