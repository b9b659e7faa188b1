#pragma once

#include <cstdint>

#include "core/engine/session.h"
#include "distributed/rank_exchange.h"

namespace miniqat::training {

/// All ranks get the leader's variables, optimizer state and counters: those of a new run, or of a checkpoint that only
/// the leader has read.
void share_state(Session& session, distributed::RankExchange& ranks);

/// Throws Error unless the sessions of all ranks are the same to the bit.
void require_same_state(Session& session, distributed::RankExchange& ranks);

}  // namespace miniqat::training
