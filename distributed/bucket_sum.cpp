#include "distributed/bucket_sum.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "core/engine/shard_exchange.h"
#include "core/text/error.h"

namespace miniqat::distributed {
namespace {

/// Below, a message's beginning costs more than all its bytes.
constexpr std::int64_t kSmallFloats = 1024;

std::span<const std::byte> bytes_out(std::span<const float> values) { return std::as_bytes(values); }
std::span<std::byte> bytes_in(std::span<float> values) { return std::as_writable_bytes(values); }

/// own = (own + theirs) * factor. Which of two neighbours of the tree is the left one does not matter to their sum's
/// bits.
void add_pair(std::span<float> own, std::span<const float> theirs, float factor) {
  float* const to = own.data();
  const float* const more = theirs.data();
#pragma omp simd
  for (std::int64_t i = 0; i < std::ssize(own); ++i) to[i] = (to[i] + more[i]) * factor;
}

void scale(std::span<float> values, float factor) {
  for (float& value : values) value *= factor;
}

/// The sum, times the factor, of blocks that lie one behind the other takes the first block's place. A stretch of all
/// of them stays in the cache meanwhile.
void add_blocks(std::span<float> blocks, int count, float factor) {
  constexpr std::int64_t kStretch = 2048;
  const std::int64_t block = std::ssize(blocks) / count;
  std::vector<float*> parts(count);
  for (std::int64_t begin = 0; begin < block; begin += kStretch) {
    for (int k = 0; k < count; ++k) parts[k] = blocks.data() + k * block + begin;
    const std::int64_t length = std::min(kStretch, block - begin);
    add_in_tree(parts, length);
    scale({parts[0], static_cast<std::size_t>(length)}, factor);
  }
}

/// What all ways have: the part, padded with zeros so that it can be cut.
class PaddedSum : public BucketSum {
 public:
  PaddedSum(Communicator& ranks, const BucketShape& shape, std::int64_t padded)
      : ranks_(ranks), floats_(shape.floats), padded_(padded), factor_(shape.factor) {}
  std::span<float> values() override {
    own_.resize(padded_);
    return std::span(own_).first(floats_);
  }
  bool fits(std::int64_t floats) const override { return floats == floats_ && floats == padded_; }
  void start(std::span<float> part) override {
    part_ = std::span(part.data(), padded_);
    step_ = 0;
    if (ranks_.size() == 1)
      scale(part_, factor_);
    else
      transfer_ = next(step_);
  }
  bool done() override {
    while (transfer_ != nullptr && transfer_->done()) {
      transfer_.reset();
      transfer_ = next(++step_);
    }
    return transfer_ == nullptr;
  }

 protected:
  /// Uses what the transfer before has brought, and begins number `step`; null: the sum is there.
  virtual std::unique_ptr<Transfer> next(int step) = 0;

  Communicator& ranks_;
  std::int64_t floats_;
  std::int64_t padded_;
  float factor_;
  /// Between start() and done().
  std::span<float> part_;

 private:
  std::vector<float> own_;
  int step_ = 0;
  std::unique_ptr<Transfer> transfer_;
};

class GatherSum : public PaddedSum {
 public:
  GatherSum(Communicator& ranks, const BucketShape& shape)
      : PaddedSum(ranks, shape, shape.floats), parts_(shape.floats * ranks.size()) {}

 protected:
  std::unique_ptr<Transfer> next(int step) override {
    if (step == 0) return ranks_.all_gather(bytes_out(part_), bytes_in(parts_));
    add_blocks(parts_, ranks_.size(), factor_);
    std::copy_n(parts_.begin(), floats_, part_.begin());
    return nullptr;
  }

 private:
  std::vector<float> parts_;
};

std::int64_t rounded_up(std::int64_t count, int unit) { return (count + unit - 1) / unit * unit; }

class SlicesSum : public PaddedSum {
 public:
  SlicesSum(Communicator& ranks, const BucketShape& shape)
      : PaddedSum(ranks, shape, rounded_up(shape.floats, ranks.size())), slices_(padded_) {}

 protected:
  std::unique_ptr<Transfer> next(int step) override {
    if (step == 0) return ranks_.all_to_all(bytes_out(part_), bytes_in(slices_));
    if (step == 2) return nullptr;
    add_blocks(slices_, ranks_.size(), factor_);
    const std::span<float> own = std::span(slices_).first(slices_.size() / ranks_.size());
    return ranks_.all_gather(bytes_out(own), bytes_in(part_));
  }

