#include "core/engine/variances.h"

#include <algorithm>

#include "core/error.h"
#include "core/graph/op_interfaces.h"
#include "core/text/quote.h"

namespace miniqat {
namespace {

/// What rounding may leave of a variance of 0.
constexpr double kRounding = 1e-9;

/// The op that takes the node as a variance; null for none.
const Node* reader_as_variance(const Node& variable) {
  for (const Use& use : variable.uses()) {
    const auto* takes = as<TakesVariances>(use.node->op());
    if (takes != nullptr && std::ranges::count(takes->variance_inputs(), use.input) > 0) return use.node;
  }
  return nullptr;
}

}  // namespace

void require_variance(const Graph& graph, const std::string& variable, const Tensor& value, const std::string& source) {
  const Node* node = graph.find(variable);
  const Node* reader = node == nullptr ? nullptr : reader_as_variance(*node);
  if (reader == nullptr || value.elements() == 0) return;
  double least = 0;
  with_float_type(value, [&]<class T>(T) { least = *std::ranges::min_element(value.values<T>()); });
  if (least < -kRounding)
    fail(source, source.empty() ? "" : ": ", "variable ", quote(variable), " holds ", least, ", and ",
         describe(*reader), " takes it as a variance, which cannot be negative");
}

}  // namespace miniqat
