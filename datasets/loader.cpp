#include "datasets/loader.h"

#include <algorithm>
#include <numeric>

#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "datasets/rows.h"

namespace miniqat::datasets {

namespace {

void make_room(const Dataset& dataset, std::int64_t batch_size, Examples& batch) {
  batch.images = room_for(dataset.images, batch_size);
  if (dataset.has_pictures()) batch.images.grid = {dataset.scale, static_cast<float>(dataset.zero_point)};
  batch.labels = room_for(dataset.labels, batch_size);
  batch.targets = room_for(dataset.targets, batch_size);
  batch.recordings = room_for(dataset.recordings, batch_size);
}

void require_batch_size(std::int64_t batch_size) {
  if (batch_size < 1) fail("batch size must be at least 1, not ", batch_size);
}

/// The pixels of a picture, of a data set or a batch.
template <class Pictures>
auto pixels_of(Pictures& images, std::int64_t number) {
  const std::int64_t size = images.elements() / images.shape()[0];
  return images.template values<std::uint8_t>().subspan(number * size, size);
}

/// The k-th example of a batch gets what the data set's given example is to be answered with.
void put_answer(const Dataset& dataset, std::int64_t example, std::int64_t k, Examples& batch) {
  copy_row(dataset.targets, example, batch.targets, k);
  copy_row(dataset.recordings, example, batch.recordings, k);
  if (!dataset.has_classes()) return;
  const std::int32_t label = dataset.labels.data<std::int32_t>()[example];
  if (label < 0 || label >= dataset.classes)
    fail("data set ", dataset.name, ": example ", example, " has label ", label, "; there are 0 to ",
         dataset.classes - 1);
  batch.labels.data<std::int32_t>()[k] = label;
}

void require_augmentable(const Dataset& dataset, const AugmentOptions& options) {
  if (options.vary_sounds && !dataset.sounds)
    fail("data set ", dataset.name, ": only sounds that were kept to be varied can be");
  if (options.pad == 0 && !options.flip) return;
  if (!dataset.has_pictures()) fail("data set ", dataset.name, ": only pictures can be augmented");
  const Shape example = dataset.example_shape();
  if (options.pad < 0 || options.pad >= std::min(example[0], example[1]))
    fail("data set ", dataset.name, ": pictures ", example, " cannot be padded by ", options.pad, " pixels");
}

std::uint64_t key_of(std::uint64_t seed, std::int64_t batch, std::int64_t row) {
  const std::uint64_t run = mix(hash_text("datasets/sounds"), seed);
  return mix(mix(run, static_cast<std::uint64_t>(batch)), static_cast<std::uint64_t>(row));
}

/// From there on no one counts to the end of 64 bits.
constexpr std::int64_t kLastFirstBatch = std::int64_t{1} << 62;

Dataset checked(const Dataset& dataset, const Loader::Options& options) {
  dataset.check();
  require_batch_size(options.batch_size);
  if (options.first_batch < 0) fail("first batch must not be negative, but is ", options.first_batch);
  if (options.first_batch > kLastFirstBatch)
    fail("first batch must be at most ", kLastFirstBatch, ", but is ", options.first_batch);
  if (options.first_row < 0 || options.rows < 0 || options.first_row + options.rows > options.batch_size)
    fail("rows ", options.first_row, " to ", options.first_row + options.rows, " are not in a batch of ",
         options.batch_size);
  if (dataset.size() < options.batch_size)
    fail("data set ", dataset.name, " has ", counted(dataset.size(), "example"), ", fewer than one batch of ",
         options.batch_size);
  require_augmentable(dataset, options.augment);
  return dataset;
}

}  // namespace

Loader::Loader(const Dataset& dataset, const Options& options)
    : dataset_(checked(dataset, options)),
      options_(options),
      rows_(options.rows == 0 ? options.batch_size - options.first_row : options.rows),
      batches_per_epoch_(dataset.size() / options.batch_size),
      order_(static_cast<std::size_t>(dataset.size())) {
  for (Batch& buffer : buffers_) make_room(dataset_, rows_, buffer);
  thread_ = std::jthread([this](const std::stop_token& stop) { produce(stop); });
}

const Batch& Loader::next() {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [&] { return produced_ > taken_ || failure_; });
  if (produced_ == taken_) std::rethrow_exception(failure_);
  const Batch& batch = buffers_[taken_ % kBuffers];
  ++taken_;
  room_.notify_one();
  return batch;
}

