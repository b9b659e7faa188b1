#include "training/quantize/network_cost.h"

#include "core/graph/op_queries.h"
#include "core/graph/reach.h"
#include "core/graph/source_ops.h"
#include "quantize/fake_quant.h"
#include "quantize/op_roles.h"
#include "training/quantize/bit_allocation.h"

namespace miniqat::training {
namespace {

constexpr std::int64_t kFloatBits = 32, kPictureBits = 8;

/// The quantizer whose integers the tensor holds; null where there is none.
const quantize::FakeQuantAttributes* quantizer_of(Output tensor) {
  return quantize::source_through(tensor, quantize::OpRole::kKeepsRange).node->as<quantize::FakeQuant>();
}

bool is_picture(Output tensor) {
  return quantize::source_through(tensor, quantize::OpRole::kKeepsRange).node->as<Placeholder>() != nullptr;
}

std::int64_t input_bits_of(Output input, bool quantized_weights) {
  if (const quantize::FakeQuantAttributes* quantizer = quantizer_of(input)) return quantizer->bits;
  return quantized_weights && is_picture(input) ? kPictureBits : kFloatBits;
}

}  // namespace

std::int64_t bits_of_tensor(Output tensor) {
  const quantize::FakeQuantAttributes* quantizer = quantizer_of(tensor);
  return quantizer != nullptr ? quantizer->bits : kFloatBits;
}

std::vector<LayerCost> layer_costs(const Graph& evaluation, std::int64_t batch) {
  std::vector<LayerCost> costs;
  const std::unordered_set<const Node*> unused = unused_nodes(evaluation);
  for (const Node* node : evaluation.nodes()) {
    const Node& layer = *node;
    if (!quantize::is_layer(layer) || unused.contains(node)) continue;
    // Weights are the right operand.
    const Output input = layer.input(0), weights = layer.input(1);
    LayerCost& one = costs.emplace_back(LayerCost{.layer = node});
    one.weight_bits = bits_of_tensor(weights);
    one.input_bits = input_bits_of(input, one.weight_bits < kFloatBits);
    one.multiply_adds = multiply_adds_of(layer.op(), layer.input_specs()) / batch;
    const std::int64_t channels = layer.output_specs()[0].shape[-1];
    one.cost.parameter_bytes = packed_bytes(weights.shape().elements(), one.weight_bits) + channels * (kFloatBits / 8);
    one.cost.bit_operations = one.multiply_adds * one.weight_bits * one.input_bits;
  }
  return costs;
}

NetworkCost cost_of(const Graph& evaluation, std::int64_t batch) {
  NetworkCost cost;
  for (const LayerCost& one : layer_costs(evaluation, batch)) {
    cost.parameter_bytes += one.cost.parameter_bytes;
    cost.bit_operations += one.cost.bit_operations;
  }
  return cost;
}

}  // namespace miniqat::training
