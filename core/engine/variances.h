#pragma once

#include <string>

#include "core/graph/graph.h"
#include "core/tensor.h"

namespace miniqat {

/// Throws Error naming the variable, its value and the op, after `source` (a file; "" for none), if an op takes this
/// variable as a variance (TakesVariances) and a number of `value` is below 0: its root would be NaN, and with it all
/// that comes behind.
void require_variance(const Graph& graph, const std::string& variable, const Tensor& value, const std::string& source);

}  // namespace miniqat
