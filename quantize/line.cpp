#include "quantize/line.h"

#include <algorithm>
#include <array>

#include "layers/batch_norm.h"
#include "layers/bias_add.h"
#include "layers/elementwise.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/op_roles.h"

namespace miniqat::quantize {

bool is_unfolded_batch_norm(const Node& node) { return node.as<layers::BatchNorm>() && !folding_of(node); }

std::optional<int> line_input(const Node& node) {
  const auto is_known = [&](int i) { return is_parameter(*source_through(node.input(i), OpRole::kKeepsRange).node); };
  if (is_unfolded_batch_norm(node)) {
    const bool is_line = !is_known(0) && std::ranges::all_of(std::array{1, 2, 3, 4}, is_known);
    return is_line ? std::optional(0) : std::nullopt;
  }
  const bool either = node.as<layers::Add>() || node.as<layers::Sub>() || node.as<layers::Mul>();
  if (!either && !node.as<layers::Div>() && !node.as<layers::BiasAdd>()) return {};
  if (is_known(0) == is_known(1)) return {};
  const int x = is_known(0) ? 1 : 0;
  return either || x == 0 ? std::optional(x) : std::nullopt;
}

bool gets_range(const Node& node) { return is_requantized(node) || line_input(node); }

}  // namespace miniqat::quantize
