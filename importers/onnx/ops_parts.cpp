#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "importers/onnx/ops.h"
#include "layers/parts.h"

namespace miniqat::importers {
namespace {

/// Numbers first, first + step, ... of an axis.
struct Kept {
  std::int64_t first, count, step;
};
/// Kept parts by the axis, in ONNX's order.
using KeptOfAxes = std::map<std::int64_t, Kept>;

/// In place of the size of a batch that is open. No file has a batch as large.
constexpr std::int64_t kAnyBatch = INT32_MAX;

/// Axis in 0 .. rank - 1.
std::int64_t axis_of(const OnnxNode& node, std::int64_t axis, std::size_t axes) {
  const auto rank = static_cast<std::int64_t>(axes);
  if (axis < -rank || axis >= rank)
    node.refuse("cuts along the axis ", axis, "; its tensor has ", counted(rank, "axis"));
  return axis < 0 ? axis + rank : axis;
}

/// One axis of ONNX's Slice: start and end count from the end if negative, and stop at the axis's ends.
Kept kept_of(const OnnxNode& node, std::int64_t size, std::int64_t start, std::int64_t end, std::int64_t step) {
  constexpr std::int64_t kLargestStep = 65536;
  if (step == 0 || step < -kLargestStep || step > kLargestStep) node.refuse("has the step ", step);
  const auto place = [&](std::int64_t index, std::int64_t least, std::int64_t most) {
    return std::clamp(index < 0 ? std::max(index, -size - 1) + size : index, least, most);
  };
  const std::int64_t least = step > 0 ? 0 : -1, most = step > 0 ? size : size - 1;
  const std::int64_t first = place(start, 0, most), last = place(end, least, most);
  const std::int64_t length = step > 0 ? last - first : first - last, stride = std::abs(step);
  const std::int64_t count = length <= 0 ? 0 : (length + stride - 1) / stride;
  return {.first = count == 0 ? 0 : first, .count = count, .step = step};
}

Literal part_of(const OnnxNode& node, const Literal& from, const KeptOfAxes& kept) {
  if (from.elements() == 0) node.refuse("cuts an empty constant");
  std::vector<std::int64_t> extents = from.extents, strides = strides_of(from.extents);
  std::int64_t start = 0;
  for (const auto& [axis, part] : kept) {
    const auto place = static_cast<std::size_t>(axis);
    start += part.first * strides[place];
    extents[place] = part.count;
    strides[place] *= part.step;
  }
  return picked(from, std::move(extents), start, strides);
}

Activation part_of(Translation& t, const OnnxNode& node, Activation x, const KeptOfAxes& kept) {
  layers::SliceAttributes attributes;
  for (const auto& [axis, part] : kept) {
    const auto place = static_cast<std::size_t>(axis);
    const std::int64_t size = axis == 0 && x.extents[0] == kOpenBatch ? kAnyBatch : x.extents[place];
    if (part.count == size && part.step == 1) continue;
    if (axis == 0) node.refuse("cuts the batch");
    if (!x.columns.empty()) node.refuse("cuts a flattened image, whose columns lie in another order here");
    if (part.count == 0) node.refuse("leaves nothing of axis ", axis, " of ", extents_text(x.extents));
    if (part.step < 0) node.refuse("turns axis ", axis, " around; a step of what the network computes is 1 or more");
    attributes.axes.push_back(x.order[place]);
    attributes.starts.push_back(part.first);
    attributes.ends.push_back(part.first + (part.count - 1) * part.step + 1);
    attributes.steps.push_back(part.step);
    x.extents[place] = part.count;
  }
  if (attributes.axes.empty()) return x;
  if (std::ranges::all_of(attributes.steps, [](std::int64_t step) { return step == 1; })) attributes.steps.clear();
  x.output = layers::slice(t.graph(), t.name(t.scope_of(node), "Slice"), x.output, attributes);
  return x;
}

/// Defines the tensor as that part of input 0.
void define_part(Translation& t, const OnnxNode& node, const std::string& tensor, const KeptOfAxes& kept) {
  if (const auto* known = std::get_if<Literal>(&t.value(node, 0))) {
    t.becomes("known while reading");
    return t.define(tensor, part_of(node, *known, kept));
  }
  t.define(tensor, part_of(t, node, t.activation(node, 0), kept));
}

std::vector<std::int64_t> extents_of(const Translation& t, const OnnxNode& node) {
  const Value& value = t.value(node, 0);
  if (const auto* known = std::get_if<Literal>(&value)) return known->extents;
  std::vector<std::int64_t> extents = std::get<Activation>(value).extents;
  if (extents[0] == kOpenBatch) extents[0] = kAnyBatch;
  return extents;
}

/// The sizes of a Split's parts along an axis of that size.
std::vector<std::int64_t> sizes_of_parts(const Translation& t, const OnnxNode& node, std::int64_t size) {
  const std::int64_t parts = node.outputs();
  const bool as_input = node.opset() >= 13;
  std::vector<std::int64_t> sizes;
  if (as_input ? t.has(node, 1) : node.has("split")) sizes = as_input ? t.integers(node, 1) : node.integers("split");
  const bool counts = node.opset() >= 18 && node.has("num_outputs");
  if (counts && (!sizes.empty() || node.integer("num_outputs", 0) != parts))
    node.refuse("has num_outputs beside sizes, or another number of outputs");
  if (sizes.empty()) {
    if (!counts && size % parts != 0) node.refuse("cuts ", size, " into ", parts, " equal parts");
    const std::int64_t most = (size + parts - 1) / parts;
    sizes.assign(static_cast<std::size_t>(parts), most);
    sizes.back() = size - most * (parts - 1);
  }
  const bool fits = std::ranges::all_of(sizes, [&](std::int64_t part) { return part > 0 && part <= size; });
  if (!fits || std::ssize(sizes) != parts || std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != size)
    node.refuse("cuts ", size, " into parts that are empty, do not add up to it, or are not as many as its ",
                counted(parts, "output"));
  return sizes;
}

}  // namespace

void import_slice(Translation& t, const OnnxNode& node) {
  const std::vector<std::int64_t> extents = extents_of(t, node);
  const bool as_inputs = node.opset() >= 10;
  const auto list = [&](int input, const char* attribute) {
    const bool given = as_inputs ? t.has(node, input) : node.has(attribute);
    return !given ? std::vector<std::int64_t>{} : as_inputs ? t.integers(node, input) : node.integers(attribute);
  };
  const std::vector<std::int64_t> starts = list(1, "starts");
  std::vector<std::int64_t> ends = list(2, "ends");
  std::vector<std::int64_t> axes = list(3, "axes"), steps;
  if (as_inputs && t.has(node, 4)) steps = t.integers(node, 4);
  if (axes.empty())
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    node.refuse("has starts, ends, axes and steps of different lengths");
  KeptOfAxes kept;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axis_of(node, axes[i], extents.size());
    const std::int64_t size = extents[static_cast<std::size_t>(axis)];
    // An attribute of that value is a very negative index.
    if (as_inputs && ends[i] == kOpenBatch && axis == 0 && size == kAnyBatch) ends[i] = size;
    if (as_inputs && (starts[i] == kOpenBatch || ends[i] == kOpenBatch))
      node.refuse("cuts at the size of the batch, which is open");
    if (!kept.emplace(axis, kept_of(node, size, starts[i], ends[i], steps[i])).second)
      node.refuse("cuts along the axis ", axes[i], " twice");
  }
  define_part(t, node, node.output(0), kept);
}

void import_split(Translation& t, const OnnxNode& node) {
  const std::vector<std::int64_t> extents = extents_of(t, node);
  const std::int64_t axis = axis_of(node, node.integer("axis", 0), extents.size());
  std::int64_t first = 0;
  const std::vector<std::int64_t> sizes = sizes_of_parts(t, node, extents[static_cast<std::size_t>(axis)]);
  for (int i = 0; i < node.outputs(); ++i) {
    const std::int64_t size = sizes[static_cast<std::size_t>(i)];
    const std::string& tensor = node.output(i);
    // A part that nobody reads is not made.
    if (!tensor.empty() && (t.readers(tensor) > 0 || t.is_output(tensor)))
      define_part(t, node, tensor, {{axis, {.first = first, .count = size, .step = 1}}});
    first += size;
  }
}

}  // namespace miniqat::importers
