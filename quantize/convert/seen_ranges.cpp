#include "quantize/convert/seen_ranges.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/graph/op_queries.h"
#include "core/graph/reach.h"
#include "core/text/error.h"
#include "quantize/fake_quant.h"
#include "quantize/quantizers.h"
#include "quantize/range_training.h"

namespace miniqat::quantize {
namespace {

/// Variables of earlier versions may lack the count.
bool has_counted(const Node& quantizer, const NamedTensors& variables) {
  return std::ranges::any_of(state_of(quantizer.op()), [&](const OpState& state) {
    const auto found = variables.find(state_name(quantizer, state));
    return state.name == "num_updates" && found != variables.end() && *found->second.data<float>() > 0;
  });
}

/// Weights may happen to span the range of the initializer.
bool spans_its_tensor(const Node& quantizer, const NamedTensors& variables, const StaticValues& values) {
  const Tensor* x = values.find(quantizer.input(0));
  if (x == nullptr) return false;
  ScratchScope scope;
  Observation<float> own = observe(x->values<float>(), quantizer.input(1).shape().elements(), scope);
  widen(own, quantizer.as<FakeQuant>()->grid_options());
  const Tensor &min = variables.at(quantizer.input(1).node->name()),
               &max = variables.at(quantizer.input(2).node->name());
  for (std::size_t c = 0; c < own.ranges.size(); ++c)
    if (own.ranges[c].min != min.data<float>()[c] || own.ranges[c].max != max.data<float>()[c]) return false;
  return true;
}

[[noreturn]] void refuse(const Node& quantizer, const NamedTensors& variables) {
  const auto end = [&](int i) { return *variables.at(quantizer.input(i).node->name()).data<float>(); };
  fail(
      describe(quantizer), " (", traits_of(quantizer.as<FakeQuant>()->range).text,
      ") has never seen a number: its range is still the one it was made with, [", end(1), ", ", end(2),
      "]; calibrate the network (Calibrator, miniqat.calibrate() or `miniqat calibrate`), or train it, before it is converted");
}

}  // namespace

void require_seen_ranges(const Graph& graph, Output output, const NamedTensors& variables, const StaticValues& values) {
  const auto needed = nodes_behind(std::span(&output, 1));
  const Node* still = nullptr;
  bool some_moved = false;
  for (const Node* node : graph.topological_order()) {
    const auto* quantizer = node->as<FakeQuant>();
    if (quantizer == nullptr || !needed.contains(node) || !traits_of(quantizer->range).changes()) continue;
    const bool is_initial = has_initial_range(*node, variables);
    if (traits_of(quantizer->range).learned) {
      some_moved = some_moved || !is_initial;
      if (is_initial && still == nullptr) still = node;
    } else if (is_initial && !has_counted(*node, variables) && !spans_its_tensor(*node, variables, values)) {
      refuse(*node, variables);
    }
  }
  if (still != nullptr && !some_moved) refuse(*still, variables);
}

}  // namespace miniqat::quantize
