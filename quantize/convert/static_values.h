#pragma once

#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"

namespace miniqat::quantize {

/// The tensors behind an output, in two parts: those that depend on a feed, and those that are the same in every run.
/// The latter are variables, constants, and results of them (folded weights and biases, say).
class StaticValues {
 public:
  /// The graph must outlive this. Throws Error naming the variable when one that the output needs is missing, of
  /// another shape, or not finite.
  StaticValues(Graph& graph, Output output, const NamedTensors& variables);

  /// The nodes that depend on a feed and that the output needs, producers before consumers.
  const std::vector<Node*>& moving() const { return moving_; }
  bool moves(const Node* node) const { return moving_set_.contains(node); }
  /// The value of a tensor that does not depend on a feed and that is read by a node that does; or, where that one
  /// comes from a quantizer (also through Identity), of the quantizer's inputs. Throws Error naming any other tensor.
  const Tensor& value(Output tensor) const;
  /// value() of the tensor, but null where that throws.
  const Tensor* find(Output tensor) const;

 private:
  void part(const Graph& graph, Output output);
  std::vector<Output> wanted() const;
  void evaluate(Graph& graph, const NamedTensors& variables);

  std::vector<Node*> moving_;
  std::unordered_set<const Node*> moving_set_;
  /// The other nodes that the output needs.
  std::vector<Node*> still_;
  std::map<std::pair<const Node*, int>, Tensor> values_;
};

}  // namespace miniqat::quantize
