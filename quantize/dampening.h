#pragma once

#include <cstdint>

#include "core/graph/graph.h"

namespace miniqat::quantize {

/// Oscillation dampening (FakeQuantAttributes::dampening) for all weights of a rewritten graph whose ranges are learned
/// or observed: the coefficient grows to `dampening` over `steps` steps. A graph for evaluation takes it too, so that a
/// checkpoint fits both. Returns how many quantizers it has set.
std::int64_t dampen_weights(Graph& graph, double dampening, std::int64_t steps);

}  // namespace miniqat::quantize
