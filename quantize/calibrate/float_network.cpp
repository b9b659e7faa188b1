#include "quantize/calibrate/float_network.h"

#include "quantize/op_roles.h"

namespace miniqat::quantize {
namespace {

Graph without_quantizers(const Graph& graph) {
  Graph result = graph.clone();
  for (Node* node : result.topological_order())
    if (is_quantizer(*node)) result.reroute(node->output(), node->input(0));
  return result;
}

}  // namespace

FloatNetwork::FloatNetwork(Session& quantized, const NamedTensors& others)
    : graph_(without_quantizers(quantized.graph())), session_(graph_) {
  session_.restore({.tensors = quantized.variables(), .metadata = {}}, Session::Restore::kByName, "the session");
  for (const auto& [name, value] : others) session_.set_variable(name, value);
}

std::vector<Tensor> FloatNetwork::run(const std::vector<Output>& fetches, const Feeds& feeds) {
  RunRequest request;
  for (const Output& fetch : fetches) request.fetches.push_back(graph_.output_at(fetch.name()));
  Feeds renamed;
  for (const auto& [placeholder, tensor] : feeds) renamed.emplace_back(graph_.output_at(placeholder.name()), tensor);
  return session_.run(request, renamed).fetched;
}

}  // namespace miniqat::quantize
