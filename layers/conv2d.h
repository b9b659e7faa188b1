#pragma once

#include <array>
#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "core/tensors/window.h"

namespace miniqat::layers {

/// Each pair is [h, w].
struct Conv2dAttributes {
  std::array<std::int64_t, 2> strides = {1, 1};
  Padding padding = Padding::kSame;
  std::array<std::int64_t, 2> dilations = {1, 1};
  /// With Padding::kExplicit.
  Pads pads = {0, 0, 0, 0};

  void visit(AttributeVisitor& visitor) {
    visitor.field("strides", strides);
    visitor.choice("padding", padding, kPaddingNames);
    visitor.field("dilations", dilations);
    visitor.field("pads", pads);
  }
  friend bool operator==(const Conv2dAttributes&, const Conv2dAttributes&) = default;
};

/// 2-D convolution (cross-correlation, as everywhere in deep learning).
/// Inputs x [n, h, w, in] and filter [kh, kw, in, out]; output [n, oh, ow, out], all float32:
///   y[n, oy, ox, o] = sum over ky, kx, i of x[n, oy*stride - pad + ky*dilation, ox*stride - pad + kx*dilation, i]
///                                           * filter[ky, kx, i, o].
struct Conv2d {
  static constexpr std::string_view kType = "Conv2D";
  using Attributes = Conv2dAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

/// The window that a filter [kh, kw, ...] lays over images [n, h, w, c]. Throws what slide() throws.
Window2d window_of(const Shape& images, const Shape& filter, const Conv2dAttributes& attributes);
/// The window of a Conv2d or DepthwiseConv2d node.
Window2d window_of(const Node& convolution);

inline Output conv2d(Graph& graph, const std::string& name, Output x, Output filter,
                     const Conv2dAttributes& attributes = {}) {
  return graph.add<Conv2d>(name, {x, filter}, attributes);
}

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

inline Output depthwise_conv2d(Graph& graph, const std::string& name, Output x, Output filter,
                               const DepthwiseConv2dAttributes& attributes = {}) {
  return graph.add<DepthwiseConv2d>(name, {x, filter}, attributes);
}

}  // namespace miniqat::layers
