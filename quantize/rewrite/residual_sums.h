#pragma once

#include <unordered_set>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::quantize {

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
