#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace miniqat::quantize {

/// A batch normalisation spelled out in primitive ops, y = (x - mean) * Rsqrt(variance + epsilon) [* gamma] + beta, in
/// either of its usual orders:
///   Add(product of (Sub(x, mean), Rsqrt, gamma), beta)
///   Add(product of (x, Rsqrt, gamma), Sub(beta, product of (mean, Rsqrt, gamma)))   (TensorFlow's)
/// The products may be bracketed in any way, operands of Add and Mul may come in any order, BiasAdd may take the place
/// of the last Add, and Identity nodes may lie anywhere between.
struct UnfusedBatchNorm {
  /// [..., c], rank 2 or more, with Identity nodes before the normalisation looked through.
  Output x;
  /// [c], Variable or Constant. Null node where there is no scaling.
  Output gamma;
  /// [c], Variable or Constant.
  Output beta;
  /// [c], Variables (not trainable) or Constants where the graph normalises by stored statistics; null nodes where it
  /// takes the moments of x.
  Output mean;
  Output variance;
  double epsilon = 0;
  /// The last op: its output 0 is y.
  Node* result = nullptr;

  bool takes_moments() const { return mean.node == nullptr; }
};

/// All of them, in topological order; found by structure, never by names. Moments of x are its mean and variance over
/// all axes but the last, with keep_dims or without. The mean is a Mean. The variance is the Mean of the squares of
/// Sub(x, mean), or the Mean of the squares of x less the square of the mean. A square is a Square or a Mul of a tensor
/// with itself. Epsilon is a Constant whose elements are all the same. Stored statistics that are trainable don't
/// match: BatchNorm has no gradient for them.
std::vector<UnfusedBatchNorm> find_unfused_batch_norms(const Graph& graph);

/// The ops between the tensors that go in and y, consumers before producers. To quantize one of them would quantize the
/// statistics.
std::vector<Node*> interior_of(const UnfusedBatchNorm& found);

/// The nodes of interior_of() that fuse_batch_norm erases: all that nothing else reads.
std::vector<Node*> erased_by_fusing(const Graph& graph, const UnfusedBatchNorm& found);

/// Puts a BatchNorm node, which it returns, in the place of the primitive ops: all consumers of y take its output 0,
/// and those primitive ops go that nothing else reads. It is named `<scope of result>/BatchNorm`; where there is no
/// scaling its gamma is a Constant of ones, `<scope>/ones`. (Names that are taken get a number.)
///
/// Stored statistics give a BatchNorm with is_training false. Moments give one that trains, with decay 0.99 and new
/// variables `<scope>/moving_mean` (zeros) and `<scope>/moving_variance` (ones): the primitive ops keep no moving
/// statistics, so these are learned in the training steps after the rewrite. A training step computes what it did
/// before; any other run, which took the moments of its own batch before, now takes the moving ones.
///
/// If several were found at once, the x of a later one may be the result of an earlier one, which is gone once that is
/// fused.
Node& fuse_batch_norm(Graph& graph, const UnfusedBatchNorm& found);

}  // namespace miniqat::quantize
