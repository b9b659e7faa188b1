#include "quantize/op_roles.h"

#include <algorithm>
#include <array>

#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/graph_matcher.h"

namespace miniqat::quantize {
namespace {

struct Row {
  std::string_view type;
  OpRole roles;
  std::optional<OutputRange> range = {};
};

constexpr auto kRows = [] {
  using enum OpRole;
  return std::to_array<Row>({
      {FakeQuant::kType, kQuantizer},
      {Variable::kType, kParameter},
      {Constant::kType, kParameter},
      {layers::Conv2d::kType, kLayer},
      {layers::DepthwiseConv2d::kType, kLayer},
      {layers::MatMul::kType, kLayer},
      {layers::Relu::kType, kClamp | kRequantized},
      {layers::Relu6::kType, kClamp | kRequantized},
      {layers::Add::kType, kRequantized},
      {layers::Mul::kType, kRequantized},
      {layers::AvgPool::kType, kPool | kRequantized},
      {layers::Mean::kType, kPool | kRequantized},
      {layers::Concat::kType, kPool | kRequantized},
      {layers::Sigmoid::kType, kTable | kRequantized, OutputRange{0, 1}},
      {layers::HardSwish::kType, kTable | kRequantized},
      {layers::MaxPool::kType, kKeepsRange},
      {layers::Dropout::kType, kKeepsRange},
      {layers::Pad::kType, kKeepsRange},
      {layers::SpaceToBatchNd::kType, kKeepsRange},
      {layers::Identity::kType, kKeepsRange | kBeforeBatchNorm},
      {layers::Reshape::kType, kKeepsRange | kBeforeBatchNorm},
      {layers::BatchToSpaceNd::kType, kKeepsRange | kBeforeBatchNorm},
  });
}();

bool has_one_of(OpRole own, OpRole roles) {
  return (static_cast<std::uint16_t>(own) & static_cast<std::uint16_t>(roles)) != 0;
}

/// Null for a type without roles.
const Row* row_of(std::string_view type) {
  const auto row = std::ranges::find(kRows, type, &Row::type);
  return row != kRows.end() ? &*row : nullptr;
}

}  // namespace

bool has_role(const Node& node, OpRole roles) {
  const Row* row = row_of(node.type());
  return row && has_one_of(row->roles, roles);
}

std::optional<OutputRange> output_range(std::string_view type) {
  const Row* row = row_of(type);
  return row ? row->range : std::nullopt;
}

std::vector<std::string_view> types_with(OpRole roles) {
  std::vector<std::string_view> types;
  for (const Row& row : kRows)
    if (has_one_of(row.roles, roles)) types.push_back(row.type);
  return types;
}

Output source_through(Output tensor, OpRole roles) { return source_through(tensor, types_with(roles)); }

std::vector<Use> uses_through(Output tensor, OpRole roles) { return uses_through(tensor, types_with(roles)); }

}  // namespace miniqat::quantize
