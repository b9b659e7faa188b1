#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "quantize/rewrite/layer_patterns.h"
#include "quantize/rewrite/rewrite.h"
#include "quantize/rewrite/verdicts.h"

namespace miniqat::quantize {

/// Inserts the quantizers of the matched layers and of what happens between them; returns what was decided about each
/// tensor. The matches must outlive it.
///
/// A layer in scope ctx gets `ctx/weights_quant` and, after its last part, `ctx/act_quant`. With a bypass there is
/// `ctx/conv_quant` on what the Add adds to, and one scope up `act_quant`, or `add_quant` after the Add when no
/// activation follows. After a post-activation bypass, in the scope of that Add, `post_activation_bypass_quant` unless
/// a Relu, Relu6 or Clip follows. A name that is taken gets a number.
///
/// Requantized ops (op_roles.h), sums and products with parameters and batch norms that are part of no layer (line.h),
/// outside of layers and fed by a quantized tensor (also through each other and through ops that keep the range), get
/// `<op name>/activation_<Type>_quant`, unless their only reader is a Relu, Relu6 or Clip or, of two of line.h in a
/// row, the second, which is then quantized instead. A batch norm that nobody reads gets none. An op with an
/// output_range() has that as its fixed range. With quantize_input, float placeholders that feed a layer in scope get
/// `<placeholder>/input_quant`.
///
/// Of what RewriteOptions::sums_bits keeps wide (residual_sums.h), layers read `edge_quant` in the quantizer's scope,
/// which reads the wide one.
///
/// On an activation, all consumers and the graph outputs move to the quantizer, and a tensor that feeds a quantizer
/// already (also through Reshape or Identity) is left alone. A quantizer of weights serves layers only: a weight
/// penalty, say, or a graph output keeps the float weights, and so do layers outside the scope. Layers that share a
/// weight share its quantizer, which is named after the first of them.
///
/// LayerSettings decide about a layer's weights and the quantizers on its output; what layers share is
/// quantized as the first of them asks. The other quantizers are as the options say.
///
/// Per-channel ranges are for weights whose last axis (depthwise filters: two) is the output channel; a MatMul with
/// transpose_b or with its weights on the left keeps one range per tensor, as does a weight whose users differ.
Verdicts insert_fake_quants(Graph& graph, const std::vector<LayerMatch>& matches, const RewriteOptions& options,
                            bool is_training);

/// The quantizer that reads the tensor, directly or through Reshape and Identity, or null.
Node* quantizer_after(Output tensor);
/// The tensor above its quantizers, if there are any.
Output before_quantizers(Output tensor);

}  // namespace miniqat::quantize
