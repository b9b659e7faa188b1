#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "core/tensors/coded.h"
#include "datasets/augment.h"
#include "datasets/dataset.h"

namespace miniqat::datasets {

/// Some examples of a data set, with what a network is to say of them.
struct Examples {
  /// [batch, h, w, c] uint8, with the data set's scale and zero point: what a session takes in the place of the numbers
  /// (core/engine/feeds.h). Or the numbers of a data set that has them, [batch, ...] float32.
  CodedTensor images{};
  /// [batch] int32; undefined where the data have no classes.
  Tensor labels{};
  /// [batch, k] float32; undefined where the data have no targets.
  Tensor targets{};
  /// [batch, 2] int32, Dataset::recordings; undefined where the data are no sounds.
  Tensor recordings{};

  /// Element i of the images as the number that the network sees.
  float number(std::size_t i) const {
    if (!images.grid) return images.values<float>()[i];
    return (static_cast<float>(images.values<std::uint8_t>()[i]) - images.grid->zero_point) * images.grid->scale;
  }
};

struct Batch : Examples {
  /// The number of the batch in the run, counted from 0 over all epochs.
  std::int64_t index = 0;
};

/// Endless shuffled batches, prepared ahead by a thread of its own. Every epoch is a new permutation of the data set
/// cut into batches_per_epoch() batches; the n % batch_size examples left over sit that epoch out. Batch i is a pure
/// function of the data set, the options but first_batch, and i, so a run may resume anywhere. Buffers are recycled.
/// One consumer; may be destroyed at any time.
class Loader {
 public:
  struct Options {
    std::int64_t batch_size = 128;
    /// Only examples [first_row, first_row + rows) of each batch are prepared, as they would be among the others; rows
    /// 0: all of them.
    std::int64_t first_row = 0;
    std::int64_t rows = 0;
    /// False: the data set's own order in every epoch.
    bool shuffle = true;
    std::uint64_t seed = 1;
    /// The batch to begin with, 0..2^62.
    std::int64_t first_batch = 0;
    /// Every batch varies its pictures or sounds anew.
    AugmentOptions augment = {};
  };

  /// Shares the data set's elements. Throws Error for a malformed data set, one smaller than a batch, a batch size
  /// below 1, a negative first batch, and rows outside of the batch. Also for a pad that is negative or reaches a
  /// picture's height or width, and for sounds to be varied of data without them.
  Loader(const Dataset& dataset, const Options& options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch, valid until the next call. Rethrows what stopped the thread: Error for a label that is no class.
  const Batch& next();
  std::int64_t batches_per_epoch() const { return batches_per_epoch_; }

 private:
  /// One with the consumer, one ready, one being filled.
  static constexpr std::int64_t kBuffers = 3;

  void produce(const std::stop_token& stop);
  void fill(std::int64_t index, Batch& batch);
  void vary_sound(std::int64_t example, std::int64_t index, std::int64_t k, Batch& batch) const;
  void order_epoch(std::int64_t epoch);

  const Dataset dataset_;
  const Options options_;
  const std::int64_t rows_;
  const std::int64_t batches_per_epoch_;
  /// Read and written by the thread alone: the examples in the order of `ordered_epoch_`.
  std::vector<std::int64_t> order_;
  std::int64_t ordered_epoch_ = -1;

  std::array<Batch, kBuffers> buffers_;
  std::mutex mutex_;
  std::condition_variable_any room_;
  std::condition_variable ready_;
  /// Since the start; the n-th batch lives in buffer n % kBuffers.
  std::int64_t produced_ = 0;
  std::int64_t taken_ = 0;
  std::exception_ptr failure_;
  /// The last member: stopped and joined before anything that it uses is gone.
  std::jthread thread_;
};

/// A batch for evaluation: examples [first, first + valid), the rest of a last partial batch filled up with copies of
/// the last example, which must not be counted.
struct EvaluationBatch : Examples {
  std::int64_t first = 0;
  std::int64_t valid = 0;
};

/// Some of the batches of a data set, by number: first, first + stride, ... below `last`.
struct BatchChoice {
  std::int64_t first = 0;
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  std::int64_t stride = 1;
};

/// Calls body with all examples in order, or those of the chosen batches, always in batches of batch_size. The tensors
/// are reused by the next call. Throws Error for a malformed data set, a label that is no class, or a batch size below
/// 1.
void for_each_batch(const Dataset& dataset, std::int64_t batch_size,
                    const std::function<void(const EvaluationBatch&)>& body, const BatchChoice& choice = {});

}  // namespace miniqat::datasets
