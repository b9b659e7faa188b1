#include "importers/onnx/reshaping.h"

#include <algorithm>
#include <numeric>

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

}  // namespace miniqat::importers
