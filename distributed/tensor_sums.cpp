#include "distributed/tensor_sums.h"

#include <algorithm>
#include <utility>

#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "distributed/communicator.h"

namespace miniqat::distributed {

PeriodicCall::PeriodicCall(std::chrono::microseconds interval, std::function<void()> beat)
    : interval_(interval), beat_(std::move(beat)) {}

PeriodicCall::~PeriodicCall() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void PeriodicCall::resume() {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  beats_ = true;
  if (sleeps_) changed_.notify_one();
}

void PeriodicCall::halt() noexcept {
  const std::lock_guard lock(mutex_);
  beats_ = false;
}

void PeriodicCall::pause() {
  halt();
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void PeriodicCall::run() {
  // Sums have the bits that they have on the threads of a step.
  const FlushDenormals flushed;
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (!beats_) {
      sleeps_ = true;
      changed_.wait(lock);
      sleeps_ = false;
      continue;
    }
    // Who pauses and resumes in between need not wake this thread.
    changed_.wait_for(lock, interval_);
    if (!beats_ || ended_) continue;
    try {
      beat_();
    } catch (...) {
      failure_ = std::current_exception();
      beats_ = false;
    }
  }
}

struct TensorSums::Bucket {
  /// The bucket's own channel: which bucket moves on first is not the same on all ranks.
  std::unique_ptr<Communicator> channel;
  std::unique_ptr<BucketSum> sum;
  /// How many the sum is for.
  std::int64_t floats = 0;
  /// In this step: the stretch of a tensor that fills this bucket alone, and is summed where it is; empty if there is
  /// none.
  std::span<float> in_place;

  std::span<float> values() const { return in_place.empty() ? sum->values() : in_place; }
};

TensorSums::TensorSums(Communicator& ranks, const BucketOptions& options) : ranks_(ranks), options_(options) {
  if (options_.floats < 1) fail("a bucket must hold at least one number, not ", options_.floats);
  if (options_.interval.count() > 0) mover_ = std::make_unique<PeriodicCall>(options_.interval, [this] { move_on(); });
}

TensorSums::~TensorSums() = default;

/// Keeps what the bucket holds, as far as it fits.
void TensorSums::resize(Bucket& bucket, std::int64_t floats) {
  std::unique_ptr<BucketSum> sum = make_bucket_sum(*bucket.channel, {.floats = floats, .factor = options_.factor},
                                                   options_.way.value_or(sum_way(floats)));
  if (bucket.sum != nullptr) {
    const std::span<float> before = bucket.values(), now = sum->values();
    std::copy_n(before.begin(), std::min(before.size(), now.size()), now.begin());
    bucket.in_place = {};
  }
  bucket.sum = std::move(sum);
  bucket.floats = floats;
}

/// The one for number `place` of the row, with room for it. In the steps of one phase all have the length that they had
/// before.
TensorSums::Bucket& TensorSums::bucket_of(std::int64_t place) {
  const std::size_t k = place / options_.floats;
  if (k == buckets_.size()) {
    const WaitForRanks waits;
    buckets_.push_back({.channel = ranks_.channel(), .sum = nullptr, .in_place = {}});
  }
  Bucket& bucket = buckets_[k];
  if (place % options_.floats >= bucket.floats) resize(bucket, options_.floats);
  return bucket;
}

/// Calls body(bucket, offset in it, part of the tensor) for the parts of a tensor that begins at number `first`.
template <class Body>
void TensorSums::over_buckets(std::int64_t first, std::span<float> tensor, const Body& body) {
  while (!tensor.empty()) {
    Bucket& bucket = bucket_of(first);
    const std::int64_t inside = first % options_.floats;
    const std::span<float> part = tensor.first(std::min<std::size_t>(tensor.size(), bucket.floats - inside));
    body(bucket, inside, part);
    tensor = tensor.subspan(part.size());
    first += std::ssize(part);
  }
}

void TensorSums::hand_over(std::span<float> tensor) {
  if (mover_ != nullptr) mover_->pause();
  over_buckets(filled_, tensor, [](Bucket& bucket, std::int64_t offset, std::span<float> part) {
    if (bucket.sum->fits(std::ssize(part)))
      bucket.in_place = part;
    else
      std::ranges::copy(part, bucket.sum->values().begin() + offset);
  });
  tensors_.push_back(tensor);
  filled_ += std::ssize(tensor);
  while (filled_ >= static_cast<std::int64_t>(started_ + 1) * options_.floats) start(buckets_[started_++]);
  move_on();
  if (mover_ != nullptr && summed_ < started_) mover_->resume();
}

void TensorSums::start(Bucket& bucket) { bucket.sum->start(bucket.values()); }

void TensorSums::flush() {
  if (mover_ != nullptr) mover_->pause();
  const std::int64_t rest = filled_ - static_cast<std::int64_t>(started_) * options_.floats;
  if (rest > 0) {
    Bucket& last = buckets_[started_++];
    if (rest != last.floats) resize(last, rest);
    start(last);
  }
  move_on();
}

void TensorSums::progress() { move_on(); }

void TensorSums::move_on() {
  const WaitForRanks waits;
  for (std::size_t k = summed_; k < started_; ++k) {
    const bool done = buckets_[k].sum->done();
    if (done && k == summed_) ++summed_;
  }
}

void TensorSums::finish() {
  const WaitForRanks waits;
  while (summed_ < started_) {
    move_on();
    if (summed_ < started_) std::this_thread::yield();
  }
  std::int64_t first = 0;
  for (const std::span<float> tensor : tensors_) {
    over_buckets(first, tensor, [](const Bucket& bucket, std::int64_t offset, std::span<float> part) {
      if (bucket.in_place.empty()) std::copy_n(bucket.sum->values().begin() + offset, part.size(), part.begin());
    });
    first += std::ssize(tensor);
  }
  abandon();
}

void TensorSums::abandon() noexcept {
  if (mover_ != nullptr) mover_->halt();
  for (Bucket& bucket : buckets_) bucket.in_place = {};
  tensors_.clear();
  filled_ = 0;
  started_ = summed_ = 0;
}

}  // namespace miniqat::distributed
