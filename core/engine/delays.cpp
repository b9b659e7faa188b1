#include "core/engine/delays.h"

#include <algorithm>
#include <set>

#include "core/graph/graph.h"
#include "core/graph/op_queries.h"

namespace miniqat {

Delays::Delays(const Graph& graph) {
  std::set<std::int64_t> quantizing, freezing;
  for (const Node* node : graph.nodes()) {
    if (const auto delay = quant_delay_of(node->op())) quantizing.insert(*delay);
    if (const auto delay = freeze_delay_of(node->op())) freezing.insert(*delay);
  }
  quantization.assign(quantizing.begin(), quantizing.end());
  freeze.assign(freezing.begin(), freezing.end());
}

PassedDelays Delays::passed(std::int64_t quantization_step) const {
  const auto count = [=](const std::vector<std::int64_t>& delays) {
    return std::ranges::upper_bound(delays, quantization_step) - delays.begin();
  };
  return {count(quantization), count(freeze)};
}

}  // namespace miniqat
