#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "layers/conv2d.h"

namespace miniqat::layers {

using DepthwiseConv2dAttributes = Conv2dAttributes;

/// Convolves every channel by itself, with `multiplier` filters each.
/// Inputs x [n, h, w, in] and filter [kh, kw, in, multiplier]; output [n, oh, ow, in * multiplier], all float32:
///   y[n, oy, ox, i*multiplier + m] = sum over ky, kx of x[n, oy*stride - pad + ky*dilation, ..., i]
///                                                       * filter[ky, kx, i, m].
struct DepthwiseConv2d {
  static constexpr std::string_view kType = "DepthwiseConv2d";
  using Attributes = DepthwiseConv2dAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output depthwise_conv2d(Graph& graph, const std::string& name, Output x, Output filter,
                        const DepthwiseConv2dAttributes& attributes = {});

}  // namespace miniqat::layers
