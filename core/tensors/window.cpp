#include "core/tensors/window.h"

#include <algorithm>

#include "core/text/error.h"

namespace miniqat {
namespace {

void require_range(const std::array<std::int64_t, 2>& pair, std::string_view name) {
  for (const std::int64_t value : pair)
    if (value < 1 || value > kMostWindowPixels)
      fail(name, " must be in 1..", kMostWindowPixels, ", got [", pair[0], ",", pair[1], "]");
}

void require_pads(const Pads& pads, std::int64_t extent, int axis) {
  for (const std::int64_t pad : {pads[axis], pads[axis + 2]})
    if (pad < 0 || pad >= extent)
      fail("pads must be at least 0 and less than the window, which spans ", extent, " pixels of this axis; got [",
           pads[0], ",", pads[1], ",", pads[2], ",", pads[3], "] (top, left, bottom, right)");
}

WindowAxis slide_axis(std::int64_t input, const WindowAttributes& attributes, int axis) {
  WindowAxis result;
  result.input = input;
  result.window = attributes.window[axis];
  result.stride = attributes.strides[axis];
  result.dilation = attributes.dilations[axis];
  const std::int64_t extent = (result.window - 1) * result.dilation + 1;
  if (extent > kMostWindowPixels)
    fail("a window of ", result.window, " with dilation ", result.dilation, " spans more than ", kMostWindowPixels);
  const std::int64_t before = attributes.pads[axis];
  const std::int64_t after = attributes.pads[axis + 2];
  if (attributes.padding != Padding::kSame) {
    require_pads(attributes.pads, extent, axis);
    // The last partial stride is dropped; below 0 there is not even one window.
    const std::int64_t padded = before + input + after;
    result.output = padded < extent ? 0 : (padded - extent) / result.stride + 1;
    result.pad_before = before;
    result.pad_after = std::max<std::int64_t>((result.output - 1) * result.stride + extent - before - input, 0);
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
  if (attributes.padding != Padding::kExplicit && attributes.pads != Pads{0, 0, 0, 0})
    fail("pads count only with the padding \"EXPLICIT\", not with \"",
         kPaddingNames[static_cast<int>(attributes.padding)], '"');
  const Window2d result = {.rows = slide_axis(images[1], attributes, 0),
                           .columns = slide_axis(images[2], attributes, 1)};
  if (result.rows.output == 0 || result.columns.output == 0)
    fail("no window fits into the image with ", kPaddingNames[static_cast<int>(attributes.padding)], " padding; input ",
         images, ", window [", attributes.window[0], ",", attributes.window[1], "], dilations [",
         attributes.dilations[0], ",", attributes.dilations[1], "]");
  return result;
}

}  // namespace miniqat
