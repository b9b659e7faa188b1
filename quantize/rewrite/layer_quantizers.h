#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::quantize {

/// A quantizer by its name, and how many numbers it quantizes: of an activation, those of a whole batch.
struct QuantizedTensor {
  std::string quantizer;
  std::int64_t elements = 0;
};

/// The quantizers that the bits of one layer (RewriteOptions::layer_bits) decide about.
struct LayerQuantizers {
  std::string layer;
  /// None or one.
  std::vector<QuantizedTensor> weights = {};
  /// Those on the layer's output, none to three, and with sums_bits those that layers read behind them.
  std::vector<QuantizedTensor> output = {};
};

/// What create_eval_graph would make of a float graph, which stays as it is. Layers are in topological order. A tensor
/// that several layers share belongs to the first of them, as in the rewrite. Throws what create_eval_graph throws.
std::vector<LayerQuantizers> layer_quantizers(const Graph& in_float, const RewriteOptions& options);

/// "x" of "x_Fold": a layer by the name that it has before and after its batch norm is folded.
std::string unfolded_name(const std::string& layer);

/// A pattern of layer_bits that fits this very layer: its unfolded name, with marks before wildcards.
std::string pattern_of_layer(const std::string& layer);

}  // namespace miniqat::quantize
