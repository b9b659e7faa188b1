#include "models/models.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "core/graph/op_queries.h"
#include "core/graph/reach.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "core/text/suggest.h"
#include "models/lenet.h"
#include "models/mobilenet_v1.h"
#include "models/mobilenet_v2.h"
#include "models/resnet20.h"

namespace miniqat::models {

std::span<const Model> model_table() {
  static const std::array<Model, 6> kModels = {{
      {"lenet", "conv 32, conv 64, dense 1024, dropout", Shape{28, 28, 1}, 10, lenet},
      {"lenet5", "LeNet-5 with Relu and max pools: 6-16-120-84", Shape{28, 28, 1}, 10, lenet5},
      {"lenet_bn", "lenet with batch norms after its convolutions", Shape{28, 28, 1}, 10, lenet_bn},
      {"mobilenet_v1", "13 depthwise separable blocks, Relu6", Shape{224, 224, 3}, 1000, mobilenet_v1},
      {"mobilenet_v2", "17 inverted residual blocks, Relu6", Shape{224, 224, 3}, 1000, mobilenet_v2},
      {"resnet20", "9 residual blocks, Relu", Shape{32, 32, 3}, 10, resnet20},
  }};
  return kModels;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Model& model : model_table()) names.emplace_back(model.name);
  return names;
}

const Model& find_model(std::string_view name) {
  for (const Model& model : model_table())
    if (model.name == name) return model;
  fail(unknown_name("model", name, model_names()), " (a graph JSON file ends in .json, an ONNX model in .onnx)");
}

ModelSize size_of(const Graph& graph, std::int64_t batch) {
  ModelSize size;
  const std::unordered_set<const Node*> unused = unused_nodes(graph);
  for (const Node* node : graph.nodes()) {
    if (unused.contains(node)) continue;
    if (const auto* variable = node->as<Variable>(); variable != nullptr && variable->trainable)
      size.parameters += node->output_specs()[0].shape.elements();
    size.multiply_adds += multiply_adds_of(node->op(), node->input_specs());
  }
  size.multiply_adds /= std::max<std::int64_t>(batch, 1);
  return size;
}

}  // namespace miniqat::models
