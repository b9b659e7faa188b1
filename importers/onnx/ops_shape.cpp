#include <algorithm>
#include <set>

#include "importers/onnx/ops.h"
#include "importers/onnx/reshaping.h"
#include "layers/parts.h"

namespace miniqat::importers {
namespace {

/// Axis in 0 .. rank - 1.
std::int64_t axis_in(const OnnxNode& node, std::int64_t axis, std::size_t rank) {
  const auto most = static_cast<std::int64_t>(rank);
  if (axis < -most || axis >= most) node.refuse("has the axis ", axis, ", its tensor ", rank, " axes");
  return axis < 0 ? axis + most : axis;
}

/// The axes of Squeeze and Unsqueeze: an attribute before opset 13, an input since.
std::vector<std::int64_t> axes_of(const Translation& t, const OnnxNode& node) {
  if (node.opset() < 13) return node.integers("axes");
  return t.has(node, 1) ? t.integers(node, 1) : std::vector<std::int64_t>{};
}

std::int64_t product_of(const OnnxNode& node, const std::vector<std::int64_t>& extents, std::size_t from) {
  std::int64_t product = 1;
  for (std::size_t axis = from; axis < extents.size(); ++axis) {
    if (extents[axis] == kOpenBatch) node.refuse("makes the batch a part of another axis");
    if (extents[axis] > 0 && product > Shape::kMaxElements / extents[axis]) node.refuse("makes too large a tensor");
    product *= extents[axis];
  }
  return product;
}

void with_extents(Translation& t, const OnnxNode& node, const std::vector<std::int64_t>& extents) {
  if (extents.size() > static_cast<std::size_t>(Shape::kMaxRank)) node.refuse("makes ", extents.size(), " axes");
  if (const auto* known = std::get_if<Literal>(&t.value(node, 0))) {
    t.becomes("known while reading");
    return t.define(node, Literal{.extents = extents, .values = known->values});
  }
  product_of(node, extents, 1);
  if (joins_channels(t, node, extents)) return;
  const Activation x = t.activation(node, 0);
  if (!splits_channels(t, node, x, extents)) t.define(node, reshaped(t, node, x, extents));
}

const std::vector<std::int64_t>& extents_of(const Translation& t, const OnnxNode& node, int input) {
  const Value& value = t.value(node, input);
  if (const auto* known = std::get_if<Literal>(&value)) return known->extents;
  return std::get<Activation>(value).extents;
}

/// Joins lists of integers, or single ones.
Literal joined_integers(const Translation& t, const OnnxNode& node) {
  std::vector<std::int64_t> all;
  for (int i = 0; i < node.inputs(); ++i) {
    const std::vector<std::int64_t> part = t.integers(node, i);
    constexpr std::size_t kMost = 65536;
    if (all.size() + part.size() > kMost) node.refuse("makes a list of more than ", kMost, " integers");
    all.insert(all.end(), part.begin(), part.end());
  }
  const auto extent = static_cast<std::int64_t>(all.size());
  return {.extents = {extent}, .values = std::move(all)};
}

}  // namespace

void import_flatten(Translation& t, const OnnxNode& node) {
  const std::vector<std::int64_t>& extents = extents_of(t, node, 0);
  const std::int64_t axis = node.integer("axis", 1);
  if (extents.empty() || (axis != 1 && axis + static_cast<std::int64_t>(extents.size()) != 1))
    node.refuse("flattens from axis ", axis, " on; only from axis 1, which keeps the batch, is it imported");
  with_extents(t, node, {extents[0], product_of(node, extents, 1)});
}

void import_reshape(Translation& t, const OnnxNode& node) {
  const std::vector<std::int64_t>& from = extents_of(t, node, 0);
  const bool zero_is_zero = node.integer("allowzero", 0) != 0;
  std::vector<std::int64_t> extents = t.integers(node, 1);
  std::size_t open = extents.size();
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 0 && !zero_is_zero) {
      if (axis >= from.size()) node.refuse("keeps axis ", axis, ", which ", extents_text(from), " does not have");
      extents[axis] = from[axis];
    }
    if (extents[axis] == -1) {
      if (open < extents.size()) node.refuse("leaves two extents open");
      open = axis;
    } else if (extents[axis] < 0 && extents[axis] != kOpenBatch) {
      node.refuse("asks for a negative extent");
    }
  }
  const bool computed = std::holds_alternative<Activation>(t.value(node, 0));
  if (open == 0 && computed && !from.empty()) {
    // What is left for the batch's axis, if the others hold an example.
    if (product_of(node, extents, 1) != product_of(node, from, 1))
      node.refuse("makes ", extents_text(extents), " of ", extents_text(from), ", and so changes the batch axis");
    extents[0] = from[0];
  } else if (open < extents.size()) {
    const bool keeps = computed && !extents.empty() && !from.empty() && extents[0] == from[0];
    const std::size_t first = keeps ? 1 : 0;
    extents[open] = 1;
    const std::int64_t others = product_of(node, extents, first), all = product_of(node, from, first);
    if (others == 0 || all % others != 0)
      node.refuse("makes ", extents_text(extents), " of ", extents_text(from), ", which does not divide");
    extents[open] = all / others;
  }
  if (!computed && product_of(node, extents, 0) != product_of(node, from, 0))
    node.refuse("makes ", extents_text(extents), " of ", extents_text(from));
  with_extents(t, node, extents);
}

