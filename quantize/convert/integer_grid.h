#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensors/tensor.h"
#include "integer/arithmetic.h"
#include "quantize/affine.h"

namespace miniqat::quantize {

// From the quantizers of an evaluation graph to the grids of the integer model.

/// The grid of a tensor's integers, and the part of it that may be used.
struct Target {
  integer::Grid grid;
  /// Narrow range leaves out 0; on an empty grid only the zero point is left.
  integer::Clamp clamp;
  /// The grid as training computes with it.
  Affine<float> affine;

  /// Whether every integer of the grid may be used.
  bool is_whole() const { return clamp == integer::Clamp{0, grid.quant_max()}; }
};

/// All of a grid.
Target whole(const integer::Grid& grid);

/// The target with what lies outside of [lowest, highest] clamped, each end rounded as training rounds it. Infinite
/// ends clamp nothing. At least one integer of the target is left.
Target narrowed(Target target, Range<float> range);

/// The grid of a quantizer of activations, its stored range given as scalars. Throws Error naming the quantizer unless
/// it is one for evaluation, of at most 8 bits, with one range for the tensor, and that finite.
Target activation_target(const Node& quantizer, const Tensor& min, const Tensor& max);

/// One grid for each stored range of a quantizer (of weights, say). Throws Error naming the quantizer unless it is one
/// for evaluation, of at most 8 bits, and its ranges finite.
std::vector<Affine<float>> grids_of(const Node& quantizer, const Tensor& min, const Tensor& max);

// Elementwise functions as tables of integers.

/// What an op of one input (OpRole::kTable) makes of every number of the input's grid, by its reference loops in
/// double. The numbers are those that training dequantizes, in float32. Throws Error naming the node for a result that
/// is not finite.
std::vector<double> lookup_values(const Node& node, const integer::Grid& input);

/// The integers for these: rounded to float32, then as training rounds them (quantize/affine.h), within the target's
/// clamp.
std::vector<std::uint8_t> lookup_table(std::span<const double> values, const Target& target);

}  // namespace miniqat::quantize
