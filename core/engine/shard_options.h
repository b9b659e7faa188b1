#pragma once

#include "core/engine/shard_exchange.h"

namespace miniqat {

/// How a session computes training steps whose batch is several slices of the size that the graph's placeholders have.
struct ShardOptions {
  /// The slices that are fed: `range.count` of `range.total`. With an exchange it is the exchange's.
  ShardRange range = {};
  /// That compute each slice. Like `range.total`, and unlike all else here, it may change the bits.
  int threads = 1;
  /// The most slices that are computed side by side.
  int at_once = 1;
  /// To the processes that compute the other slices; must stay. Null if this process computes all of them.
  ShardExchange* exchange = nullptr;
};

}  // namespace miniqat
