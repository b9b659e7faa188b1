#include "quantize/op_roles.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/graph/op.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/batch_norm_fold.h"
#include "quantize/fold/folded_layer.h"
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
      {layers::Conv2d::kType, kLayer | kSumsProducts},
      {layers::DepthwiseConv2d::kType, kLayer | kSumsProducts},
      {layers::MatMul::kType, kLayer | kSumsProducts},
      {layers::Relu::kType, kClamp | kRequantized | kChooses},
      {layers::Relu6::kType, kClamp | kRequantized | kChooses},
      {layers::Clip::kType, kClamp | kRequantized | kChooses},
      {layers::Add::kType, kRequantized | kSumsProducts},
      {layers::Sub::kType, kRequantized | kSumsProducts},
      {layers::Mul::kType, kRequantized | kSumsProducts},
      {layers::AvgPool::kType, kPool | kRequantized | kSumsProducts},
      {layers::Mean::kType, kPool | kRequantized | kSumsProducts},
      {layers::Concat::kType, kPool | kRequantized | kMoves},
      {layers::Sigmoid::kType, kTable | kRequantized, OutputRange{0, 1}},
      {layers::HardSigmoid::kType, kTable | kRequantized},
      {layers::HardSwish::kType, kTable | kRequantized},
      {layers::LeakyRelu::kType, kTable | kRequantized},
      {layers::MaxPool::kType, kKeepsRange | kChooses},
      {layers::Dropout::kType, kKeepsRange | kSumsProducts},
      {layers::Pad::kType, kKeepsRange | kMoves},
      {layers::Slice::kType, kKeepsRange | kMoves},
      {layers::SpaceToBatchNd::kType, kKeepsRange | kMoves},
      {layers::Identity::kType, kKeepsRange | kBeforeBatchNorm | kMoves},
      {layers::Reshape::kType, kKeepsRange | kBeforeBatchNorm | kMoves},
      {layers::BatchToSpaceNd::kType, kKeepsRange | kBeforeBatchNorm | kMoves},
      {layers::BiasAdd::kType, kSumsProducts},
      {BatchNormFold::kType, kFold},
      {BatchNormCorrection::kType, kFold},
      {BatchNormScale::kType, kFold},
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

bool has_role(const Node& node, OpRole roles) { return has_role(node.type(), roles); }

bool has_role(std::string_view type, OpRole roles) {
  const Row* row = row_of(type);
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

bool is_unfolded_batch_norm(const Node& node) { return node.as<layers::BatchNorm>() && !folding_of(node); }

std::optional<int> scale_shift_input(const Node& node) {
  const auto is_known = [&](int i) { return is_parameter(*source_through(node.input(i), OpRole::kKeepsRange).node); };
  if (is_unfolded_batch_norm(node)) {
    const bool scales = !is_known(0) && std::ranges::all_of(std::array{1, 2, 3, 4}, is_known);
    return scales ? std::optional(0) : std::nullopt;
  }
  const bool either = node.as<layers::Add>() || node.as<layers::Sub>() || node.as<layers::Mul>();
  if (!either && !node.as<layers::Div>() && !node.as<layers::BiasAdd>()) return {};
  if (is_known(0) == is_known(1)) return {};
  const int x = is_known(0) ? 1 : 0;
  return either || x == 0 ? std::optional(x) : std::nullopt;
}

bool gets_range(const Node& node) { return is_requantized(node) || scale_shift_input(node); }

Range<float> clamp_bounds(const Op& clamp) {
  if (const auto* clip = clamp.as<layers::Clip>())
    return {static_cast<float>(clip->low), static_cast<float>(clip->high)};
  return {0, clamp.as<layers::Relu6>() ? 6 : std::numeric_limits<float>::infinity()};
}

Range<float> limited(Range<float> outer, Range<float> inner) {
  return {std::clamp(outer.min, inner.min, inner.max), std::clamp(outer.max, inner.min, inner.max)};
}

}  // namespace miniqat::quantize
