#include "importers/onnx/reshaping.h"

#include <algorithm>
#include <numeric>

#include "layers/parts.h"
#include "layers/reshape.h"

namespace miniqat::importers {
namespace {

/// A list of columns takes memory for each of them.
constexpr std::int64_t kMostColumns = std::int64_t{1} << 24;

void require_few(const OnnxNode& node, std::int64_t columns) {
  if (columns > kMostColumns) node.refuse("flattens ", columns, " numbers, more than ", kMostColumns);
}

std::vector<std::int64_t> usual_order(std::size_t rank) {
  if (rank == 4) return kImageOrder;
  std::vector<std::int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::int64_t features(const std::vector<std::int64_t>& extents) {
  std::int64_t product = 1;
  for (std::size_t axis = 1; axis < extents.size(); ++axis) product *= extents[axis];
  return product;
}

/// Our place of each number of an example, in ONNX's order of them, for axes in that order; empty where all are where
/// ONNX has them.
std::vector<std::int64_t> places(const OnnxNode& node, const std::vector<std::int64_t>& extents,
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

}  // namespace

std::string mixing_text(const OnnxNode& node, const std::vector<std::int64_t>& from,
                        const std::vector<std::int64_t>& to) {
  return concat(
      node.who(), " makes ", extents_text(to), " of ", extents_text(from),
      ", and so mixes channels and space; images are [n, h, w, c] here, and no numbers are moved but by a shuffle of channels (Reshape, Transpose [0, 2, 1, 3, 4], Reshape back)");
}

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

Activation reshaped(Translation& t, const OnnxNode& node, const Activation& x,
                    const std::vector<std::int64_t>& extents) {
  if (extents == x.extents) return x;
  if (extents.empty() || extents[0] != x.extents[0])
    node.refuse("makes ", extents_text(extents), " of ", extents_text(x.extents), ", and so changes the batch axis");
  if (features(extents) != features(x.extents))
    node.refuse("makes ", extents_text(extents), " of ", extents_text(x.extents),
                ", which has other numbers of elements");
  const Columns from = x.extents.size() == 2 ? x.columns : Columns(places(node, x.extents, x.order));
  Activation y{.output = x.output, .extents = extents, .order = usual_order(extents.size())};
  if (extents.size() == 2)
    y.columns = from;
  else if (from.list() != places(node, extents, y.order))
    fail(mixing_text(node, x.extents, extents));
  y.output = layers::reshape(t.graph(), t.name(t.scope_of(node), "Reshape"), x.output,
                             {.shape = t.shape_of(y.extents, y.order).to_vector()});
  return y;
}

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

}  // namespace miniqat::importers
