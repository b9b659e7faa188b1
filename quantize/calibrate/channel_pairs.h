#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::quantize {

/// A Conv2D, DepthwiseConv2d or MatMul, and the variables that scale its channels.
struct ChannelLayer {
  const Node* layer = nullptr;
  /// Variables; null where there is none. `batch_norm` is the node, with gamma and beta as inputs 1 and 2; a layer has
  /// it or a bias, not both.
  const Node* weights = nullptr;
  const Node* batch_norm = nullptr;
  const Node* bias = nullptr;
  /// Behind these, before any activation.
  Output linear = {};
  /// Why its channels cannot be scaled, or empty.
  std::string why_not = {};

  /// Rows of weights for an input channel each, and output channels.
  std::int64_t inputs() const;
  std::int64_t outputs() const;
};

/// The input and output channel that an element of a layer's weights belongs to.
struct WeightPlace {
  std::int64_t input = 0;
  std::int64_t output = 0;
};

/// Follows the element's place in the tensor: Conv2D [kh, kw, in, out], DepthwiseConv2d [kh, kw, in, multiplier] with
/// output in * multiplier + k, MatMul [in, out] or, transposed, [out, in].
WeightPlace place_of(const ChannelLayer& layer, std::int64_t element);

/// Two layers in a row. A positive factor on a channel of the first one's output becomes the same factor on the input
/// of the second one: only Relu, pools, and ops that move or copy lie between them. With a Relu6 this holds while the
/// channel stays below 6. Position p on the second one's input axis has channel p % first.outputs().
struct ChannelPair {
  ChannelLayer first;
  ChannelLayer second;
  /// The input of the Relu6, or first.linear without one.
  Output before_clamp = {};
  /// The first activation in between, or null.
  const Node* activation = nullptr;
  bool has_relu6 = false;
};

/// A layer and the reason against something.
struct LeftOutLayer {
  std::string layer;
  std::string reason;
};

/// Every layer of the graph is the first of a pair or left out. In topological order.
struct PairSearch {
  std::vector<ChannelPair> pairs;
  std::vector<LeftOutLayer> left_out;
};

/// Finds the pairs of a float network, without quantizers and with its batch norms as they are. Each tensor between the
/// layers must have one reader, each variable one use, and both layers be in_scope().
PairSearch find_channel_pairs(const Graph& graph, const std::string& scope = "");

}  // namespace miniqat::quantize
