#pragma once

#include <cstdint>
#include <vector>

#include "core/window.h"
#include "exporters/onnx/graph.h"

namespace miniqat::exporters {

// Not for users of the library. ONNX wants images as [n, c, h, w]; ours are [n, h, w, c]. Every tensor of four axes,
// the batch among them, is taken for images.

inline const std::vector<std::int64_t> kToChannelsFirst = {0, 3, 1, 2};
inline const std::vector<std::int64_t> kToChannelsLast = {0, 2, 3, 1};

/// The place in ONNX's tensor of axis `axis` of ours, of `rank` axes with the batch.
std::int64_t onnx_axis(int rank, std::int64_t axis);

/// The rows, or columns, behind those that the last window sees; negative: how far it reaches over the image.
std::int64_t unread(const WindowAxis& axis);

/// kernel_shape, strides and pads. ONNX derives the number of windows, rounding down: the pads give exactly those that
/// there are, if fewer than a stride of rows and columns is unread.
std::vector<OnnxAttribute> window_attributes(const Window2d& window);

/// The same with dilations.
std::vector<OnnxAttribute> dilated_window_attributes(const Window2d& window);

}  // namespace miniqat::exporters
