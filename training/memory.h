#pragma once

#include <string>

#include "core/engine/plan/plan_request.h"

namespace miniqat::training {

/// The most memory that this process has held at once (resident set), in units of 10^6 bytes.
double peak_megabytes();

/// "128 nodes (3 dropped), arena 12.3 MB for 45.6 MB of tensors; process peak so far 78 MB", on one line.
std::string memory_text(const PlanMemory& plan);

}  // namespace miniqat::training