void import_squeeze(Translation& t, const OnnxNode& node) {
  const std::vector<std::int64_t>& from = extents_of(t, node, 0);
  std::set<std::int64_t> gone;
  for (const std::int64_t axis : axes_of(t, node)) gone.insert(axis_in(node, axis, from.size()));
  if (gone.empty()) node.refuse("names no axes; only those that are named are left out");
  std::vector<std::int64_t> extents;
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    const bool goes = gone.contains(static_cast<std::int64_t>(axis));
    if (goes && from[axis] != 1) node.refuse("leaves out an axis of ", extents_text(from), " that is not 1");
    if (!goes) extents.push_back(from[axis]);
  }
  with_extents(t, node, extents);
}

void import_unsqueeze(Translation& t, const OnnxNode& node) {
  std::vector<std::int64_t> extents = extents_of(t, node, 0);
  const std::vector<std::int64_t> axes = axes_of(t, node);
  if (axes.size() > static_cast<std::size_t>(Shape::kMaxRank)) node.refuse("adds ", axes.size(), " axes");
  std::set<std::int64_t> added;
  for (const std::int64_t axis : axes) added.insert(axis_in(node, axis, extents.size() + axes.size()));
  for (const std::int64_t axis : added)
    extents.insert(extents.begin() + std::min<std::int64_t>(axis, std::ssize(extents)), 1);
  with_extents(t, node, extents);
}

void import_transpose(Translation& t, const OnnxNode& node) {
  const std::vector<std::int64_t>& from = extents_of(t, node, 0);
  const std::size_t rank = from.size();
  std::vector<std::int64_t> reversed(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) reversed[axis] = static_cast<std::int64_t>(rank - 1 - axis);
  const std::vector<std::int64_t> axes = node.integers("perm", reversed);
  std::vector<std::int64_t> sorted = axes;
  std::ranges::sort(sorted);
  std::ranges::reverse(reversed);
  if (sorted != reversed) node.refuse("has a perm that does not name each of the ", rank, " axes once");
  if (const auto* known = std::get_if<Literal>(&t.value(node, 0))) {
    t.becomes("known while reading");
    return t.define(node, transposed(*known, axes));
  }
  if (turns_channels(t, node, axes)) return;
  const Activation x = t.activation(node, 0);
  if (axes[0] != 0 || !x.columns.empty()) node.refuse("moves the batch axis, or columns of a flattened image");
  // Our numbers stay where they are: only the names of the axes change.
  Activation y{.output = x.output, .extents = {}, .order = {}};
  for (const std::int64_t axis : axes) {
    y.extents.push_back(x.extents[static_cast<std::size_t>(axis)]);
    y.order.push_back(x.order[static_cast<std::size_t>(axis)]);
  }
  t.becomes("nothing: another order of axes in the file");
  t.define(node, std::move(y));
}

void import_concat(Translation& t, const OnnxNode& node) {
  if (node.inputs() == 0) node.refuse("has no inputs");
  const std::int64_t wished = node.integer("axis", 0);
  bool known = true;
  for (int i = 0; i < node.inputs(); ++i) known = known && std::holds_alternative<Literal>(t.value(node, i));
  if (known) {
    if (wished != 0 && wished != -1) node.refuse("joins constants along axis ", wished);
    t.becomes("known while reading");
    return t.define(node, joined_integers(t, node));
  }
  Activation all = t.activation(node, 0);
  const std::int64_t axis = axis_in(node, wished, all.extents.size());
  if (axis == 0) node.refuse("joins along the batch axis");
  std::vector<Activation> parts = {all};
  std::vector<Output> outputs = {all.output};
  const auto place = static_cast<std::size_t>(axis);
  for (int i = 1; i < node.inputs(); ++i) {
    const Activation& part = parts.emplace_back(t.activation(node, i));
    if (part.order != all.order) node.refuse("joins tensors whose axes lie in another order here");
    all.extents[place] += part.extents[place];
    outputs.push_back(part.output);
  }
  all.output =
      layers::concat(t.graph(), t.name(t.scope_of(node), "Concat"), std::move(outputs), {.axis = all.order[place]});
  if (all.extents.size() == 2) all.columns = columns_side_by_side(node, parts);
  t.define(node, std::move(all));
}

}  // namespace miniqat::importers
