#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/shape.h"
#include "core/window.h"
#include "integer/arithmetic.h"

namespace miniqat::integer {

// An integer-only model: what quantize/convert/convert.h makes of a trained run, integer/engine.h runs and the
// exporters write. Plain data. All shapes are of one example; a batch puts its size before them. Images are [h, w, c].

/// A tensor of integers in [0, 2^grid.bits - 1], one byte each.
struct TensorInfo {
  /// The tensor of the evaluation graph that has the same numbers ("conv1/act_quant", "pool1/MaxPool"). Unique;
  /// printable ASCII, as are the names of operations.
  std::string name;
  Shape shape;
  Grid grid;
};

enum class LayerKind { kConv2d, kDepthwiseConv2d, kFullyConnected };
inline constexpr std::array<std::string_view, 3> kLayerKindNames = {"Conv2D", "DepthwiseConv2d", "FullyConnected"};

/// sum = bias[o] + sum over taps and input channels of (x - zero point of x) * (w - zero point of w) *
/// 2^weight_shift(); what falls on padding counts nothing. y = requantize(sum, multiplier). Output channel o of a
/// depthwise layer reads input channel o / filter[3].
struct Layer {
  LayerKind kind = LayerKind::kConv2d;
  /// Over images; as it is by default (all 1) for fully connected layers.
  Window2d window = {};
  /// Conv2D [kh, kw, in, out], DepthwiseConv2d [kh, kw, in, multiplier], FullyConnected [in, out].
  Shape filter = {};
  /// 2..8.
  int weight_bits = 8;
  /// In the filter's row-major order, each in [0, 2^weight_bits - 1]. (Narrow range: 0 is not used.)
  std::vector<std::uint8_t> weights = {};
  /// One for all, or one for each output channel.
  std::vector<float> weight_scales = {};
  /// As many as weight_scales, each in [0, 2^weight_bits - 1].
  std::vector<std::int32_t> weight_zero_points = {};
  /// One for each output channel, at scale (input's scale) * (unit scale).
  std::vector<std::int32_t> bias = {};
  /// As many as weight_scales: input's scale * unit scale / output's scale.
  std::vector<Multiplier> multipliers = {};

  std::int64_t output_channels() const {
    return kind == LayerKind::kDepthwiseConv2d ? filter[2] * filter[3] : filter[-1];
  }
  bool per_channel() const { return weight_scales.size() > 1; }
  float weight_scale(std::int64_t channel) const { return weight_scales[per_channel() ? channel : 0]; }
  std::int32_t weight_zero_point(std::int64_t channel) const { return weight_zero_points[per_channel() ? channel : 0]; }
  const Multiplier& multiplier(std::int64_t channel) const { return multipliers[per_channel() ? channel : 0]; }

  /// Sums are counted in units of a 2^weight_shift()-th of the weights' scale: fewer bits make larger steps, on whose
  /// scale biases would be rounded too coarsely.
  int weight_shift() const { return std::max(0, 7 - weight_bits); }
  float unit_scale(std::int64_t channel) const {
    return weight_scale(channel) / static_cast<float>(1 << weight_shift());
  }
  /// As many as weight_scales.
  std::vector<float> unit_scales() const;
  /// Weight i of the filter less its zero point, in units: within +-127 for up to 7 bits, within +-255 for 8.
  std::int32_t weight_units(std::int64_t i) const {
    return (weights[i] - weight_zero_point(i % output_channels())) * (1 << weight_shift());
  }
};

/// y = the sum over inputs i of (x_i - zero point of x_i) * mantissa_i, shifted: two inputs of one shape. The
/// multipliers are the nearest to input's scale / output's scale.
struct Add {
  SharedMultipliers multipliers;
};

/// y = (a - zero point of a) * (b - zero point of b) * multiplier: two inputs of as many axes as the output. An axis of
/// an input on which it has 1 place is stretched to the other's extent: factors [1, 1, c] stand for every pixel of an
/// image [h, w, c].
struct Mul {
  Multiplier multiplier;
};

/// y = (x - zero point of x) * multiplier: from one grid to another, or a Relu on its own.
struct Rescale {
  Multiplier multiplier;
};

/// The inputs one behind another along an axis, each brought to the output's grid as by Rescale.
struct Concat {
  /// Of an example: 0 .. rank - 1.
  int axis = 0;
  /// One for each input.
  std::vector<Multiplier> multipliers;
};

/// The mean of the pixels in every window, without padding: sum of (x - zero point of x) * multiplier[count - 1]. From
/// [h, w, c] to [oh, ow, c], or to [c] where there is one window: Mean over height and width is this, too.
struct AveragePool {
  Window2d window;
  /// For each number of pixels from 1 to the window's size: input's scale / (output's scale * number).
  std::vector<Multiplier> multipliers;
};

/// The largest integer in every window, padding left out; input and output have one grid.
struct MaxPool {
  Window2d window;
};

/// The same integers under another shape.
struct Reshape {};

/// The input with borders of its zero point.
struct Pad {
  /// Before and after, one pair for each axis of an example.
  std::vector<std::array<std::int64_t, 2>> paddings;
};

/// A part of the input: of each axis the integers at start, start + step, ..., as many as the output has.
struct Slice {
  /// One of each for each axis of an example.
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> steps;
};

/// y = table[x]: a function of one real number, element by element, between the grids of input and output. (An integer
/// beyond the input's grid, which no model makes, counts as its last.)
struct Lookup {
  /// The name of the table's function ("Sigmoid"), by the rules for names of tensors. A format with an operator for it
  /// may write that.
  std::string function;
  /// One for each integer of the input's grid, 2^bits, each within the operation's clamp.
  std::vector<std::uint8_t> table = {};
};

using Action = std::variant<Layer, Add, Mul, Rescale, Concat, AveragePool, MaxPool, Reshape, Pad, Lookup, Slice>;

struct Operation {
  /// The evaluation graph's node that it comes from ("conv1/Conv2D_Fold").
  std::string name;
  Action action;
  /// Indices into Model::tensors.
  std::vector<int> inputs;
  int output = 0;
  /// Those of MaxPool, Reshape, Pad and Slice do nothing.
  Clamp clamp = {};
};

/// "Conv2D", "Add", ... for messages and files.
std::string_view type_name(const Action& action);

struct Model {
  /// For messages and comments: UTF-8 without control characters.
  std::string name;
  /// The input first.
  std::vector<TensorInfo> tensors = {};
  /// In an order in which they can run. Every tensor but the input is the output of exactly one.
  std::vector<Operation> operations = {};
  int input = 0;
  int output = 0;
  /// One for each number of the output, where the model is a classifier and the names of its classes are known: UTF-8
  /// without control characters.
  std::vector<std::string> class_names = {};

  const TensorInfo& tensor(int i) const { return tensors[static_cast<std::size_t>(i)]; }
  const TensorInfo& input_of(const Operation& operation, std::size_t i = 0) const {
    return tensor(operation.inputs[i]);
  }
  const TensorInfo& output_of(const Operation& operation) const { return tensor(operation.output); }

  /// Throws Error naming the operation and the rule if the model breaks a rule of this header: indices, shapes, sizes,
  /// ranges of integers, equal grids where the header asks for one. No sum of a layer may leave 32 bits for any input.
  /// Engine, files and exporters rely on it.
  void check() const;

  /// Bytes of all weights packed to their bits (integer/packing.h), without biases.
  std::int64_t weight_bytes() const;
  std::int64_t multiply_adds() const;
};

}  // namespace miniqat::integer
