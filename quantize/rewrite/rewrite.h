#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/fold/fold_pass.h"
#include "quantize/range_kind.h"
#include "quantize/rewrite/layer_bits.h"

namespace miniqat::quantize {

struct RewriteOptions {
  /// 2..16 each.
  int weight_bits = 8;
  int activation_bits = 8;
  /// Ranges are symmetric around 0: all of them, or those of weights. An activation without negative values has half of
  /// a symmetric grid for itself.
  bool symmetric = false;
  bool symmetric_weights = false;
  /// Whether ranges are observed or trained. Learned ranges of weights are symmetric, unless asymmetric_weights says
  /// otherwise: with few bits, a zero point would jump by a good part of the range. Learned ranges start at -6 and 6,
  /// which is far too wide for weights of few bits. training::train sets them at least squares before its first step; a
  /// loop of your own takes them from a graph of create_eval_graph, of the same options, that a Calibrator has seen.
  RangeChoice ranges = RangeChoice::kObserved;
  bool asymmetric_weights = false;
  /// Weights use all integers, with 2 bits four of them (-2..1 where symmetric) instead of three (-1, 0, 1).
  bool full_range_weights = false;
  /// Scales of all quantizers.
  ScaleChoice scales = ScaleChoice::kAny;
  /// Bits of the logits: the output of layers that no other layer reads. Comes before layer_bits. None: ends_bits, else
  /// layer_bits, else 8 where ranges of activations are learned, since the logits are few and have no other chance,
  /// else activation_bits.
  std::optional<std::int64_t> logits_bits = {};
  /// Bits of the weights of the first and last layers, and of the logits without logits_bits. Comes before layer_bits.
  /// The inputs of the last layers keep activation_bits. None: layer_bits or weight_bits.
  std::optional<std::int64_t> ends_bits = {};
  /// Bits of residual sums and of what they add (ResidualSums), at least activation_bits. Where these are fewer, a
  /// layer reads such a tensor through a quantizer of its own, which has activation_bits. None: activation_bits.
  std::optional<std::int64_t> sums_bits = {};
  /// Bits of the quantizers that quantize_input asks for. None: activation_bits.
  std::optional<std::int64_t> input_bits = {};
  /// One range per output channel for weights; activations stay per tensor.
  bool per_channel = false;
  /// The training step that is the first to quantize, counted from 1; 0 is as 1. Observed ranges are observed from the
  /// first step, learned ones stay until then.
  std::int64_t quant_delay = 0;
  /// Steps after which batch norm uses its moving statistics; none means never.
  std::optional<std::int64_t> freeze_bn_delay = {};
  /// kLate needs per_channel and scales of any kind.
  BnFold bn_fold = BnFold::kTf;
  double ema_decay = 0.999;
  /// Rewrite only layers under this scope; "" for all.
  std::string scope = {};
  /// Give the graph's float placeholders that feed layers a quantizer, too.
  bool quantize_input = false;
  /// Leave the outputs of AvgPool, Mean and Concat without quantizers of their own.
  bool float_pools = false;
  /// An unquantized edge into a layer is an error.
  bool strict = false;
  /// Layers that are quantized otherwise: the first that matches a layer decides about its weights and its output.
  std::vector<LayerBits> layer_bits = {};

  /// The general settings of quantizers (rewrite/layer_settings.h): the kinds of ranges, whether weights are symmetric,
  /// whether residual sums have more bits than activations.
  RangeKind weight_range() const;
  RangeKind activation_range() const;
  bool has_symmetric_weights() const;
  bool widens_sums() const;
  /// The bits of the logits, where these are not activation_bits.
  std::optional<int> logits_width() const;
  FoldOptions folding() const { return {.freeze_bn_delay = freeze_bn_delay, .bn_fold = bn_fold, .scope = {scope}}; }

