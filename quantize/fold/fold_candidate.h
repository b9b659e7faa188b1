#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/fold/spelled_out_batch_norm.h"

namespace miniqat::quantize {

/// A batch norm that can be folded into the layer before it.
struct Foldable {
  Node* batch_norm = nullptr;
  /// Conv2D, DepthwiseConv2d, or MatMul with its weights on the right.
  Node* layer = nullptr;
  /// The ops in between, from the layer on: Identity, and at most one BatchToSpaceND or Reshape.
  std::vector<Node*> between;
};

struct FoldingVerdict {
  std::optional<Foldable> foldable = {};
  /// The batch norm is folded already, and so it is not foldable.
  bool already = false;
  /// The layer before it, if nothing between the two is in the way.
  const Node* layer = nullptr;
  bool is_read = true;
  /// Why it is not foldable; empty otherwise.
  std::string text = {};
};

/// Whether a BatchNorm node can be folded without changing what anybody sees. Not foldable: a batch norm that does not
/// follow a layer with weights from a Variable (directly, through Identity, or a Concat of Variables), or has more than
/// one BatchToSpaceND or Reshape in between. Also one whose input or statistics have other readers, whose output has no
/// reader, or that shares its moving statistics. The verdict is the same for training and evaluation.
FoldingVerdict examine_batch_norm(const Graph& graph, Node& batch_norm);

/// The verdict on the BatchNorm that fuse_batch_norm would make, but for readers of its statistics, without `foldable`.
FoldingVerdict examine_unfused(const Graph& graph, const UnfusedBatchNorm& batch_norm);

}  // namespace miniqat::quantize
