#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/safetensors.h"
#include "datasets/dataset.h"
#include "training/model_source.h"
#include "training/run_observer.h"

namespace miniqat::training {

/// Mean and variance per channel of the values of several batches, from the mean and variance of each (Chan, Golub and
/// LeVeque 1979, equation 2.1). Of batches of one size these are the mean of the means, and the mean of the variances
/// plus the variance of the means.
class PooledStatistics {
 public:
  /// A batch of `rows` values a channel; `variance` is biased, divided by rows.
  void add(std::int64_t rows, std::span<const float> mean, std::span<const float> variance);
  Tensor mean() const;
  /// Unbiased, as a batch norm's moving variance is.
  Tensor variance() const;

 private:
  std::int64_t rows_ = 0;
  std::vector<double> mean_;
  /// Of the squares of the distances from the mean.
  std::vector<double> sum_;
};

/// The batch norms whose moving statistics a training step of this quantization step updates: neither frozen nor fixed.
std::vector<Node*> updating_batch_norms(const Graph& graph, std::int64_t quantization_step);

/// Why there are none of these, in words that go on after "the network": "has no batch norm". "" where there are some.
std::string why_none_updates(const Graph& graph, std::int64_t quantization_step);

/// A network at the end of its training.
struct TrainedNetwork {
  /// With the graph for training.
  Classifier& training;
  /// Of that graph.
  const Safetensors& checkpoint;
  /// As Session::quantization_step() has it.
  std::int64_t quantization_step = 0;
};

struct EstimateOptions {
  /// Of the size that the graph has; at most what one pass over the pictures gives.
  std::int64_t batches = 50;
  /// Chooses the pictures, and what dropout drops.
  std::int64_t seed = 1;
};

/// The batches that estimate_statistics() looks at.
std::int64_t batches_to_see(const TrainedNetwork& network, const datasets::Dataset& train,
                            const EstimateOptions& options);

/// Runs the graph in training mode over shuffled batches of pictures, without augmentation, and returns the pooled
/// statistics of what each updating batch norm sees, by the names of their moving mean and variance. Every batch meets
/// the network of the checkpoint. A channel that is constant keeps its variance. Throws Error where no batch norm
/// updates and for statistics that are not finite, and Stopped where the observer wants it.
NamedTensors estimate_statistics(const TrainedNetwork& network, const datasets::Dataset& train,
                                 const EstimateOptions& options, RunObserver& observer);

// A checkpoint with estimated statistics keeps the moving ones, too, as "moving:<variable>": a run that becomes longer
// goes on with these, and another estimate begins from them.

/// Adds moving statistics under names that no variable has.
void keep_moving(Safetensors& checkpoint, const NamedTensors& moving);

/// Puts estimated statistics in the place of the moving ones, and keeps these.
void put_estimated(Safetensors& checkpoint, const NamedTensors& estimated);

/// Takes the moving statistics that were kept out of the checkpoint. By the names of their variables; empty for a
/// checkpoint without estimated statistics.
NamedTensors take_moving(Safetensors& checkpoint);

/// Puts `moving` in the place of the estimated statistics.
void put_back(Safetensors& checkpoint, const NamedTensors& moving);

}  // namespace miniqat::training
