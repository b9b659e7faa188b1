#include "core/engine/delays.h"

#include <algorithm>
#include <set>

#include "core/graph/graph.h"
#include "core/graph/op_queries.h"

namespace miniqat {

Delays::Delays(const Graph& graph) {
  std::set<std::int64_t> steps;
  for (const Node* node : graph.nodes())
    for (const std::int64_t delay : delays_of(node->op())) steps.insert(delay);
  steps_.assign(steps.begin(), steps.end());
}

std::int64_t Delays::passed(std::int64_t quantization_step) const {
  return std::ranges::upper_bound(steps_, quantization_step) - steps_.begin();
}

}  // namespace miniqat
