#pragma once

#include <optional>
#include <string>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "integer/model.h"
#include "quantize/convert/not_quantized.h"

namespace miniqat::quantize {

struct ConvertOptions {
  /// The grid of the graph's input, where it has no quantizer of its own: the data set's, whose bytes are its integers.
  /// None: the input is of numbers, and must have one.
  std::optional<integer::Grid> input = integer::Grid{.scale = 1.0f / 255, .zero_point = 0, .bits = 8};
  /// The model's name.
  std::string name = "model";
  /// Leaves out a Softmax at the end, which does not change the order of classes; else it is refused.
  bool leaves_out_softmax = true;
  /// Takes ranges that never saw a number: whether a graph can become integers does not depend on them.
  bool ranges_to_come = false;
};

/// Makes an integer-only model of an evaluation graph (create_eval_graph) and the values of its variables; docs/
/// integer-arithmetic.md derives the layer. Structure decides, never names. Every tensor of the model has the name of
/// the graph's tensor with the same numbers, once these are put on its grid. If the graph has no such tensor (a max
/// pool moved behind the Relu that follows it, a layer that two quantizers read), the name has a ':', which no node
/// has. Likewise operations and nodes. Dropout and Identity vanish; a Softmax at the end is left out (ConvertOptions);
/// SpaceToBatchND, a convolution and BatchToSpaceND are one dilated convolution. A Relu that no quantizer follows, and
/// a Concat of tensors on one grid, keep that grid.
///
/// The one difference to the graph but for float's own rounding: a layer's biases are rounded to integers, at the scale
/// of its input times that of its weights. At few bits that scale may be coarse beside the output's: an error of half
/// of Layer::multipliers in steps.
///
/// Throws NotQuantized that names the edge for a tensor without range. Throws Error for ops that have no integer
/// counterpart, more than one input or output, variables that are missing or not finite, quantizers of more than 8
/// bits, and quantizers whose range never saw a number: it is still
/// that of its initializer, which says nothing about the tensor.
integer::Model convert(const Graph& graph, const NamedTensors& variables, const ConvertOptions& options = {});

}  // namespace miniqat::quantize
