#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/fold/fold_pass.h"

namespace miniqat::quantize {

/// An edge of a layer that has no existence in integers.
struct FusedEdge {
  const Node* producer = nullptr;
  const Node* consumer = nullptr;
  /// The edge's role for the layer: "computed with", "bias of", "weights of".
  std::string_view role;
};

/// A layer and what the integer engine computes together with it, in this order; null for parts that are not there.
struct LayerMatch {
  /// Conv2D, DepthwiseConv2d or MatMul.
  Node* layer = nullptr;
  /// Which of the layer's inputs takes the weights, and the tensor itself, before any quantizer.
  int weight_input = 1;
  Output weights;
  /// BatchToSpaceND, or a Reshape before a bias, a correction or a Relu.
  Node* rearrangement = nullptr;
  /// The product and the sum of a folded batch norm before its bias: post_conv_mul, correction_add.
  Node* correction_mul = nullptr;
  Node* correction_add = nullptr;
  /// BiasAdd, an Add whose other operand is a parameter vector or a folded batch norm's bias, or the BatchNorm itself
  /// where it was folded with a single convolution or late.
  Node* bias = nullptr;
  /// An Identity between these and what follows, read by nobody else.
  Node* copy = nullptr;
  /// Any other Add.
  Node* bypass = nullptr;
  /// Relu, Relu6, Clip, or an Identity that alone reads what comes before it.
  Node* activation = nullptr;
  /// An Add of the activation and something else.
  Node* post_activation_bypass = nullptr;
  /// Along the chain; into `bias` what is added; from Variables and factors to `weights`. Quantizers are looked
  /// through.
  std::vector<FusedEdge> fused = {};

  /// The parts from the layer to the activation.
  std::vector<Node*> chain() const;
  /// What a bypass Add adds to.
  Node* before_bypass() const;
  Node* last() const { return chain().back(); }
  /// "layer + bias + bypass + Relu".
  std::string text() const;
};

struct LayerSkip {
  Node* layer = nullptr;
  std::string reason = {};
  /// From the layer to the BatchNorm, where it only feeds the batch statistics of its folded twin: nothing to quantize.
  std::vector<const Node*> for_statistics = {};
  /// The layer is no part of the network (unused_nodes): nothing of it is quantized, and nobody misses that.
  bool is_unused = false;

  bool is_for_statistics() const { return !for_statistics.empty(); }
};

struct LayerSearch {
  /// Matches and skips are in topological order; every layer of the graph is in one of the two.
  std::vector<LayerMatch> matches = {};
  std::vector<LayerSkip> skips = {};
  Scope scope = {};
};

/// Finds the layers under `scope` ("" for all) whose weights come from a Variable: directly, through Identity, through
/// Concat of Variables, or as their product with one or two things (a folded weight). A layer with several matches
/// takes the largest of which no part before the end has other readers who need its integers; among
/// equals the one with a post-activation bypass, then the one with an activation. If there is none, the largest of all.
/// Two layers may share what follows (both operands of a residual Add, say). Quantizers are looked through. Skipped:
/// layers without such weights, outside the scope, or kept for the statistics of a batch norm that was folded into
/// another one like them.
LayerSearch find_layers(const Graph& graph, std::string_view scope);

/// The tensors that RewriteOptions::sums_bits is for. A residual sum is an Add of two tensors of its own shape, neither
/// of them a parameter. Its operands keep sums_bits, also those that reach it through ops that keep the range, and so
/// does its result (behind its activation), unless only layers read it: those take the bits of activations anyway.
///
/// Finds the same before and after the quantizers are there.
class ResidualSums {
 public:
  explicit ResidualSums(const Graph& graph);

  /// Whether the graph has none.
  bool empty() const { return kept_.empty(); }
  /// Whether a quantizer of what the node gives keeps sums_bits.
  bool keep(const Node& producer) const { return kept_.contains(&producer); }
  /// Whether the use ends in layers alone: it is a layer's, or an op's that keeps the range and is read by such alone.
  bool ends_in_layers(const Use& use) const;

 private:
  void find_ends(const Graph& graph, const std::vector<Node*>& order);
  void add_operand(Output operand);
  void add_result(const Node& node);

  std::unordered_set<const Node*> kept_;
  /// Ops that keep the range, and quantizers, whose output only layers read, in this sense.
  std::unordered_set<const Node*> read_by_layers_;
};

/// The quantizers that layers read behind this one: those of fewer bits on its output, also behind ops that keep the
/// range.
std::vector<Node*> quantizers_for_layers(const Node& quantizer);

}  // namespace miniqat::quantize
