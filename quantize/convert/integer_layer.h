#pragma once

#include <span>

#include "core/graph/graph.h"
#include "core/tensors/shape.h"
#include "core/tensors/tensor.h"
#include "core/tensors/window.h"
#include "integer/model.h"
#include "layers/space_to_batch.h"
#include "quantize/convert/integer_scale_shift.h"

namespace miniqat::quantize {

/// Fills in a layer's weights, bits, weight scales and zero points from its quantizer, which reads the float weights
/// `x` and has the stored ranges `min` and `max`. The layer's kind is set; its filter becomes x's shape, or that of x
/// transposed for a matrix product that takes it so. Throws what grids_of() throws, and Error naming the quantizer
/// when its ranges are not one for each output channel.
void quantize_weights(integer::Layer& layer, const Node& quantizer, const Tensor& x, const Tensor& min,
                      const Tensor& max, bool transposed = false);

/// What other operations must do for a layer's biases, because a unit of its sums is too coarse for them.
struct BiasHelp {
  /// Before it: the input on a grid finer by this power of two, which 8 bits hold.
  int input_shift = 0;
  /// Behind it, unless it is empty: what makes the results of the layer's. The layer writes units_grid() then.
  ScaleShift scale_shift = {};
};

/// The grid between a layer and the scale and shift behind it: the output's steps and zero point, in 8 bits.
integer::Grid units_grid(const integer::Grid& output);

/// Fills in biases and multipliers of a layer whose weights are there, for an input and an output on these grids.
/// `bias` holds a real number for each output channel.
///
/// A bias is an integer at scale (input's) * (weights' unit), which takes weights of a reasonable scale. If all weights
/// of a range are 0, the scale has no meaning and becomes one that suits the biases. Weights so small that the bias
/// does not fit 32 bits (a channel that training has all but switched off) are put on a coarser grid. Less than a step
/// of the output is lost then, because the bias is far larger than all of them.
///
/// `input_is_zero`: the input has an empty grid and is 0 whatever the picture. Its scale says nothing then, nor does
/// that of the weights, which becomes one that suits the biases; the integers of the weights stay.
///
/// Where rounding to whole units would move a bias by more than a quarter of the output's step, it first asks for a
/// finer input, if its grid has fewer than 8 bits. Where that is not enough, the layer adds whole units only, which are
/// whole steps of its output, and a scale and shift behind it makes the output's steps of them and adds the rest of the
/// bias. Both together round once. (A unit of up to 1.004 steps has no such form on an output of 8 bits; its rounding
/// moves a result by half a step at most.)
BiasHelp finish_layer(integer::Layer& layer, std::span<const double> bias, const integer::Grid& input,
                      const integer::Grid& output, bool input_is_zero = false);

/// a * b / output for scales: in float32, that is the number by which other runtimes multiply, unless the product is
/// too small or too large for float32.
double scale_ratio(float a, float b, float output);

/// `real`, or a number that both kinds of multipliers can be: with that, a step of the input is already far more than
/// the output's grid holds.
double multiplier_in_range(double real);

/// SpaceToBatchND, a convolution of the blocks, BatchToSpaceND: as one dilated convolution.
struct Atrous {
  /// [n, h, w, c] before the SpaceToBatchND.
  Shape images;
  layers::SpaceToBatchAttributes to_batch;
  /// The convolution's window over the blocks.
  Window2d window = {};
};

/// The window over the images themselves. Throws Error (to be completed with the node's name) where there is none:
/// strides other than 1, other blocks than the images were dealt out to, crops beyond the paddings.
Window2d dilated_window(const Atrous& atrous, const layers::BatchToSpaceAttributes& to_space);

}  // namespace miniqat::quantize