 private:
  std::vector<float> slices_;
};

/// Swaps with the rank at distance 2^r and adds what it sent; the lower rank's part is the left one of the sum.
class PairwiseSum : public PaddedSum {
 public:
  PairwiseSum(Communicator& ranks, const BucketShape& shape, std::int64_t padded)
      : PaddedSum(ranks, shape, padded), rounds_(std::countr_zero(static_cast<unsigned>(ranks.size()))) {}

 protected:
  int partner(int round) const { return ranks_.rank() ^ (1 << round); }
  float factor_after(int round) const { return round + 1 == rounds_ ? factor_ : 1.0f; }

  int rounds_;
};

class WholeSum : public PairwiseSum {
 public:
  WholeSum(Communicator& ranks, const BucketShape& shape)
      : PairwiseSum(ranks, shape, shape.floats), theirs_(shape.floats) {}

 protected:
  std::unique_ptr<Transfer> next(int step) override {
    if (step > 0) add_pair(part_, theirs_, factor_after(step - 1));
    return step == rounds_ ? nullptr : ranks_.swap(partner(step), bytes_out(part_), bytes_in(theirs_));
  }

 private:
  std::vector<float> theirs_;
};

class HalvesSum : public PairwiseSum {
 public:
  HalvesSum(Communicator& ranks, const BucketShape& shape)
      : PairwiseSum(ranks, shape, rounded_up(shape.floats, ranks.size())), theirs_(padded_ / 2) {}

 protected:
  std::unique_ptr<Transfer> next(int step) override {
    if (step > 0 && step <= rounds_) add_pair(kept(step - 1), arrived(step - 1), factor_after(step - 1));
    if (step == 2 * rounds_) return nullptr;
    if (step >= rounds_) {
      // Back: the halves of the sum, of the smallest first.
      const int round = 2 * rounds_ - 1 - step;
      return ranks_.swap(partner(round), bytes_out(kept(round)), bytes_in(sent(round)));
    }
    return ranks_.swap(partner(step), bytes_out(sent(step)), bytes_in(arrived(step)));
  }

 private:
  bool is_lower(int round) const { return ranks_.rank() < partner(round); }
  /// What this rank holds before a round: all, then the half that it kept, and so on.
  std::pair<std::size_t, std::size_t> held(int round) const {
    std::size_t begin = 0, length = part_.size();
    for (int k = 0; k < round; ++k) {
      length /= 2;
      if (!is_lower(k)) begin += length;
    }
    return {begin, length};
  }
  std::span<float> half(int round, bool upper) {
    const auto [begin, length] = held(round);
    return part_.subspan(begin + (upper ? length / 2 : 0), length / 2);
  }
  std::span<float> kept(int round) { return half(round, !is_lower(round)); }
  std::span<float> sent(int round) { return half(round, is_lower(round)); }
  std::span<float> arrived(int round) { return std::span(theirs_).first(held(round).second / 2); }

  std::vector<float> theirs_;
};

}  // namespace

std::string_view name_of(SumWay way) {
  switch (way) {
    case SumWay::kGather:
      return "gather";
    case SumWay::kSlices:
      return "slices";
    case SumWay::kHalves:
      return "halves";
    default:
      return "whole";
  }
}

SumWay sum_way(std::int64_t floats) {
  if (floats <= kSmallFloats) return SumWay::kGather;
  return SumWay::kHalves;
}

std::unique_ptr<BucketSum> make_bucket_sum(Communicator& ranks, const BucketShape& shape, SumWay way) {
  if (!std::has_single_bit(static_cast<unsigned>(ranks.size())))
    fail("sums over ", ranks.size(), " ranks: their number must be a power of two");
  switch (way) {
    case SumWay::kGather:
      return std::make_unique<GatherSum>(ranks, shape);
    case SumWay::kSlices:
      return std::make_unique<SlicesSum>(ranks, shape);
    case SumWay::kHalves:
      return std::make_unique<HalvesSum>(ranks, shape);
    default:
      return std::make_unique<WholeSum>(ranks, shape);
  }
}

}  // namespace miniqat::distributed
