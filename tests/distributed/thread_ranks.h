#pragma once

#include <functional>

#include "distributed/communicator.h"

namespace miniqat::distributed {

/// Runs body(communicator) in `count` threads, as the ranks of one run whose messages go through memory. Data arrive
/// late, after some calls of done(), and another number of them each time. Throws what the lowest rank that failed
/// threw.
void as_ranks(int count, const std::function<void(Communicator&)>& body);

}  // namespace miniqat::distributed
