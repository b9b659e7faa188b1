#include "quantize/line.h"

#include "layers/bias_add.h"
#include "layers/elementwise.h"
#include "quantize/op_roles.h"

namespace miniqat::quantize {

std::optional<int> line_input(const Node& node) {
  const bool either = node.as<layers::Add>() || node.as<layers::Sub>() || node.as<layers::Mul>();
  if (!either && !node.as<layers::Div>() && !node.as<layers::BiasAdd>()) return {};
  const auto is_known = [&](int i) { return is_parameter(*source_through(node.input(i), OpRole::kKeepsRange).node); };
  if (is_known(0) == is_known(1)) return {};
  const int x = is_known(0) ? 1 : 0;
  return either || x == 0 ? std::optional(x) : std::nullopt;
}

bool gets_range(const Node& node) { return is_requantized(node) || line_input(node); }

}  // namespace miniqat::quantize
