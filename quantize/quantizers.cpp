#include "quantize/quantizers.h"

#include <algorithm>
#include <array>

#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/suggest.h"
#include "layers/batch_norm.h"
#include "layers/matmul.h"
#include "quantize/fold/batch_norm_fold.h"
#include "quantize/fold/folded_layer.h"
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

std::string span_of(const std::set<std::int64_t>& bits) {
  if (bits.empty()) return "-";
  return bits.size() == 1 ? concat(*bits.begin()) : concat(*bits.begin(), "-", *bits.rbegin());
}

nlohmann::ordered_json list_of(const std::set<std::int64_t>& bits) {
  if (bits.empty()) return nullptr;
  if (bits.size() == 1) return *bits.begin();
  return bits;
}

/// Whether all, some or none are symmetric.
struct Symmetry {
  int symmetric = 0;
  int others = 0;

  void add(bool is_symmetric) { ++(is_symmetric ? symmetric : others); }
  bool all() const { return symmetric > 0 && others == 0; }
  bool differ() const { return symmetric > 0 && others > 0; }
};

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

Quantization quantization_of(const Graph& graph) {
  Quantization found;
  Symmetry weights, activations;
  bool narrow_weights = false;
  for (const Node* node : graph.nodes()) {
    found.single = found.single || node->as<BatchNormScale>();
    found.late = found.late || is_folded_late(*node);
    const auto* quantizer = node->as<FakeQuant>();
    if (!quantizer) continue;
    const FakeQuantAttributes& attributes = *quantizer;
    const bool of_weights = quantizes_weights(*node);
    ++found.quantizers;
    (of_weights ? found.weight_bits : found.activation_bits).insert(attributes.bits);
    (of_weights ? weights : activations).add(attributes.symmetric);
    narrow_weights = narrow_weights || (of_weights && attributes.narrow_range);
    found.per_channel = found.per_channel || attributes.per_channel;
    found.power_of_two = attributes.power_of_two && (found.power_of_two || found.quantizers == 1);
    found.learned = found.learned || traits_of(attributes.range).learned;
    const std::int64_t delay = quant_delay_of(*node).value_or(0);
    found.delay = found.quantizers == 1 ? delay : std::min(found.delay, delay);
  }
  found.symmetric_weights = weights.all();
  found.symmetric_activations = activations.all();
  found.full_range_weights = !found.weight_bits.empty() && !narrow_weights;
  found.mixed =
      found.weight_bits.size() > 1 || found.activation_bits.size() > 1 || weights.differ() || activations.differ();
  return found;
}

std::string Quantization::label() const {
  if (is_float()) return "float";
  const bool all = symmetric_weights && symmetric_activations;
  return concat("W", span_of(weight_bits), "A", span_of(activation_bits), mixed ? " mixed" : "",
                per_channel ? " per channel" : "", learned ? " learned" : "",
                all                 ? " symmetric"
                : symmetric_weights ? " symmetric weights"
                                    : "",
                full_range_weights ? " full range" : "", power_of_two ? " power-of-two" : "", single ? " single" : "",
                late ? " late" : "");
}

nlohmann::ordered_json Quantization::bits() const {
  if (is_float()) return nullptr;
  return {{"weights", list_of(weight_bits)}, {"activations", list_of(activation_bits)}};
}

std::optional<std::int64_t> quant_delay_of(const Node& node) {
  const auto* quantizer = node.as<FakeQuant>();
  return quantizer != nullptr && quantizer->is_training ? std::optional(quantizer->delay) : std::nullopt;
}

std::optional<std::int64_t> freeze_delay_of(const Node& node) {
  std::int64_t delay = -1;
  if (const auto* norm = node.as<layers::BatchNorm>(); norm != nullptr && norm->is_training) delay = norm->freeze_delay;
  if (const auto* correction = node.as<BatchNormCorrection>()) delay = correction->freeze_delay;
  return delay >= 0 ? std::optional(delay) : std::nullopt;
}

QuantizationDelays::QuantizationDelays(const Graph& graph) {
  std::set<std::int64_t> quantizing, freezing;
  for (const Node* node : graph.nodes()) {
    if (const auto delay = quant_delay_of(*node)) quantizing.insert(*delay);
    if (const auto delay = freeze_delay_of(*node)) freezing.insert(*delay);
  }
  quantization.assign(quantizing.begin(), quantizing.end());
  freeze.assign(freezing.begin(), freezing.end());
}

PassedDelays QuantizationDelays::passed(std::int64_t quantization_step) const {
  const auto count = [=](const std::vector<std::int64_t>& delays) {
    return std::ranges::upper_bound(delays, quantization_step) - delays.begin();
  };
  return {count(quantization), count(freeze)};
}

std::vector<std::string> grid_words(const FakeQuantAttributes& attributes) {
  std::vector<std::string> words;
  if (attributes.per_channel) words.emplace_back("per channel");
  if (attributes.symmetric) words.emplace_back("symmetric");
  if (attributes.narrow_range) words.emplace_back("narrow");
  return words;
}

std::string quantizer_text(const FakeQuantAttributes& attributes) {
  std::vector<std::string> words = {concat(attributes.bits, " bits"), std::string(traits_of(attributes.range).text)};
  for (const std::string& word : grid_words(attributes)) words.push_back(word);
  if (attributes.delay > 0) words.push_back(concat("delay ", attributes.delay));
  if (!attributes.is_training) words.emplace_back("evaluation");
  return joined(words);
}

bool is_range_only(const Graph& graph, const Node& node) {
  const auto* variable = node.as<Variable>();
  const bool of_range = variable != nullptr
                            ? !variable->trainable || variable->update == VariableUpdateKind::kMultiplicative
                            : node.as<Constant>() != nullptr;
  return of_range && !node.uses().empty() && !graph.is_output(node) &&
         std::ranges::all_of(node.uses(),
                             [](const Use& use) { return use.input > 0 && use.node->as<FakeQuant>() != nullptr; });
}

}  // namespace miniqat::quantize
