#include "quantize/convert/convert.h"

#include <algorithm>
#include <array>

#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "layers/dropout.h"
#include "layers/reshape.h"
#include "layers/softmax.h"
#include "quantize/convert/graph_walk.h"
#include "quantize/convert/seen_ranges.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"

namespace miniqat::quantize {
namespace {

/// Ops that may follow the logits: they change neither them nor their order.
constexpr std::array<std::string_view, 3> kAtTheEnd = {layers::Softmax::kType, layers::Identity::kType,
                                                       layers::Dropout::kType};

Output only_output(const Graph& graph) {
  if (graph.outputs().empty()) fail("the graph names no output to convert");
  if (graph.outputs().size() > 1)
    fail("an integer model has one output, the graph names ", graph.outputs().size(), ": ", graph.outputs()[0].name(),
         ", ", graph.outputs()[1].name(), graph.outputs().size() > 2 ? ", ..." : "");
  return source_through(graph.outputs().front(), kAtTheEnd);
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

}  // namespace

integer::Model convert(const Graph& graph, const NamedTensors& variables, const ConvertOptions& options) {
  // Values are found by running it, which takes a graph that is ours.
  Graph own = graph.clone();
  const Output output = only_output(own);
  require_quantizers(own);
  const StaticValues values(own, output, variables);
  require_one_input(values.moving(), output);
  if (!options.ranges_to_come) require_seen_ranges(own, output, variables, values);
  return GraphWalk(values, output, options).convert();
}

}  // namespace miniqat::quantize
