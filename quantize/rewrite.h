#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph.h"
#include "quantize/layer_bits.h"

namespace miniqat::quantize {

struct RewriteOptions {
  /// 2..16 each.
  int weight_bits = 8;
  int activation_bits = 8;
  bool symmetric = false;
  /// One range per output channel for weights; activations stay per tensor.
  bool per_channel = false;
  /// Quantization steps before quantizers start to quantize; they observe from the first step.
  std::int64_t quant_delay = 0;
  /// Steps after which batch norm uses its moving statistics; none means never.
  std::optional<std::int64_t> freeze_bn_delay = {};
  double ema_decay = 0.999;
  /// Rewrite only layers under this scope; "" for all.
  std::string scope = {};
  /// Give the graph's float placeholders that feed layers a quantizer, too.
  bool quantize_input = false;
  /// An unquantized edge into a layer is an error.
  bool strict = false;
  /// Layers that are quantized otherwise: the first that matches a layer decides about its weights and its output.
  std::vector<LayerBits> layer_bits = {};

  /// Throws Error naming the option that is out of range.
  void check() const;
  /// The options that hold for one layer: these, changed by the first of layer_bits that matches its name.
  RewriteOptions for_layer(std::string_view layer) const;
};

/// What became of one edge (a tensor into a consumer) or of one candidate layer.
enum class EdgeStatus {
  /// The edge carries a FakeQuant's output.
  kQuantized,
  /// Inside a layer's match: the integer engine computes both ends as one.
  kFused,
  /// Goes through an op that keeps the range of its quantized input (MaxPool, Reshape, Identity, Dropout, ...).
  kPassedThrough,
  /// Comes from a placeholder: the data set brings scale and zero point.
  kInput,
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
};

struct RewriteReport {
  std::vector<MatchReport> matches;
  std::vector<EdgeReport> edges;
  /// Names of the FakeQuants that this call inserted, in order; empty when rewriting again.
  std::vector<std::string> inserted;

  /// A line "note: ..." for each remark on the whole; "" when there is none.
  std::string notes() const;
  /// For people: notes, matches, skips and edges in aligned columns.
  std::string text() const;
};

/// Rewrites `graph` in place for training with simulated quantization, in the manner of tf.contrib.quantize's function
/// of that name. Works on structure, never on names. Idempotent: a second call inserts nothing. Ends in
/// Graph::verify(). Throws Error for options out of range and, with `strict`, for layers with an unquantized edge
/// (naming each); the graph is then unchanged.
RewriteReport create_training_graph(Graph& graph, const RewriteOptions& options = {});

/// The same for evaluation: stored ranges, no observers, no delay. Given a graph that create_training_graph has
/// rewritten, it turns the quantizers (and BatchNorm) it finds to evaluation.
RewriteReport create_eval_graph(Graph& graph, const RewriteOptions& options = {});

}  // namespace miniqat::quantize
