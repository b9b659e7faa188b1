#include "core/engine/feeds.h"

#include <algorithm>

#include "core/engine/plan/plan.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"

namespace miniqat {
namespace {

Feeds::const_iterator find_fed(const Feeds& feeds, const Output& output) {
  return std::ranges::find(feeds, output, &Feeds::value_type::first);
}

std::string fed_text(const CodedTensor& fed) {
  if (!fed.defined()) return "an empty tensor";
  if (fed.grid) return concat("bytes ", fed.shape());
  return concat(name_of(fed.dtype()), " ", fed.shape(),
                fed.dtype() == DType::kUInt8 ? ", which stands for numbers with a scale and a zero point only" : "");
}

/// Slices 0: as it is.
Shape wanted_shape(const Node& node, const Shape& shape, int slices) {
  if (slices == 0) return shape;
  if (shape.rank() == 0) fail(describe(node), " is a scalar, which has no slices");
  std::vector<std::int64_t> extents = shape.to_vector();
  extents[0] *= slices;
  return Shape(extents);
}

/// Calls use(placeholder) for those that are fed bytes.
void for_each_coded(const Graph& graph, const Feeds& feeds, const auto& use) {
  for (auto fed = feeds.begin(); fed != feeds.end(); ++fed) {
    const auto& [output, value] = *fed;
    if (value.grid && graph.owns(output.node) && output.node->as<Placeholder>() != nullptr &&
        output == output.node->output() && output.spec().dtype == DType::kFloat32 && find_fed(feeds, output) == fed)
      use(output);
  }
}

}  // namespace

void require_feeds(const Graph& graph, const Feeds& feeds, int slices) {
  for (const auto& [output, value] : feeds) {
    if (!graph.owns(output.node)) fail("a fed tensor is not of this graph");
    const Node& node = *output.node;
    if (node.as<Placeholder>() == nullptr) fail(describe(node), " cannot be fed: it is not a Placeholder");
    if (output != node.output()) fail(describe(node), " has no output ", output.index, "; it has 1");
    const DType dtype = value.grid ? DType::kFloat32 : value.dtype();
    if (!value.defined() || dtype != output.spec().dtype || value.shape() != wanted_shape(node, output.shape(), slices))
      fail(describe(node), " wants ", slices > 0 ? concat(slices, " slices ") : "", name_of(output.spec().dtype), " ",
           output.shape(), ", was fed ", fed_text(value));
    if (!value.grid) continue;
    if (value.dtype() != DType::kUInt8)
      fail(describe(node), " was fed ", name_of(value.dtype()), " as bytes, which must be uint8");
    try {
      require_byte_grid(*value.grid);
    } catch (const Error& error) {
      fail(describe(node), " ", error.what());
    }
  }
}

Feeds slice_of(const Feeds& feeds, int k) {
  Feeds slice;
  for (const auto& [output, value] : feeds)
    slice.emplace_back(output, value.slice(k * output.shape().elements(), output.shape()));
  return slice;
}

std::vector<Output> coded_placeholders(const Graph& graph, const Feeds& feeds) {
  std::vector<Output> coded;
  for_each_coded(graph, feeds, [&](const Output& output) { coded.push_back(output); });
  return coded;
}

bool are_coded(const Graph& graph, const Feeds& feeds, const std::vector<Output>& placeholders) {
  std::size_t count = 0;
  bool same = true;
  for_each_coded(graph, feeds, [&](const Output& output) {
    same = same && count < placeholders.size() && placeholders[count] == output;
    ++count;
  });
  return same && count == placeholders.size();
}

void bind_feeds(Plan& plan, const Feeds& feeds, DType precision) {
  for (const Plan::Binding& binding : plan.placeholders) {
    const auto fed = find_fed(feeds, binding.node->output());
    if (fed == feeds.end())
      fail(describe(*binding.node), " must be fed a tensor ", binding.node->output_specs()[0].shape);
    const CodedTensor& value = fed->second;
    if (binding.codes != nullptr) {
      pack_bytes(value, *binding.codes);
      continue;
    }
    const Tensor numbers = numbers_of(value);
    *binding.tensor = numbers.dtype() == DType::kFloat32 ? numbers.to(precision) : numbers;
  }
  for (const Plan::BoundView& view : plan.bound_views) *view.tensor = view.base->reshaped(view.shape);
}

}  // namespace miniqat
