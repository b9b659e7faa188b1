#include <algorithm>
#include <numeric>
#include <set>

#include "importers/onnx/ops.h"
#include "layers/parts.h"
#include "layers/reshape.h"

namespace miniqat::importers {
namespace {

/// A list of columns takes memory for each of them.
constexpr std::int64_t kMostColumns = std::int64_t{1} << 24;

void require_few(const OnnxNode& node, std::int64_t columns) {
  if (columns > kMostColumns) node.refuse("flattens ", columns, " numbers, more than ", kMostColumns);
}

/// The orders of axes that a tensor may have here, the likeliest first.
std::vector<std::vector<std::int64_t>> orders_of(std::size_t rank) {
  std::vector<std::vector<std::int64_t>> orders;
  if (rank == 3) orders.push_back(kSequenceOrder);
  if (rank == 4) orders.push_back(kImageOrder);
  orders.emplace_back(rank);
  std::iota(orders.back().begin(), orders.back().end(), 0);
  return orders;
}

std::int64_t features(const std::vector<std::int64_t>& extents) {
  std::int64_t product = 1;
  for (std::size_t axis = 1; axis < extents.size(); ++axis) product *= extents[axis];
  return product;
}

/// Our place of each number of an example, in ONNX's order of them, for axes in that order; empty where all are where
/// ONNX has them.
std::vector<std::int64_t> order_of_numbers(const OnnxNode& node, const std::vector<std::int64_t>& extents,
                                           const std::vector<std::int64_t>& order) {
  const std::int64_t count = features(extents);
  if (count == 0 || is_in_order(extents, order)) return {};
  require_few(node, count);
  std::vector<std::int64_t> strides(extents.size(), 1);
  for (std::size_t axis = 1; axis < extents.size(); ++axis)
    for (std::size_t inner = 1; inner < extents.size(); ++inner)
      if (order[inner] > order[axis]) strides[axis] *= extents[inner];
  std::vector<std::int64_t> result(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i;
    for (std::size_t axis = extents.size() - 1; axis > 0; rest /= extents[axis], --axis)
      result[static_cast<std::size_t>(i)] += rest % extents[axis] * strides[axis];
  }
  return result;
}

constexpr std::int64_t kMostSlices = 256;
constexpr const char* kPartOfShuffle = "part of a shuffle of channels";

/// Null where the node's input is not inside a shuffle.
const Activation* split_input(const Translation& t, const OnnxNode& node) {
  const auto* x = std::get_if<Activation>(&t.value(node, 0));
  return x != nullptr && x->split ? x : nullptr;
}

/// Channels that follow each other in the result stand `each` apart in the image: a Slice with that step for each run
/// of them.
Output joined_steps(Translation& t, const std::string& scope, Output x, std::int64_t groups, std::int64_t each) {
  std::vector<Output> parts;
  for (std::int64_t i = 0; i < each; ++i)
    parts.push_back(
        layers::slice(t.graph(), t.name(scope, "Slice"), x,
                      {.axes = {3}, .starts = {i}, .ends = {i + (groups - 1) * each + 1}, .steps = {each}}));
  return layers::concat(t.graph(), t.name(scope, "Concat"), std::move(parts), {.axis = 3});
}

/// The same where there are few groups of many channels: each group is a column of pixels [n, h * w, c / groups, 1],
/// and the groups stand side by side along the last axis.
Output joined_groups(Translation& t, const std::string& scope, Output x, std::int64_t groups, std::int64_t each) {
  const Shape& images = x.shape();
  std::vector<Output> parts;
  for (std::int64_t group = 0; group < groups; ++group) {
    const Output part = layers::slice(t.graph(), t.name(scope, "Slice"), x,
                                      {.axes = {3}, .starts = {group * each}, .ends = {(group + 1) * each}});
    parts.push_back(layers::reshape(t.graph(), t.name(scope, "Reshape"), part,
                                    {.shape = {images[0], images[1] * images[2], each, 1}}));
  }
  const Output joined = layers::concat(t.graph(), t.name(scope, "Concat"), std::move(parts), {.axis = 3});
  return layers::reshape(t.graph(), t.name(scope, "Reshape"), joined, {.shape = images.to_vector()});
}

Output shuffled(Translation& t, const OnnxNode& node, Output x, std::int64_t groups) {
  const std::int64_t each = x.shape().channels() / groups;
  if (groups == 1 || each == 1) return x;
  // Whichever makes fewer nodes.
  const bool by_steps = each + 1 <= 2 * groups + 2;
  const std::int64_t slices = by_steps ? each : groups;
  if (slices > kMostSlices)
    node.refuse("shuffles ", groups, " groups of ", each, " channels, which would need ", slices, " Slices; up to ",
                kMostSlices, " are made");
  const std::string scope = t.scope_of(node);
  return by_steps ? joined_steps(t, scope, x, groups, each) : joined_groups(t, scope, x, groups, each);
}

/// Why a Reshape to these extents is refused that would have to move numbers.
std::string mixing_text(const OnnxNode& node, const std::vector<std::int64_t>& from,
                        const std::vector<std::int64_t>& to) {
  return concat(
      node.who(), " makes ", extents_text(to), " of ", extents_text(from),
      ", and so mixes channels and space; images are [n, h, w, c] here, and no numbers are moved but by a shuffle of channels (Reshape, Transpose [0, 2, 1, 3, 4], Reshape back)");
}

/// The columns of matrices [batch, features] that stand side by side, in that order. Empty where every column is where
/// ONNX has it. Throws Error naming the node for more than 2^24 columns of another order.
Columns columns_side_by_side(const OnnxNode& node, const std::vector<Activation>& matrices) {
  if (std::ranges::all_of(matrices, [](const Activation& x) { return x.columns.empty(); })) return {};
  std::int64_t count = 0;
  for (const Activation& x : matrices) count += x.extents[1];
  require_few(node, count);
  std::vector<std::int64_t> list;
  list.reserve(static_cast<std::size_t>(count));
  for (const Activation& x : matrices) {
    const auto first = static_cast<std::int64_t>(list.size());
    for (std::int64_t i = 0; i < x.extents[1]; ++i)
      list.push_back(first + (x.columns.empty() ? i : x.columns.list()[static_cast<std::size_t>(i)]));
  }
  return {std::move(list)};
}

/// x under the extents of an ONNX Reshape, Flatten, Squeeze or Unsqueeze, without moving a number: [n, c, h, w] to
/// [n, c * h * w] becomes [n, h, w, c] to [n, h * w * c], and Activation::columns says where each column of ONNX's
/// went. The product of either extents, without the batch, is a tensor's at most. Throws Error naming the node when the
/// extents need another order of numbers than ours have.
Activation reshaped(Translation& t, const OnnxNode& node, const Activation& x,
                    const std::vector<std::int64_t>& extents) {
  if (extents == x.extents) return x;
  if (extents.empty() || extents[0] != x.extents[0])
    node.refuse("makes ", extents_text(extents), " of ", extents_text(x.extents), ", and so changes the batch axis");
  if (features(extents) != features(x.extents))
    node.refuse("makes ", extents_text(extents), " of ", extents_text(x.extents),
                ", which has other numbers of elements");
  const Columns from = x.extents.size() == 2 ? x.columns : Columns(order_of_numbers(node, x.extents, x.order));
  const auto orders = orders_of(extents.size());
  const auto order = std::ranges::find_if(orders, [&](const std::vector<std::int64_t>& wish) {
    return extents.size() == 2 || from.list() == order_of_numbers(node, extents, wish);
  });
  if (order == orders.end()) fail(mixing_text(node, x.extents, extents));
  Activation y{.output = x.output, .extents = extents, .order = *order};
  if (extents.size() == 2) y.columns = from;
  y.output = layers::reshape(t.graph(), t.name(t.scope_of(node), "Reshape"), x.output,
                             {.shape = t.shape_of(y.extents, y.order).to_vector()});
  return y;
}

// A channel shuffle of three nodes, Reshape of [n, c, h, w] to [n, groups, c / groups, h,
// w], Transpose [0, 2, 1, 3, 4] and Reshape back. Channel i * groups + g of the result is channel g * (c / groups) + i
// of the image. Each function is for one of the nodes: it returns false, and has done nothing, where the node is not
// that step.

/// The first Reshape. One that reshaped() takes, since it moves no number, is none.
bool splits_channels(Translation& t, const OnnxNode& node, const Activation& x,
                     const std::vector<std::int64_t>& extents) {
  if (node.type() != "Reshape" || x.order != kImageOrder || is_in_order(x.extents, x.order) || extents.size() != 5)
    return false;
  const std::int64_t groups = extents[1], each = extents[2];
  const bool splits = extents[0] == x.extents[0] && groups > 0 && x.extents[1] % groups == 0 &&
                      x.extents[1] / groups == each && extents[3] == x.extents[2] && extents[4] == x.extents[3];
  if (!splits) return false;
  Activation y = x;
  y.extents = extents;
  y.order = {0, 3, 4, 1, 2};
  y.split = SplitChannels{.groups = groups, .refusal = mixing_text(node, x.extents, extents)};
  t.becomes(kPartOfShuffle);
  t.define(node, std::move(y));
  return true;
}

/// The Transpose with these axes.
bool turns_channels(Translation& t, const OnnxNode& node, const std::vector<std::int64_t>& axes) {
  const Activation* x = split_input(t, node);
  if (x == nullptr || x->split->turned || axes != std::vector<std::int64_t>{0, 2, 1, 3, 4}) return false;
  Activation y = *x;
  std::swap(y.extents[1], y.extents[2]);
  std::swap(y.order[1], y.order[2]);
  y.split->turned = true;
  t.becomes(kPartOfShuffle);
  t.define(node, std::move(y));
  return true;
}

/// The second Reshape, which becomes Slices and a Concat. Throws Error naming the node for more than 256 Slices.
bool joins_channels(Translation& t, const OnnxNode& node, const std::vector<std::int64_t>& extents) {
  const Activation* x = split_input(t, node);
  if (x == nullptr || !x->split->turned || node.type() != "Reshape") return false;
  const std::vector<std::int64_t> images = {x->extents[0], x->extents[1] * x->extents[2], x->extents[3], x->extents[4]};
  if (extents != images) return false;
  t.define(
      node,
      Activation{.output = shuffled(t, node, x->output, x->split->groups), .extents = images, .order = kImageOrder});
  return true;
}

/// Axis in 0 .. rank - 1.
std::int64_t axis_in(const OnnxNode& node, std::int64_t axis, std::size_t rank) {
  const auto most = static_cast<std::int64_t>(rank);
  if (axis < -most || axis >= most) node.refuse("has the axis ", axis, ", its tensor ", counted(rank, "axis"));
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
  if (extents.empty() || (axis != 1 && axis != 1 - static_cast<std::int64_t>(extents.size())))
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
