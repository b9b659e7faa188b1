#pragma once

#include <array>
#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "core/tensors/window.h"

namespace miniqat::layers {

/// Each pair is [h, w].
struct PoolAttributes {
  std::array<std::int64_t, 2> window = {2, 2};
  /// [0, 0], the default, means strides equal to the window.
  std::array<std::int64_t, 2> strides = {0, 0};
  /// Unlike convolutions, pools default to VALID: no padding.
  Padding padding = Padding::kValid;
  /// With Padding::kExplicit.
  Pads pads = {0, 0, 0, 0};

  void visit(AttributeVisitor& visitor) {
    visitor.field("window", window);
    visitor.field("strides", strides);
    visitor.choice("padding", padding, kPaddingNames);
    visitor.field("pads", pads);
  }
};

/// The largest value in every window: x [n, h, w, c] float32 to [n, oh, ow, c]. Padding never wins. Of equal values the
/// first in the window's row-major order gets the gradient. A NaN in the window gives NaN.
struct MaxPool {
  static constexpr std::string_view kType = "MaxPool";
  using Attributes = PoolAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

/// The mean of every window: x [n, h, w, c] float32 to [n, oh, ow, c]. Padding does not count, neither as a value nor
/// in the divisor.
struct AvgPool {
  static constexpr std::string_view kType = "AvgPool";
  using Attributes = PoolAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

/// The window that a pool lays over images [n, h, w, c]. Throws what slide() throws.
Window2d window_of(const Shape& images, const PoolAttributes& attributes);

inline Output max_pool(Graph& graph, const std::string& name, Output x, const PoolAttributes& attributes = {}) {
  return graph.add<MaxPool>(name, {x}, attributes);
}
inline Output avg_pool(Graph& graph, const std::string& name, Output x, const PoolAttributes& attributes = {}) {
  return graph.add<AvgPool>(name, {x}, attributes);
}

}  // namespace miniqat::layers
