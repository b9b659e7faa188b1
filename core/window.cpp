#include "core/window.h"

#include <algorithm>

#include "core/error.h"

namespace miniqat {
namespace {

/// Keeps every product of extents, strides and dilations far from overflow, here and inside oneDNN (which uses int).
constexpr std::int64_t kMaxExtent = 65536;

void require_range(const std::array<std::int64_t, 2>& pair, std::string_view name) {
  for (const std::int64_t value : pair)
    if (value < 1 || value > kMaxExtent)
      fail(name, " must be in 1..", kMaxExtent, ", got [", pair[0], ",", pair[1], "]");
}

WindowAxis slide_axis(std::int64_t input, const WindowAttributes& attributes, int axis) {
  WindowAxis result;
  result.input = input;
  result.window = attributes.window[axis];
  result.stride = attributes.strides[axis];
  result.dilation = attributes.dilations[axis];
  const std::int64_t extent = (result.window - 1) * result.dilation + 1;
  if (extent > kMaxExtent)
    fail("a window of ", result.window, " with dilation ", result.dilation, " spans more than ", kMaxExtent);
  if (attributes.padding == Padding::kValid) {
    // The last partial stride is dropped; below 0 there is not even one window.
    result.output = input < extent ? 0 : (input - extent) / result.stride + 1;
    return result;
  }
  result.output = (input + result.stride - 1) / result.stride;
  const std::int64_t pad = std::max<std::int64_t>((result.output - 1) * result.stride + extent - input, 0);
  result.pad_before = pad / 2;
  result.pad_after = pad - result.pad_before;
  return result;
}

}  // namespace

Window2d slide(const Shape& images, const WindowAttributes& attributes) {
  require_range(attributes.window, "window");
  require_range(attributes.strides, "strides");
  require_range(attributes.dilations, "dilations");
  const Window2d result = {.rows = slide_axis(images[1], attributes, 0),
                           .columns = slide_axis(images[2], attributes, 1)};
  if (result.rows.output == 0 || result.columns.output == 0)
    fail("no window fits into the image with VALID padding; input ", images, ", window [", attributes.window[0], ",",
         attributes.window[1], "], dilations [", attributes.dilations[0], ",", attributes.dilations[1], "]");
  return result;
}

void require_elements(std::span<const TensorSpec> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].shape.elements() == 0) fail("input ", i, " is empty; its shape is ", inputs[i].shape);
}

}  // namespace miniqat
