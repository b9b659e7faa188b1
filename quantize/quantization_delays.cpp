#include "quantize/quantization_delays.h"

#include <algorithm>
#include <set>

#include "layers/batch_norm.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/batch_norm_fold.h"

namespace miniqat::quantize {

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
