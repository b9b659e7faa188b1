#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "datasets/augment.h"
#include "datasets/dataset.h"
#include "training/model_source.h"
#include "training/run_observer.h"
#include "training/settings/train_settings.h"

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
  /// The sum of the squared distances from the mean.
  std::vector<double> sum_;
};

/// From so many batches statistics are estimated unless somebody says otherwise.
inline constexpr std::int64_t kEstimateBatches = 50;

/// The batch norms whose moving statistics a training step of this quantization step updates: neither frozen nor fixed.
std::vector<Node*> updating_batch_norms(const Graph& graph, std::int64_t quantization_step);

/// Why there are none of these, in words that go on after "the network": "has no batch norm". "" where there are some.
std::string why_none_updates(const Graph& graph, std::int64_t quantization_step);

/// A network at the end of its training.
struct TrainedNetwork {
  Classifier& training;
  /// The checkpoint of the graph for training.
  const Safetensors& checkpoint;
  /// Session::quantization_step() of that checkpoint.
  std::int64_t quantization_step = 0;
};

struct EstimateOptions {
  /// The number of batches, of the size that the graph has; at most what one pass over the pictures gives.
  std::int64_t batches = kEstimateBatches;
  /// Chooses the pictures, and what dropout drops.
  std::int64_t seed = 1;
  /// The augmentation of the training: the network has adapted to pictures like these.
  datasets::AugmentOptions augment = {};
};

/// The batches that estimate_statistics() looks at.
std::int64_t batches_to_see(const TrainedNetwork& network, const datasets::Dataset& train,
                            const EstimateOptions& options);

/// Runs the graph in training mode over shuffled batches of pictures and returns the pooled statistics of what each
/// updating batch norm sees, by the names of their moving mean and variance. Every batch meets the network of the
/// checkpoint. A channel that is constant keeps its variance. Beside these the ranges of weights,
/// whose scale changes with the statistics if they are folded: observed ranges are observed again. A learned range of
/// folded weights is multiplied by the growth of their Euclidean norm (of those of its channel where each has a range).
/// Where scales are powers of two it is the power of two next to that, and with a range for each channel the variance
/// is the one that makes the weights grow by it, so that they keep their integers. Throws Error where no batch norm
/// updates and for statistics that are not finite, and Stopped where the observer wants it.
NamedTensors estimate_statistics(const TrainedNetwork& network, const datasets::Dataset& train,
                                 const EstimateOptions& options, RunObserver& observer);

// A checkpoint with estimates keeps what they have replaced, as "trained:<variable>": a run that becomes longer goes on
// with that, and another estimate begins from it.

/// Adds what training left under names that no variable has.
void keep_trained(Safetensors& checkpoint, const NamedTensors& trained);

/// Puts estimates in the place of what training left, and keeps that.
void put_estimated(Safetensors& checkpoint, const NamedTensors& estimated);

/// Takes what was kept out of the checkpoint. By the names of the variables; empty for a checkpoint without estimates.
NamedTensors take_trained(Safetensors& checkpoint);

/// Gives variables these values.
void put_back(Safetensors& checkpoint, const NamedTensors& values);

/// Throws Error naming the batch norm and the batch size, if training steps of this classifier normalise each number by
/// itself: by a BatchNorm, or by one in primitive ops that takes moments. A session refuses the former in its first
/// step.
void require_numbers_to_normalise(const Classifier& training, const TrainSettings& settings);

}  // namespace miniqat::training