void Loader::produce(const std::stop_token& stop) {
  const FlushDenormals flushed;
  try {
    for (std::int64_t number = 0;; ++number) {
      std::unique_lock lock(mutex_);
      // Batch taken_ - 1 is in the consumer's hands: its buffer is free only once taken_ has moved on.
      if (!room_.wait(lock, stop, [&] { return number < taken_ - 1 + kBuffers; })) return;
      lock.unlock();
      fill(options_.first_batch + number, buffers_[number % kBuffers]);
      lock.lock();
      produced_ = number + 1;
      ready_.notify_one();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    ready_.notify_one();
  }
}

void Loader::fill(std::int64_t index, Batch& batch) {
  order_epoch(index / batches_per_epoch_);
  const std::int64_t first = index % batches_per_epoch_ * options_.batch_size;
  const auto example_of = [&](std::int64_t k) {
    return order_[static_cast<std::size_t>(first + options_.first_row + k)];
  };
  if (options_.augment.vary_sounds)
    parallel_for(rows_, 1, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t k = from; k < to; ++k) vary_sound(example_of(k), index, k, batch);
    });
  for (std::int64_t k = 0; k < rows_; ++k) {
    const std::int64_t row = options_.first_row + k, example = example_of(k);
    if (options_.augment.none())
      copy_row(dataset_.images, example, batch.images, k);
    else if (!options_.augment.vary_sounds)
      augment(draw_augmentation(options_.augment, options_.seed, index, row), dataset_.example_shape(),
              pixels_of(dataset_.images, example), static_cast<std::uint8_t>(dataset_.zero_point),
              pixels_of(batch.images, k));
    put_answer(dataset_, example, k, batch);
  }
  batch.index = index;
}

/// Row k of a batch: the example's sound, varied as the run's seed and the place in the batches say, then standardised.
void Loader::vary_sound(std::int64_t example, std::int64_t index, std::int64_t k, Batch& batch) const {
  const std::int32_t* place = dataset_.recordings.data<std::int32_t>() + 2 * example;
  const std::int64_t size = dataset_.example_shape().elements();
  const std::span<float> numbers =
      batch.images.values<float>().subspan(static_cast<std::size_t>(k * size), static_cast<std::size_t>(size));
  dataset_.sounds->write(place[0], place[1], key_of(options_.seed, index, options_.first_row + k), numbers);
  if (!dataset_.standard) return;
  const std::size_t channels = dataset_.standard->mean.size();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = dataset_.standard->standardised(i % channels, numbers[i]);
}

void Loader::order_epoch(std::int64_t epoch) {
  if (epoch == ordered_epoch_) return;
  ordered_epoch_ = epoch;
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  if (!options_.shuffle) return;
  Random random(mix(mix(hash_text("datasets/loader"), options_.seed), static_cast<std::uint64_t>(epoch)));
  for (std::size_t left = order_.size(); left > 1; --left) std::swap(order_[left - 1], order_[random.below(left)]);
}

void for_each_batch(const Dataset& dataset, std::int64_t batch_size,
                    const std::function<void(const EvaluationBatch&)>& body, const BatchChoice& choice) {
  dataset.check();
  require_batch_size(batch_size);
  EvaluationBatch batch;
  make_room(dataset, batch_size, batch);
  const std::int64_t last = std::min(choice.last, (dataset.size() + batch_size - 1) / batch_size);
  for (std::int64_t number = choice.first; number < last; number += choice.stride) {
    batch.first = number * batch_size;
    batch.valid = std::min(batch_size, dataset.size() - batch.first);
    for (std::int64_t k = 0; k < batch_size; ++k) {
      const std::int64_t example = batch.first + std::min(k, batch.valid - 1);
      copy_row(dataset.images, example, batch.images, k);
      put_answer(dataset, example, k, batch);
    }
    body(batch);
  }
}

}  // namespace miniqat::datasets
