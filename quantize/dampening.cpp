#include "quantize/dampening.h"

#include <memory>

#include "quantize/fake_quant.h"
#include "quantize/quantization.h"

namespace miniqat::quantize {

std::int64_t dampen_weights(Graph& graph, double dampening, std::int64_t steps) {
  std::int64_t count = 0;
  for (Node* node : graph.nodes()) {
    const auto* quantizer = node->as<FakeQuant>();
    if (quantizer == nullptr || !quantizes_weights(*node) || !traits_of(quantizer->range).changes()) continue;
    FakeQuantAttributes attributes = *quantizer;
    attributes.dampening = dampening;
    attributes.dampening_steps = steps;
    graph.replace_op(*node, FakeQuant::make(attributes));
    ++count;
  }
  return count;
}

}  // namespace miniqat::quantize
