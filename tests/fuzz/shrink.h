#pragma once

#include <functional>

#include "tests/fuzz/graph_case.h"

namespace miniqat::fuzz {

/// Whether a case shows the fault. Cases that cannot be run show none.
using Fails = std::function<bool(const GraphCase&)>;

/// A smaller case that fails, too: around `finding`'s nodes if that will do, of fewer nodes, threads and runs, smaller
/// extents and plainer attributes. Greedy, for at most `seconds`.
GraphCase shrink(const GraphCase& test, const Finding& finding, const Fails& fails, double seconds);

}  // namespace miniqat::fuzz