  /// Throws Error naming the option that is out of range, or the pattern of layer_bits that asks for asymmetric weights
  /// where all ranges are symmetric.
  void check() const;
};

/// The fate of one edge (a tensor into a consumer) or of one candidate layer.
enum class EdgeStatus {
  /// The edge carries a FakeQuant's output.
  kQuantized,
  /// Inside a layer's match: the integer engine computes both ends as one.
  kFused,
  /// Goes through an op that keeps the range of its quantized input (MaxPool, Reshape, Identity, Dropout, ...).
  kPassedThrough,
  /// Comes from a placeholder: the data set brings scale and zero point.
  kInput,
  /// Serves only to find a batch norm's statistics while training; evaluation has no such edge.
  kStatistics,
  kLeftFloat,
};

struct EdgeReport {
  /// "conv1/Conv2D" or "name:k" for the tensor; "conv1/BiasAdd" for the consumer.
  std::string tensor;
  std::string consumer;
  EdgeStatus status = EdgeStatus::kLeftFloat;
  /// Why; for quantized edges the FakeQuant's name.
  std::string reason;
};

/// One line of what the passes did: "conv1/Conv2D: matched layer + bias + Relu; ..." or why not.
struct MatchReport {
  std::string layer;
  bool matched = false;
  std::string text;
  /// A layer that is kept for a batch norm's statistics: neither matched nor left out.
  bool statistics = false;
};

/// A quantizer by its name, and how many numbers it quantizes: of an activation, those of a whole batch.
struct QuantizedTensor {
  std::string quantizer;
  std::int64_t elements = 0;
};

/// The quantizers that the bits of one layer (RewriteOptions::layer_bits) decide about. A tensor that several layers
/// share belongs to the first of them.
struct LayerQuantizers {
  std::string layer;
  /// None or one.
  std::vector<QuantizedTensor> weights = {};
  /// The quantizers on the layer's output, none to three, and with sums_bits those that layers read behind them.
  std::vector<QuantizedTensor> output = {};
};

/// Something that was rewritten before with another setting than the options have; it stays as it is.
struct SettingConflict {
  /// The setting's name as in RewriteOptions, "bits_config" for layer_bits.
  std::string setting;
  /// "conv1/weights_quant has 2 bits, not 8".
  std::string text;
};

struct RewriteReport {
  std::vector<BatchNormReport> batch_norms;
  std::vector<MatchReport> matches;
  std::vector<EdgeReport> edges;
  /// The quantizers of the matched layers, in the topological order that the graph has without quantizers.
  std::vector<LayerQuantizers> quantizers;
  /// Names of the FakeQuants that this call inserted, in order; empty when rewriting again.
  std::vector<std::string> inserted;
  /// Requests without effect, and parts that stay float or keep their statistics.
  std::vector<std::string> remarks;
  /// Options that are legal and hardly meant.
  std::vector<std::string> warnings;
  /// None for the first rewrite of a float graph, and for a second one with the same options.
  std::vector<SettingConflict> conflicts;

  /// A line "warning: ..." for each warning and "note: ..." for each remark; "" when there is none.
  std::string notes() const;
  /// For people: notes, matches, skips and edges in aligned columns.
  std::string text() const;
};

/// A graph for evaluation cannot become one for training again: its batch norms are folded and its delays gone. Throws
/// Error naming the first quantizer that was turned to evaluation, after `source` (the graph's file, if it has one),
/// unless its range is "fixed", which no step changes anyway.
void require_observing(const Graph& graph, const std::string& source = {});

/// Rewrites `graph` in place for training with simulated quantization, in the manner of tf.contrib.quantize's function
/// of that name: folds batch norms (fold/fold_pass.h), then inserts quantizers (decide.h). Works on
/// structure, never on names. Idempotent: a second call inserts nothing. Ends in Graph::verify(). Throws Error for
/// options out of range, what require_observing() throws and, with `strict`, for a scope without a layer and for layers
/// with an unquantized edge (naming each); the graph is then unchanged.
RewriteReport create_training_graph(Graph& graph, const RewriteOptions& options = {});

/// Turns the quantizers and batch norms of a graph to evaluation: stored ranges and statistics, no observers, no delay.
/// Turns the result of create_training_graph() on a float graph into that of create_eval_graph() with the same options.
void turn_to_evaluation(Graph& graph);

/// The same as create_training_graph() for evaluation. A graph that was rewritten before is turned first.
RewriteReport create_eval_graph(Graph& graph, const RewriteOptions& options = {});

}  // namespace miniqat::quantize
