#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "distributed/communicator.h"

namespace miniqat::distributed {

/// How the ranks' parts of a bucket become their sum. All give the same bits: every number is the sum over the ranks in
/// the order of one balanced binary tree. N ranks, n bytes; received is what a rank receives.
enum class SumWay {
  /// Each rank gets all parts, and adds all. One message to each; (N - 1) n received. For few bytes.
  kGather,
  /// Each rank gets its slice of every part, adds the slices in the tree's order, and sends the sums round:
  /// MPI_Ialltoall, MPI_Iallgather. 2 (N - 1) n / N received, in 2 (N - 1) messages. To compare with.
  kSlices,
  /// The tree itself, with halves: in round r a rank swaps half of what it holds with the rank at distance 2^r, then
  /// the sums come back on the same way (Rabenseifner, "Optimization of collective reduction operations", ICCS 2004).
  /// As many bytes as kSlices, in 2 log2(N) messages one after the other.
  kHalves,
  /// The tree itself: in round r whole parts are swapped (recursive doubling). log2(N) n received. To compare with.
  kWhole,
};

std::string_view name_of(SumWay way);

/// The way for a bucket of so many floats: what docs/scale.md finds the fastest.
SumWay sum_way(std::int64_t floats);

struct BucketShape {
  std::int64_t floats = 0;
  /// Multiplies the sum. (x * 1 has the bits of x.)
  float factor = 1;
};

/// One bucket's way to its sum, on a channel of its own.
class BucketSum {
 public:
  virtual ~BucketSum() = default;
  /// Memory for this rank's part, kept for all steps.
  virtual std::span<float> values() = 0;
  /// This rank's part, which is sent from now on and becomes the sum of all where it is: values(), or as many floats
  /// elsewhere if fits() says so. They must stay until done().
  virtual void start(std::span<float> part) = 0;
  /// Whether memory of that many floats needs no padding.
  virtual bool fits(std::int64_t floats) const = 0;
  /// Whether the sum is there; takes the next step when data have arrived. Never waits.
  virtual bool done() = 0;
};

/// The number of ranks must be a power of two. Memory is taken here and kept, so that a bucket serves every step.
std::unique_ptr<BucketSum> make_bucket_sum(Communicator& ranks, const BucketShape& shape, SumWay way);

}  // namespace miniqat::distributed
