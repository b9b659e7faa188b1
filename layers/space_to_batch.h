#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::layers {

struct SpaceToBatchAttributes {
  /// How many blocks each of the spatial axes 1, 2, ... of x is dealt out to; at least one entry.
  std::vector<std::int64_t> block_shape;
  /// [before, after] zeros around each of these axes; left out for none.
  std::vector<std::array<std::int64_t, 2>> paddings = {};

  void visit(AttributeVisitor& visitor) {
    visitor.field("block_shape", block_shape);
    visitor.field("paddings", paddings);
  }
};

/// Deals the pixels of x, float32, out to the batch, as tf.space_to_batch_nd does, with strides block_shape from each
/// of its offsets. Neighbours in an output image are block_shape apart in x. So an ordinary convolution of the output
/// is an atrous one of x. For x [n, h, w, c] and block_shape [bh, bw] the output is
/// [bh*bw*n, (top + h + bottom)/bh, (left + w + right)/bw, c]:
///   y[(oy*bw + ox)*n + i, v, u, c] = padded x[i, v*bh + oy, u*bw + ox, c].
/// Throws Error while building unless the blocks divide the padded extents.
struct SpaceToBatchNd {
  static constexpr std::string_view kType = "SpaceToBatchND";
  using Attributes = SpaceToBatchAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

struct BatchToSpaceAttributes {
  /// The block_shape of the SpaceToBatchND that this undoes.
  std::vector<std::int64_t> block_shape;
  /// [before, after] pixels to cut off each spatial axis of the result; left out for none.
  std::vector<std::array<std::int64_t, 2>> crops = {};

  void visit(AttributeVisitor& visitor) {
    visitor.field("block_shape", block_shape);
    visitor.field("crops", crops);
  }
};

/// The inverse of SpaceToBatchND, crops taking the place of its paddings: x [bh*bw*n, h, w, c] to
/// [n, h*bh - top - bottom, w*bw - left - right, c]. Throws Error while building unless the blocks divide the batch and
/// the crops are no larger than what they cut.
struct BatchToSpaceNd {
  static constexpr std::string_view kType = "BatchToSpaceND";
  using Attributes = BatchToSpaceAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output space_to_batch(Graph& graph, const std::string& name, Output x,
                             const SpaceToBatchAttributes& attributes) {
  return graph.add<SpaceToBatchNd>(name, {x}, attributes);
}
inline Output batch_to_space(Graph& graph, const std::string& name, Output x,
                             const BatchToSpaceAttributes& attributes) {
  return graph.add<BatchToSpaceNd>(name, {x}, attributes);
}

}  // namespace miniqat::layers
