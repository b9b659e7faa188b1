#include "exporters/onnx/layout.h"

#include <algorithm>

namespace miniqat::exporters {

std::int64_t onnx_axis(int rank, std::int64_t axis) {
  if (rank != 4 || axis == 0) return axis;
  return axis == 3 ? 1 : axis + 1;
}

std::int64_t unread(const WindowAxis& axis) { return axis.input - 1 - axis.source(axis.output - 1, axis.window - 1); }

std::vector<OnnxAttribute> window_attributes(const Window2d& window) {
  std::vector<std::int64_t> kernel, strides, before, after;
  for (const WindowAxis& axis : {window.rows, window.columns}) {
    kernel.push_back(axis.window);
    strides.push_back(axis.stride);
    before.push_back(axis.pad_before);
    after.push_back(std::max<std::int64_t>(-unread(axis), 0));
  }
  return {
      {"kernel_shape", kernel}, {"strides", strides}, {"pads", std::vector{before[0], before[1], after[0], after[1]}}};
}

std::vector<OnnxAttribute> dilated_window_attributes(const Window2d& window) {
  std::vector<OnnxAttribute> attributes = window_attributes(window);
  attributes.emplace_back("dilations", std::vector{window.rows.dilation, window.columns.dilation});
  return attributes;
}

}  // namespace miniqat::exporters
