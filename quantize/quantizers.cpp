#include "quantize/quantizers.h"

#include <algorithm>
#include <array>

#include "core/graph/source_ops.h"
#include "layers/matmul.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"

namespace miniqat::quantize {
namespace {

/// The values of one end; none where they are not known.
std::vector<float> end_values(const Output& end, const NamedTensors& variables) {
  const auto elements = static_cast<std::size_t>(end.shape().elements());
  if (const auto* constant = end.node->as<Constant>(); constant != nullptr) {
    std::vector<float> values(constant->value.begin(), constant->value.end());
    values.resize(elements, values.front());
    return values;
  }
  const auto found = variables.find(end.node->name());
  const bool known = end.node->as<Variable>() != nullptr && found != variables.end() &&
                     found->second.shape() == end.shape() && found->second.dtype() == DType::kFloat32;
  if (!known) return {};
  const auto values = found->second.values<float>();
  return {values.begin(), values.end()};
}

}  // namespace

/// The right operand of a layer; of a product either one, if the range says that it is made anew in each step.
bool quantizes_weights(const Node& quantizer) {
  const RangeKindTraits& kind = traits_of(quantizer.as<FakeQuant>()->range);
  return std::ranges::any_of(uses_through(quantizer.output(), kIdentity), [&](const Use& use) {
    if (!is_layer(*use.node)) return false;
    if (!use.node->as<layers::MatMul>()) return use.input == 1;
    return kind.follows_tensor() || (use.input == 1 && !kind.observes);
  });
}

bool has_learned_variables(const Node& node) {
  const auto* quantizer = node.as<FakeQuant>();
  return quantizer && traits_of(quantizer->range).learned && node.input(1).node->as<Variable>() &&
         node.input(2).node->as<Variable>();
}

Range<float> QuantizerRange::extremes() const {
  return {std::ranges::min_element(ranges, {}, &Range<float>::min)->min,
          std::ranges::max_element(ranges, {}, &Range<float>::max)->max};
}

std::vector<Affine<float>> QuantizerRange::grids() const {
  std::vector<Affine<float>> grids;
  for (const Range<float>& range : ranges) grids.push_back(grid_of(range, attributes.grid_options()));
  return grids;
}

std::vector<QuantizerRange> quantizer_ranges(const Graph& graph, const NamedTensors& variables) {
  std::vector<QuantizerRange> found;
  for (const Node* node : graph.topological_order()) {
    const auto* attributes = node->as<FakeQuant>();
    if (attributes == nullptr) continue;
    const std::vector<float> min = end_values(node->input(1), variables), max = end_values(node->input(2), variables);
    if (min.empty() || min.size() != max.size()) continue;
    QuantizerRange range{.quantizer = node->name(), .attributes = *attributes, .is_weights = quantizes_weights(*node)};
    for (std::size_t i = 0; i < min.size(); ++i) range.ranges.push_back({min[i], max[i]});
    found.push_back(std::move(range));
  }
  return found;
}

bool has_initial_range(const Node& quantizer, const NamedTensors& variables) {
  return std::ranges::all_of(std::array{1, 2}, [&](int end) {
    const Output tensor = quantizer.input(end);
    const auto* variable = tensor.node->as<Variable>();
    if (variable == nullptr) return false;
    Tensor initial(tensor.shape());
    variable->initializer.fill(initial, 0);
    return std::ranges::equal(end_values(tensor, variables), initial.values<float>());
  });
}

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
