#pragma once

#include "importers/onnx/translation.h"
#include "layers/conv2d.h"
#include "layers/pool.h"

namespace miniqat::importers {

// Not for users of the library.

/// The window of a Conv or a pool, with its padding resolved to pixels.
struct OnnxWindow {
  std::array<std::int64_t, 2> window;
  std::array<std::int64_t, 2> strides;
  std::array<std::int64_t, 2> dilations;
  Pads pads;
  /// The part of the padding that only ceil_mode adds, so that the last window is whole.
  Pads beyond = {0, 0, 0, 0};

  /// Whether every window meets the image: no side has as many zeros as the window spans.
  bool meets_image() const;
  /// Adds zeros to the padding, unless it would reach the size of the window.
  bool take_border(const Pads& border);
  layers::Conv2dAttributes convolution() const;
  layers::PoolAttributes pool() const;
  bool is_padded() const { return pads != Pads{0, 0, 0, 0}; }
};

/// Reads kernel_shape, strides, dilations, pads, auto_pad and ceil_mode (which only pools have), over sequences of the
/// steps alone: the width is 1. Throws Error naming the node.
OnnxWindow read_window(const OnnxNode& node, const Activation& x, const std::vector<std::int64_t>& kernel);

/// ONNX's extents for images or sequences computed from x's.
Activation images_like(const Activation& x, Output output);

}  // namespace miniqat::importers
