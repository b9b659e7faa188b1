#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/fold_pass.h"
#include "quantize/rewrite/layer_patterns.h"
#include "quantize/rewrite/layer_settings.h"
#include "quantize/rewrite/rewrite_options.h"

namespace miniqat::quantize {

// A rewrite finds batch norms and layers, decides which quantizer each tensor gets, applies the decisions, and explains
// them. The table of decisions is here. RewriteOptions are read for the last time while it is made: insertion, the
// report, the conflicts with an earlier rewrite, the notes and `strict` read the table.

/// A quantizer to insert, or one that was there before.
struct QuantizerRow {
  /// What it quantizes.
  Output tensor;
  std::string name;
  FakeQuantAttributes attributes;
  /// Where the range of a quantizer to insert starts.
  InitialRange initial = {};
  int channel_axes = 0;
  /// All uses of the tensor, and the graph's outputs, move to it.
  bool takes_all = false;
  /// Uses that move to it, whatever they read before.
  std::vector<Use> readers = {};
  /// Null until it is inserted.
  Node* node = nullptr;
};

/// About a tensor of a layer.
struct TensorDecision {
  /// What gives the tensor.
  const Node* producer = nullptr;
  /// The quantizer as it would be inserted now; one from before may differ.
  QuantizerSettings asked;
  /// Null: left float.
  const QuantizerRow* row = nullptr;
  /// The tensor keeps sums_bits, and these are more than layers read: for_layers() are asked for.
  bool is_wide = false;
  /// A reader that is quantized instead: a clamp, or a scale and shift behind another one (scale_shift_input()).
  const Node* left_to = nullptr;
  /// Why there is no quantizer, or only one range where one for each channel was asked for; "" if nothing prevented it.
  std::string why = {};

  /// In the rewritten graph: the quantizer, or null, and the quantizers of fewer bits behind it, which only layers
  /// read.
  Node* quantizer() const { return row ? row->node : nullptr; }
  std::vector<Node*> for_layers() const;
};

struct LayerDecision {
  const LayerMatch* match = nullptr;
  LayerSettings settings;
  /// The settings without the ends of the network: layers that share a tensor disagree about it where these differ.
  LayerSettings by_pattern;
  TensorDecision weights = {};
  /// What a bypass Add adds to, if there is one; match->last(); the post-activation Add, if there is one.
  std::vector<TensorDecision> outputs = {};
};

/// What became of one of RewriteOptions::layer_bits.
struct PatternDecision {
  std::string pattern;
  bool has_sums_bits = false, has_ema_decay = false;
  /// Whether it comes first for some layer.
  bool decides = false;
  /// The first layer that it matches, or the first one that was skipped; both null where it matches none.
  const LayerDecision* layer = nullptr;
  const LayerSkip* skip = nullptr;

  bool matches_none() const { return !layer && !skip; }
};

/// An op that gets a range of its own (gets_range()) without a quantizer.
struct LeftFloat {
  std::string reason;
  /// The op's only reader, if that is quantized instead: a clamp or, behind a scale and shift, another one, which may
  /// be left to the next one in turn.
  const Node* next = nullptr;
};

struct Decisions {
  LayerSearch search;
  bool is_training = true;
  /// In the order in which they are inserted.
  std::deque<QuantizerRow> quantizers = {};
  /// The decisions about the matched layers, in the order in which these were searched.
  std::vector<LayerDecision> layers = {};
  /// In the order of the list.
  std::vector<PatternDecision> patterns = {};
  std::unordered_map<const Node*, LeftFloat> left_float = {};
  /// Placeholders and pools whose output gets no quantizer because of this setting.
  std::unordered_map<const Node*, const char*> unwanted = {};
  /// The settings of quantizers without a layer: behind layers (the general ones), before the first ones, and of the
  /// graph's inputs.
  LayerSettings others, before_layers, inputs;
  /// See nodes_behind_layers().
  std::unordered_set<const Node*> behind_layers = {};
  ResidualSums sums;
  /// What batch norms are asked for; -1 for never.
  BnFold bn_fold = BnFold::kTf;
  std::int64_t freeze_delay = -1;
  /// Says that a scope was asked for and no layer is in it; "" otherwise.
  std::string missed_scope = {};
  /// float_pools is asked for, and no pool reaches an output.
  bool misses_pools = false;
  /// input_bits are asked for, and quantize_input is not.
  bool misses_inputs = false;
  /// A layer's edge that is left float is an error.
  bool strict = false;

  /// The settings of a quantizer on the node's output that belongs to no layer.
  const LayerSettings& without_layer(const Node& producer) const {
    return behind_layers.contains(&producer) ? others : before_layers;
  }
};

/// Decides about the layers that were found and about what happens between them. The graph stays as it is.
///
/// A layer in scope ctx gets `ctx/weights_quant` and, after its last part, `ctx/act_quant`. With a bypass there is
/// `ctx/conv_quant` on what the Add adds to, and one scope up `act_quant`, or `add_quant` after the Add when no
/// activation follows. After a post-activation bypass, in the scope of that Add, `post_activation_bypass_quant` unless
/// a Relu, Relu6 or Clip follows. A name that is taken gets a number.
///
/// Requantized ops, sums and products with parameters and batch norms that are part of no layer (scale and shift;
/// op_roles.h has all), outside of layers and fed by a quantized tensor (also through each other and through ops that
/// keep the range), get `<op name>/activation_<Type>_quant`, unless their only reader is a Relu, Relu6 or Clip or, of
/// two scales and shifts in a row, the second, which is then quantized instead. A batch norm that nobody reads gets
/// none. An op with an output_range() has that as its fixed range. With quantize_input, float placeholders that feed a
/// layer in scope get `<placeholder>/input_quant`.
///
/// Layers read what RewriteOptions::sums_bits keeps wide (ResidualSums) through `edge_quant`, in the wide one's scope.
///
/// On an activation, all consumers and the graph outputs move to the quantizer, and a tensor that feeds a quantizer
/// already (also through Reshape or Identity) is left alone. A quantizer of weights serves layers only: a weight
/// penalty, say, or a graph output keeps the float weights, and so do layers outside the scope. Layers that share a
/// weight share its quantizer, which is named after the first of them.
///
/// LayerSettings decide about a layer's weights and the quantizers on its output; what layers share is quantized as the
/// first of them asks. The other quantizers are as the options say.
///
/// Per-channel ranges are for weights whose last axis (depthwise filters: two) is the output channel; a MatMul with
/// transpose_b or with its weights on the left keeps one range per tensor, as does a weight whose users differ.
///
/// Throws Error for a layer with one range of weights before a batch norm that is folded late.
Decisions decide(const Graph& graph, LayerSearch search, const RewriteOptions& options, bool is_training);

/// The quantizer that reads the tensor, directly or through Reshape and Identity, or null.
Node* quantizer_after(Output tensor);

}  // namespace miniqat::quantize
