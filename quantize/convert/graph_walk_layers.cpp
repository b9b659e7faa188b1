#include <algorithm>

#include "core/text/error.h"
#include "layers/layers.h"
#include "quantize/convert/graph_walk.h"
#include "quantize/convert/integer_batch_norm.h"
#include "quantize/convert/integer_layer.h"
#include "quantize/convert/refusals.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"

// Layers with their biases and batch norms.

namespace miniqat::quantize {

using integer::LayerKind;

GraphWalk::Value GraphWalk::layer(const Node& node) {
  Pending pending = {
      .operation = node.name(), .action = weights(node), .inputs = {}, .shape = {}, .tensor = node.name()};
  auto& layer = std::get<integer::Layer>(pending.action);
  pending.bias.assign(static_cast<std::size_t>(layer.output_channels()), 0);
  pending.shape = example_of(node.output().shape());
  if (layer.kind != LayerKind::kFullyConnected) layer.window = convolution_window(node);
  if (const auto* blocks = std::get_if<Blocks>(&at(node.input(0)));
      blocks && layer.kind != LayerKind::kFullyConnected) {
    pending.atrous = blocks->atrous;
    pending.atrous->window = layer.window;
    pending.inputs = {blocks->tensor};
  } else {
    pending.inputs = {input_tensor(node)};
  }
  return pending;
}

integer::Layer GraphWalk::weights(const Node& node) {
  for (const int i : {0, 1})
    if (values_.moves(node.input(i).node) != (i == 0))
      fail(describe(node), " must read the network's tensors as input 0 and weights as input 1, reads ",
           node.input(0).name(), " and ", node.input(1).name());
  integer::Layer layer;
  bool transposed = false;
  if (const auto* product = node.as<layers::MatMul>()) {
    layer.kind = LayerKind::kFullyConnected;
    transposed = product->transpose_b;
    if (product->transpose_a) fail(describe(node), " transposes the batch, which no integer model does");
  } else {
    layer.kind = node.as<layers::DepthwiseConv2d>() ? LayerKind::kDepthwiseConv2d : LayerKind::kConv2d;
  }
  const Output quantized = source_through(node.input(1), kIdentity);
  if (!is_quantizer(*quantized.node)) fail_without_range(quantized, describe(node));
  const auto inputs = quantized.node->inputs();
  quantize_weights(layer, *quantized.node, values_.value(inputs[0]), values_.value(inputs[1]), values_.value(inputs[2]),
                   transposed);
  return layer;
}

GraphWalk::Value GraphWalk::biased(const Node& node, Output summand, Output bias) {
  Pending pending = layer_sum(node, summand);
  const std::int64_t channels = pending.last_shape().channels();
  const Tensor& value = values_.value(bias);
  const bool fits = (value.elements() == 1 || (value.elements() == channels && value.shape().channels() == channels)) &&
                    node.output().shape() == summand.shape();
  if (!fits)
    fail(describe(node), " adds ", bias.name(), " ", value.shape(), " to ", summand.shape(),
         ": not one number for each channel");
  for (std::size_t o = 0; o < pending.bias.size(); ++o)
    pending.bias[o] += value.data<float>()[value.elements() == 1 ? 0 : o];
  pending.absorb(node.name());
  return pending;
}

const Pending& GraphWalk::layer_sum(const Node& node, Output sum) {
  const auto* pending = std::get_if<Pending>(&at(sum));
  if (!pending || !pending->is_layer() || pending->is_clamped()) fail_without_range(sum, describe(node));
  const bool rearranges_channels = std::ranges::any_of(pending->rearrangements, [&](const Rearrangement& step) {
    return std::holds_alternative<integer::Pad>(step.action) || step.shape.channels() != pending->shape.channels();
  });
  if (rearranges_channels) fail_without_range(sum, describe(node));
  return *pending;
}

GraphWalk::Value GraphWalk::normalised(const Node& node) {
  if (!values_.moves(node.input(0).node)) fail_unsupported(node);
  if (!is_folded_late(node)) return scaled_and_shifted(node, 0, scale_shift_of_batch_norm(node, values_));
  Pending pending = layer_sum(node, node.input(0));
  fold_into_layer(pending, node, values_);
  pending.absorb(node.name());
  return pending;
}

}  // namespace miniqat::quantize
