#include "quantize/convert/convert.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "core/graph/op_queries.h"
#include "core/graph/reach.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "layers/dropout.h"
#include "layers/reshape.h"
#include "layers/softmax.h"
#include "quantize/convert/graph_walk.h"
#include "quantize/fake_quant.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"
#include "quantize/quantizers.h"
#include "quantize/range_training.h"

namespace miniqat::quantize {
namespace {

/// Ops that may follow the logits: they change neither them nor, as the first, their order.
constexpr std::array<std::string_view, 3> kAtTheEnd = {layers::Softmax::kType, layers::Identity::kType,
                                                       layers::Dropout::kType};

Output only_output(const Graph& graph, bool leaves_out_softmax) {
  if (graph.outputs().empty()) fail("the graph names no output to convert");
  if (graph.outputs().size() > 1)
    fail("an integer model has one output, the graph names ", graph.outputs().size(), ": ", graph.outputs()[0].name(),
         ", ", graph.outputs()[1].name(), graph.outputs().size() > 2 ? ", ..." : "");
  const Output end = graph.outputs().front();
  return source_through(end, std::span(kAtTheEnd).subspan(leaves_out_softmax ? 0 : 1));
}

void require_one_input(const std::vector<Node*>& moving, Output output) {
  const Node* found = nullptr;
  for (const Node* node : moving) {
    if (!node->as<Placeholder>()) continue;
    if (found)
      fail("an integer model has one input, but both ", describe(*found), " and ", describe(*node), " feed it");
    found = node;
  }
  if (!found) fail("the output ", output.name(), " does not depend on any Placeholder");
}

/// A network without any quantizer deserves a better message than one about its first edge.
void require_quantizers(const Graph& graph) {
  const auto nodes = graph.nodes();
  if (std::ranges::none_of(nodes, [](const Node* node) { return is_quantizer(*node); }))
    fail("this is a float network, no tensor of it has a range: train with quantization, or `miniqat calibrate`");
}

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

/// Throws Error naming the first quantizer behind `output`, in topological order, whose range never saw a number: it is
/// still that of its initializer, which says nothing about the tensor. Where observations are counted, none was; the
/// last value of weights is not that of these weights; no learned range behind the output has moved. (One of several
/// may stay: a tensor of zeros moves nothing.) Fixed ranges, and ends that are no Variables, are meant as they are.
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

}  // namespace

integer::Model convert(const Graph& graph, const NamedTensors& variables, const ConvertOptions& options) {
  // Values are found by running it, which takes a graph that is ours.
  Graph own = graph.clone();
  const Output output = only_output(own, options.leaves_out_softmax);
  require_quantizers(own);
  if (output.node->as<layers::Softmax>() != nullptr)
    fail(describe(*output.node), " gives the answers, not logits of classes, and integers have no Softmax");
  const StaticValues values(own, output, variables);
  require_one_input(values.moving(), output);
  if (!options.ranges_to_come) require_seen_ranges(own, output, variables, values);
  return GraphWalk(values, output, options.input, options.name).convert();
}

}  // namespace miniqat::quantize
