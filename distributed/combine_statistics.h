#pragma once

#include <functional>
#include <span>

#include "core/tensors/shard_statistic.h"
#include "distributed/communicator.h"

namespace miniqat::distributed {

/// values[i] becomes what values[i] of all ranks show together, combined in the order of the balanced binary tree over
/// the ranks. Few bytes go to all at once, which then combine all; many go up the tree, whole, in log2(N) swaps.
/// Calls `meanwhile` again and again while it waits. The number of ranks must be a power of two.
void combine_statistics(Communicator& ranks, std::span<ShardStatistic> values, const std::function<void()>& meanwhile);

}  // namespace miniqat::distributed
