#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensors/random.h"
#include "core/tensors/tensor.h"

namespace miniqat::quantize {

/// How the weights of a layer meet its input. A pixel of the output is W x with a matrix [outputs, inputs] in each
/// group: a depthwise layer has a group for each input channel, any other has one.
struct WeightLayout {
  std::int64_t groups = 1;
  std::int64_t inputs = 1;
  std::int64_t outputs = 1;
  /// The weights of an output lie side by side: a MatMul with transpose_b.
  bool outputs_first = false;

  /// The place of a weight in its tensor.
  std::int64_t element(std::int64_t group, std::int64_t input, std::int64_t output) const {
    return outputs_first ? output * inputs + input : (input * groups + group) * outputs + output;
  }
};

/// The layout of the weights of a Conv2D, a DepthwiseConv2d, or a MatMul of its input and its weights, in this order.
WeightLayout layout_of(const Node& layer);

/// Means over the vectors x that a layer multiplies its weights with, and the outputs y that are wanted for them. A
/// vector is a patch of a convolution's input (padding counts, as zeros) or a row of a matrix. Neighbouring patches say
/// nearly the same, so of a batch only some are taken.
class LayerMoments {
 public:
  /// Takes at most `patches` vectors of each batch, spread over it by chance. The node must stay.
  LayerMoments(const Node& layer, std::int64_t patches, std::uint64_t seed);

  /// Values of the layer's input 0, and numbers in the shape of its output.
  void add(const Tensor& input, const Tensor& wanted);

  /// Vectors taken.
  std::int64_t count() const { return count_; }
  /// E[x x^T] of a group: symmetric, row-major [inputs, inputs].
  std::vector<float> squares(std::int64_t group) const;
  /// E[y x^T] of a group, row-major [outputs, inputs].
  std::vector<float> products(std::int64_t group) const;
  /// E[y^T y] of all groups.
  double wanted_square() const { return wanted_square_ / static_cast<double>(count_); }

 private:
  std::vector<std::int64_t> choose_positions();
  /// Row-major [positions, groups * inputs].
  std::vector<float> patches_at(const std::vector<std::int64_t>& positions, const Tensor& input) const;
  void add_matrix(const std::vector<float>& x, const std::vector<float>& y);
  void add_groups(const std::vector<float>& x, const std::vector<float>& y);

  const Node& layer_;
  const WeightLayout layout_;
  const std::int64_t patches_;
  Random random_;
  std::int64_t count_ = 0;
  /// Sums of x x^T [inputs, inputs, groups] and y x^T [outputs, inputs, groups].
  std::vector<float> squares_;
  std::vector<float> products_;
  double wanted_square_ = 0;
};

}  // namespace miniqat::quantize
