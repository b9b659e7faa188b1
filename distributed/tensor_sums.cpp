#include "distributed/tensor_sums.h"

#include <algorithm>
#include <thread>

#include "core/error.h"

namespace miniqat::distributed {

struct TensorSums::Bucket {
  /// Of its own: which bucket moves on first is not the same on all ranks.
  std::unique_ptr<Communicator> channel;
  std::unique_ptr<BucketSum> sum;
};

TensorSums::TensorSums(Communicator& ranks, const BucketOptions& options) : ranks_(ranks), options_(options) {
  if (options_.floats < 1) fail("a bucket must hold at least one number, not ", options_.floats);
}

TensorSums::~TensorSums() = default;

/// Keeps what the bucket holds, as far as it fits.
void TensorSums::resize(Bucket& bucket, std::int64_t floats) {
  std::unique_ptr<BucketSum> sum =
      make_bucket_sum(*bucket.channel, floats, options_.way.value_or(sum_way(ranks_.size(), floats)));
  if (bucket.sum != nullptr) {
    const std::span<float> before = bucket.sum->values(), now = sum->values();
    std::copy_n(before.begin(), std::min(before.size(), now.size()), now.begin());
  }
  bucket.sum = std::move(sum);
}

/// The one for number `place` of the row, with room for it. In the steps of one phase all have the length that they had
/// before.
TensorSums::Bucket& TensorSums::bucket_of(std::int64_t place) {
  const std::size_t k = place / options_.floats;
  if (k == buckets_.size()) buckets_.push_back({ranks_.channel(), nullptr});
  Bucket& bucket = buckets_[k];
  if (bucket.sum == nullptr || place % options_.floats >= std::ssize(bucket.sum->values()))
    resize(bucket, options_.floats);
  return bucket;
}

/// Calls body(values of a bucket, offset in the tensor) for the parts of a tensor that begins at number `first`.
template <class Body>
void TensorSums::over_buckets(std::int64_t first, std::int64_t length, const Body& body) {
  for (std::int64_t done = 0; done < length;) {
    const std::int64_t place = first + done, inside = place % options_.floats;
    const std::span<float> bucket = bucket_of(place).sum->values();
    const std::int64_t part = std::min<std::int64_t>(length - done, bucket.size() - inside);
    body(bucket.subspan(inside, part), done);
    done += part;
  }
}

void TensorSums::hand_over(std::span<float> part) {
  over_buckets(filled_, part.size(), [&](std::span<float> bucket, std::int64_t offset) {
    std::copy_n(part.begin() + offset, bucket.size(), bucket.begin());
  });
  tensors_.push_back(part);
  filled_ += std::ssize(part);
  while (filled_ >= static_cast<std::int64_t>(started_ + 1) * options_.floats) buckets_[started_++].sum->start();
  progress();
}

void TensorSums::flush() {
  const std::int64_t rest = filled_ - static_cast<std::int64_t>(started_) * options_.floats;
  if (rest > 0) {
    if (rest != std::ssize(buckets_[started_].sum->values())) resize(buckets_[started_], rest);
    buckets_[started_++].sum->start();
  }
  progress();
}

void TensorSums::progress() {
  for (std::size_t k = summed_; k < started_; ++k) {
    const bool done = buckets_[k].sum->done();
    if (done && k == summed_) ++summed_;
  }
}

void TensorSums::finish() {
  while (summed_ < started_) {
    progress();
    if (summed_ < started_) std::this_thread::yield();
  }
  std::int64_t first = 0;
  for (const std::span<float> tensor : tensors_) {
    over_buckets(first, tensor.size(), [&](std::span<float> bucket, std::int64_t offset) {
      std::copy_n(bucket.begin(), bucket.size(), tensor.begin() + offset);
    });
    first += std::ssize(tensor);
  }
  abandon();
}

void TensorSums::abandon() noexcept {
  tensors_.clear();
  filled_ = 0;
  started_ = summed_ = 0;
}

}  // namespace miniqat::distributed
