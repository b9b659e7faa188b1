#include <algorithm>
#include <cmath>
#include <set>

#include "importers/onnx/ops.h"
#include "importers/onnx/windows.h"
#include "layers/mean.h"
#include "layers/parts.h"
#include "layers/pool.h"
#include "layers/reshape.h"

namespace miniqat::importers {
namespace {

OnnxWindow pool_window(const OnnxNode& node, const Activation& x) {
  if (!node.has("kernel_shape")) node.refuse("has no kernel_shape");
  OnnxWindow window = read_window(node, x, {});
  if (window.dilations != std::array<std::int64_t, 2>{1, 1})
    node.refuse("pools dilated windows, which miniqat does not have");
  return window;
}

Output largest_of_space(Translation& t, const std::string& scope, Output x, bool keeps) {
  const Shape& images = x.shape();
  const Output y = layers::max_pool(t.graph(), t.name(scope, "MaxPool"), x, {.window = {images[1], images[2]}});
  return keeps ? y : layers::reshape(t.graph(), t.name(scope, "Reshape"), y, {.shape = {images[0], images[3]}});
}

/// The mean, or the largest number, over our axes 1 and 2, whatever axes of ONNX's they are.
void reduce_space(Translation& t, const OnnxNode& node, Activation x, bool keeps, bool to_mean) {
  const std::string scope = t.scope_of(node);
  x.output = to_mean ? layers::mean(t.graph(), t.name(scope, "Mean"), x.output, {.axes = {1, 2}, .keep_dims = keeps})
                     : largest_of_space(t, scope, x.output, keeps);
  const auto channels = static_cast<std::size_t>(std::ranges::find(x.order, 3) - x.order.begin());
  if (!keeps)
    return t.define(node,
                    Activation{.output = x.output, .extents = {x.extents[0], x.extents[channels]}, .order = {0, 1}});
  for (std::size_t axis = 1; axis < x.extents.size(); ++axis)
    if (axis != channels) x.extents[axis] = 1;
  t.define(node, std::move(x));
}

/// Zeros that are no border of images, which a convolution could add: more channels, or rows of a matrix.
void pad_axes(Translation& t, const OnnxNode& node, Activation x, const std::vector<std::int64_t>& pads) {
  const std::size_t rank = x.extents.size();
  layers::PadAttributes attributes{
      .paddings = std::vector<std::array<std::int64_t, 2>>(static_cast<std::size_t>(x.output.shape().rank()))};
  for (std::size_t axis = 0; axis < rank; ++axis) {
    attributes.paddings[static_cast<std::size_t>(x.order[axis])] = {pads[axis], pads[rank + axis]};
    if (axis > 0) x.extents[axis] += pads[axis] + pads[rank + axis];
  }
  x.output = layers::pad(t.graph(), t.name(t.scope_of(node), "Pad"), x.output, attributes);
  t.define(node, std::move(x));
}

}  // namespace

void import_max_pool(Translation& t, const OnnxNode& node) {
  if (node.outputs() > 1 && !node.output(1).empty()) node.refuse("gives the places of maxima, which miniqat does not");
  // The order of the places, which nobody asks for.
  node.ignore("storage_order");
  const Activation x = t.images(node, 0);
  const OnnxWindow window = pool_window(node, x);
  const Output y = layers::max_pool(t.graph(), t.name(t.scope_of(node), "MaxPool"), x.output, window.pool());
  t.define(node, images_like(x, y));
}

void import_average_pool(Translation& t, const OnnxNode& node) {
  Activation x = t.images(node, 0);
  OnnxWindow window = pool_window(node, x);
  const std::string scope = t.scope_of(node);
  if (node.integer("count_include_pad", 0) != 0) {
    // Zeros that count are pixels of an image with a border. Those that ceil_mode adds never count.
    Pads counted = window.pads;
    for (std::size_t side = 0; side < counted.size(); ++side) counted[side] -= window.beyond[side];
    if (counted != Pads{0, 0, 0, 0}) x.output = padded(t.graph(), t.name(scope, "Pad"), x.output, counted);
    window.pads = window.beyond;
  }
  const Output y = layers::avg_pool(t.graph(), t.name(scope, "AvgPool"), x.output, window.pool());
  t.define(node, images_like(x, y));
}

void import_global_pool(Translation& t, const OnnxNode& node) {
  reduce_space(t, node, t.images(node, 0), true, node.type() == "GlobalAveragePool");
}

void import_reduce(Translation& t, const OnnxNode& node) {
  const std::vector<std::int64_t> axes =
      node.opset() >= 18 && t.has(node, 1) ? t.integers(node, 1) : node.integers("axes");
  const bool empty_is_none = node.integer("noop_with_empty_axes", 0) != 0, keeps = node.integer("keepdims", 1) != 0;
  Activation x = t.activation(node, 0);
  const auto rank = std::ssize(x.order);
  std::set<std::int64_t> ours;
  for (const std::int64_t axis : axes)
    if (axis >= -rank && axis < rank) ours.insert(x.order[static_cast<std::size_t>((axis + rank) % rank)]);
  const std::set<std::int64_t> space = rank == 4 ? std::set<std::int64_t>{1, 2} : std::set<std::int64_t>{1};
  if (empty_is_none || x.output.shape().rank() != 4 || axes.size() != space.size() || ours != space)
    node.refuse("is not over the height and width of images or the steps of sequences; only that is imported");
  reduce_space(t, node, std::move(x), keeps, node.type() == "ReduceMean");
}

void import_pad(Translation& t, const OnnxNode& node) {
  const std::string mode = node.text("mode", "constant");
  const bool as_inputs = node.opset() >= 11;
  std::vector<std::int64_t> pads = as_inputs ? t.integers(node, 1) : node.integers("pads");
  double fill = as_inputs ? 0 : node.number("value", 0);
  if (as_inputs && t.has(node, 2)) {
    const Literal& value = t.literal(node, 2);
    fill = value.is_real() && value.elements() == 1 ? value.reals()[0] : NAN;
  }
  if (t.has(node, 3)) node.refuse("names its axes, which is not imported");
  Activation x = t.bordered(node, 0);
  const std::size_t rank = x.extents.size();
  if (pads.size() != 2 * rank) node.refuse("has ", counted(pads.size(), "pad"), " for ", counted(rank, "axis"));
  if (std::ranges::all_of(pads, [](std::int64_t pad) { return pad == 0; })) return t.define(node, x);
  x = t.activation(node, 0);
  const auto beyond = [](std::int64_t pad) { return pad < 0 || pad > kMostWindowPixels; };
  if (mode != "constant" || fill != 0 || std::ranges::any_of(pads, beyond) || pads[0] + pads[rank] != 0 ||
      !x.columns.empty())
    node.refuse("is not a border of zeros, the only one that is imported");
  if (!is_spatial(x.order) || pads[1] + pads[rank + 1] != 0) return pad_axes(t, node, std::move(x), pads);
  for (std::size_t axis = 2; axis < rank; ++axis) {
    x.border[axis - 2] = pads[axis];
    x.border[axis] = pads[rank + axis];
    x.extents[axis] += pads[axis] + pads[rank + axis];
  }
  t.becomes("the padding of what reads it, or a Pad before it");
  t.define(node, std::move(x));
}

}  // namespace miniqat::importers
