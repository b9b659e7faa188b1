#include "quantize/quantization.h"

#include <algorithm>

#include "core/error.h"
#include "core/graph/op_queries.h"
#include "core/graph/source_ops.h"
#include "core/text/json.h"
#include "layers/matmul.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/batch_norm_fold.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"
#include "quantize/quantization_delays.h"

namespace miniqat::quantize {
namespace {

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

}  // namespace miniqat::quantize
