#pragma once

#include <chrono>
#include <functional>

#include "distributed/bucket_sum.h"
#include "distributed/communicator.h"

namespace miniqat::distributed {

/// Runs body(communicator) in `count` threads, as the ranks of one run whose messages go through memory. Data arrive
/// late, after some calls of done(), and another number of them each time. Throws what the lowest rank that failed
/// threw.
void as_ranks(int count, const std::function<void(Communicator&)>& body);

/// On each rank: steps of TensorSums over eight shards, of which each rank has its part, in buckets so small that
/// many are on their way. The tensors have odd lengths, one has none; among the numbers are infinities, both zeros,
/// NaNs with a payload, and large ones that cancel out in other orders. Throws Error unless every sum has the bits of
/// one process's tree over eight shards.
/// With an interval the buckets also move on by themselves, in the time between two tensors.
void check_tree_sums(Communicator& ranks, SumWay way, std::chrono::microseconds interval = {});

/// Throws Error unless a bucket whose tensor was handed over is summed while nobody calls.
void check_sums_move_on(Communicator& ranks);

/// gathered(), broadcasts and barrier. Throws Error for a wrong number.
void check_small_talk(Communicator& ranks);

}  // namespace miniqat::distributed
