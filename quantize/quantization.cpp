#include "quantize/quantization.h"

#include <algorithm>

#include "core/text/error.h"
#include "core/text/json.h"
#include "layers/batch_norm.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/batch_norm_fold.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/quantizers.h"

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

}  // namespace miniqat::quantize
