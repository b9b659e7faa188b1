#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "layers/conv2d.h"

namespace miniqat::testing {

/// A convolution but for its channels.
struct ConvolutionCase {
  /// [n, h, w].
  std::array<std::int64_t, 3> images;
  std::array<std::int64_t, 2> window;
  layers::Conv2dAttributes attributes;

  Shape x(std::int64_t channels) const { return {images[0], images[1], images[2], channels}; }
  Shape filter(std::int64_t in, std::int64_t out) const { return {window[0], window[1], in, out}; }
  /// For failures. `in` and `out` as in filter().
  std::string text(std::int64_t in, std::int64_t out) const {
    return concat("images ", x(in), ", filter ", filter(in, out), ", strides ", attributes.strides[0], "x",
                  attributes.strides[1], ", dilations ", attributes.dilations[0], "x", attributes.dilations[1], " ",
                  kPaddingNames[static_cast<int>(attributes.padding)], ", ", thread_count(), " threads");
  }
};

}  // namespace miniqat::testing
