#include "importers/onnx/windows.h"

#include <algorithm>

namespace miniqat::importers {
namespace {

constexpr std::int64_t kMostPixels = kMostWindowPixels;

/// `axes` numbers, 1 or 2; of one the width's is 1.
std::array<std::int64_t, 2> pair_of(const OnnxNode& node, const std::string& name, std::size_t axes,
                                    std::vector<std::int64_t> otherwise) {
  const std::vector<std::int64_t> list = node.integers(name, axes, std::move(otherwise));
  for (const std::int64_t number : list)
    if (number < 1 || number > kMostPixels) node.refuse("has ", name, " out of 1..", kMostPixels);
  return {list[0], axes == 2 ? list[1] : 1};
}

struct Axis {
  std::int64_t input, reach, stride;
};

std::array<std::int64_t, 2> same_padding(const Axis& axis, bool lower) {
  const std::int64_t outputs = (axis.input + axis.stride - 1) / axis.stride;
  const std::int64_t all = std::max<std::int64_t>((outputs - 1) * axis.stride + axis.reach - axis.input, 0);
  return lower ? std::array{all - all / 2, all / 2} : std::array{all / 2, all - all / 2};
}

/// As many more pixels as make the last window whole that ceil_mode counts: one that begins inside the image or the
/// padding before it.
std::int64_t ceil_padding(const Axis& axis, std::int64_t before, std::int64_t after) {
  const std::int64_t room = axis.input + before + after - axis.reach;
  if (room < 0) return after;
  std::int64_t last = (room + axis.stride - 1) / axis.stride;
  if (last * axis.stride >= axis.input + before) --last;
  return std::max(after, last * axis.stride + axis.reach - axis.input - before);
}

}  // namespace

bool OnnxWindow::meets_image() const {
  for (std::size_t side = 0; side < pads.size(); ++side)
    if (pads[side] > (window[side % 2] - 1) * dilations[side % 2]) return false;
  return true;
}

bool OnnxWindow::take_border(const Pads& border) {
  Pads sum = pads;
  for (std::size_t side = 0; side < sum.size(); ++side) {
    sum[side] += border[side];
    if (border[side] > 0 && sum[side] > (window[side % 2] - 1) * dilations[side % 2]) return false;
  }
  pads = sum;
  return true;
}

layers::Conv2dAttributes OnnxWindow::convolution() const {
  return {.strides = strides,
          .padding = is_padded() ? Padding::kExplicit : Padding::kValid,
          .dilations = dilations,
          .pads = pads};
}

layers::PoolAttributes OnnxWindow::pool() const {
  return {.window = window,
          .strides = strides,
          .padding = is_padded() ? Padding::kExplicit : Padding::kValid,
          .pads = pads};
}

OnnxWindow read_window(const OnnxNode& node, const Activation& x, const std::vector<std::int64_t>& kernel) {
  const std::size_t axes = x.extents.size() - 2;
  const std::vector<std::int64_t> ones(axes, 1);
  OnnxWindow result{.window = pair_of(node, "kernel_shape", axes, kernel),
                    .strides = pair_of(node, "strides", axes, ones),
                    .dilations = pair_of(node, "dilations", axes, ones),
                    .pads = {}};
  if (!kernel.empty() && !std::equal(kernel.begin(), kernel.end(), result.window.begin()))
    node.refuse("has a kernel_shape that is not its filter's");
  const std::vector<std::int64_t> pads = node.integers("pads", 2 * axes, std::vector<std::int64_t>(2 * axes, 0));
  const std::string automatic = node.text("auto_pad", "NOTSET");
  const bool ceils = kernel.empty() && node.integer("ceil_mode", 0) != 0;
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  if (!same && automatic != "NOTSET" && automatic != "VALID") node.refuse("has an unknown auto_pad");
  if (ceils && automatic == "VALID")
    node.refuse("has both ceil_mode and the auto_pad VALID, which contradict each other");
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const Axis geometry = {.input = x.extents[axis + 2],
                           .reach = (result.window[axis] - 1) * result.dilations[axis] + 1,
                           .stride = result.strides[axis]};
    std::array<std::int64_t, 2> around = {pads[axis], pads[axis + axes]};
    if (around[0] < 0 || around[1] < 0 || around[0] > kMostPixels || around[1] > kMostPixels)
      node.refuse("has pads out of 0..", kMostPixels);
    if (automatic == "VALID") around = {0, 0};
    if (same) around = same_padding(geometry, automatic == "SAME_LOWER");
    if (ceils) {
      const std::int64_t all = ceil_padding(geometry, around[0], around[1]);
      result.beyond[axis + 2] = all - around[1];
      around[1] = all;
    }
    result.pads[axis] = around[0];
    result.pads[axis + 2] = around[1];
  }
  return result;
}

Activation images_like(const Activation& x, Output output) {
  const Shape& shape = output.shape();
  if (x.extents.size() == 3)
    return {.output = output, .extents = {x.extents[0], shape[3], shape[1]}, .order = kSequenceOrder};
  return {.output = output, .extents = {x.extents[0], shape[3], shape[1], shape[2]}, .order = kImageOrder};
}

}  // namespace miniqat::importers
