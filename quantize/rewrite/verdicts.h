#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/rewrite/layer_patterns.h"
#include "quantize/rewrite/layer_settings.h"
#include "quantize/rewrite/residual_sums.h"

namespace miniqat::quantize {

// Which quantizer each tensor has got, and why, or why none. Insertion (insert_fake_quant.h) decides and writes it
// down; the report, the conflicts with an earlier rewrite and the notes on layer_bits read it.

/// About a tensor of a layer.
struct TensorVerdict {
  /// What gives the tensor.
  const Node* producer = nullptr;
  /// The quantizer as it would be inserted now; one from before may differ.
  QuantizerSettings asked;
  /// Null: left float.
  Node* quantizer = nullptr;
  /// Those of fewer bits behind it, which only layers read. They are asked for where `is_wide`: the tensor keeps
  /// sums_bits, and these are more.
  std::vector<Node*> for_layers = {};
  bool is_wide = false;
  /// A reader that is quantized instead: a clamp, or a line behind a line (line.h).
  const Node* left_to = nullptr;
  /// Why there is no quantizer, or only one range where one for each channel was asked for; "" if nothing prevented it.
  std::string why = {};
};

struct LayerVerdict {
  const LayerMatch* match = nullptr;
  LayerSettings settings;
  TensorVerdict weights = {};
  /// What a bypass Add adds to.
  std::optional<TensorVerdict> before_bypass = {};
  TensorVerdict output = {};
  /// The post-activation Add.
  std::optional<TensorVerdict> after_bypass = {};

  /// Of the three, those that are there.
  std::vector<const TensorVerdict*> outputs() const;
};

struct Verdicts {
  /// As the layers were searched.
  std::vector<LayerVerdict> layers = {};
  /// Why ops that get a range of their own (gets_range()) have none.
  std::unordered_map<const Node*, std::string> left_float = {};
  /// Those of them whose only reader is quantized instead, with that one: a clamp or, behind a line, another line
  /// (line.h), which may be left to the next one in turn.
  std::unordered_map<const Node*, const Node*> left_to_next = {};
  /// How many have none because of RewriteOptions::float_pools.
  std::int64_t float_pools = 0;
  /// The settings of quantizers without a layer: behind layers, and before the first ones.
  LayerSettings others, before_layers;
  /// See nodes_behind_layers().
  std::unordered_set<const Node*> behind_layers = {};
  ResidualSums sums;
  /// Names of the quantizers that were inserted, in order.
  std::vector<std::string> inserted = {};

  /// Of a quantizer on the node's output that belongs to no layer.
  const LayerSettings& without_layer(const Node& producer) const {
    return behind_layers.contains(&producer) ? others : before_layers;
  }
};

/// The quantizers that the bits of each layer decide about; see RewriteReport::quantizers.
std::vector<LayerQuantizers> quantizers_by_layer(const Verdicts& verdicts);

}  // namespace miniqat::quantize
