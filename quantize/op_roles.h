#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/affine.h"

namespace miniqat::quantize {

/// The meaning of an op's type to quantization. Folding, rewriting, its report, conversion and the judge of training
/// steps ask for these roles, never for a type that has one. A type may have several; the table in op_roles.cpp says
/// which. Roles may be joined by `|`.
enum class OpRole : std::uint16_t {
  /// FakeQuant.
  kQuantizer = 1 << 0,
  /// Variable, Constant: what never changes while a graph runs.
  kParameter = 1 << 1,
  /// Sums products of its input with weights: Conv2D, DepthwiseConv2d, MatMul.
  kLayer = 1 << 2,
  /// Only clamps, so that the op before it needs no range of its own: Relu, Relu6, Clip.
  kClamp = 1 << 3,
  /// The output has the range of input 0: MaxPool, Reshape, Identity, Slice, Pad (zero is exact in every range), ...
  kKeepsRange = 1 << 4,
  /// Outside of layers the output gets a range of its own: Add, Mul, AvgPool, Relu, ...
  kRequantized = 1 << 5,
  /// Requantized ops that RewriteOptions::float_pools leaves alone: AvgPool, Mean, Concat.
  kPool = 1 << 6,
  /// May lie between a layer and the batch norm that is folded into it: Identity, Reshape, BatchToSpaceND.
  kBeforeBatchNorm = 1 << 7,
  /// An elementwise function, which among integers is a table: Sigmoid, HardSwish, LeakyRelu.
  kTable = 1 << 8,
  /// Computes what a folded batch norm multiplies and adds: BatchNormFold, BatchNormCorrection, BatchNormScale.
  kFold = 1 << 9,
  /// How it rounds (judge/exact_op.h): it only moves numbers, sums products of them (or moves and scales), or chooses
  /// among them. A type without one of these rounds otherwise.
  kMoves = 1 << 10,
  kSumsProducts = 1 << 11,
  kChooses = 1 << 12,
};

constexpr OpRole operator|(OpRole a, OpRole b) {
  return static_cast<OpRole>(static_cast<std::uint16_t>(a) | static_cast<std::uint16_t>(b));
}

/// Whether the node's type has one of the roles.
bool has_role(const Node& node, OpRole roles);
bool has_role(std::string_view type, OpRole roles);
/// [low, high): where an op's results lie whatever it reads. Its quantizer does not observe them but takes this range,
/// up to a step below `high`: at b bits the scale is (high - low) 2^-b, which is what TensorFlow Lite asks for.
struct OutputRange {
  double low = 0;
  double high = 1;

  /// The last number at this number of bits.
  double last(int bits) const { return high - (high - low) / static_cast<double>(1 << bits); }
};
std::optional<OutputRange> output_range(std::string_view type);

/// The types that have one of the roles.
std::vector<std::string_view> types_with(OpRole roles);
/// source_through() and uses_through() of graph_matcher.h, through ops of these roles.
Output source_through(Output tensor, OpRole roles);
std::vector<Use> uses_through(Output tensor, OpRole roles);

inline bool is_quantizer(const Node& node) { return has_role(node, OpRole::kQuantizer); }
inline bool is_parameter(const Node& node) { return has_role(node, OpRole::kParameter); }
inline bool is_layer(const Node& node) { return has_role(node, OpRole::kLayer); }
inline bool is_clamp(const Node& node) { return has_role(node, OpRole::kClamp); }
inline bool keeps_range(const Node& node) { return has_role(node, OpRole::kKeepsRange); }
inline bool is_requantized(const Node& node) { return has_role(node, OpRole::kRequantized); }
inline bool is_pool(const Node& node) { return has_role(node, OpRole::kPool); }
inline bool is_fold(const Node& node) { return has_role(node, OpRole::kFold); }

// What a node means depends on more than its type where a parameter or a layer is beside it.

/// A BatchNorm that is part of no layer (fold/folded_layer.h).
bool is_unfolded_batch_norm(const Node& node);

/// The input x of an op that scales and shifts each number of one tensor, y = factor x + offset, because its other
/// operand is a parameter: Add, Sub and Mul with the parameter on either side, Div by one, BiasAdd; a BatchNorm that is
/// part of no layer, which scales and shifts each channel in evaluation. None for any other node. Whether the parameter
/// fits an integer model (one number, or one for each channel), conversion decides.
std::optional<int> scale_shift_input(const Node& node);

/// Whether the node's output, outside of layers, gets a range of its own: OpRole::kRequantized, or a scale and shift.
bool gets_range(const Node& node);

/// What a clamp (OpRole::kClamp) clamps to: Relu to [0, infinity], Relu6 to [0, 6], Clip to its attributes.
Range<float> clamp_bounds(const Op& clamp);

/// The range within `outer` that a clamp to `inner` leaves: [outer.min, outer.max] with each end clamped.
Range<float> limited(Range<float> outer, Range<float> inner);

}  // namespace miniqat::quantize
