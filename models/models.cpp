#include "models/models.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "core/graph/op_queries.h"
#include "core/graph/reach.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "core/text/suggest.h"
#include "layers/layers.h"
#include "models/networks.h"

namespace miniqat::models {

std::span<const Model> model_table() {
  static const std::vector<Model> models = [] {
    using enum Examples;
    const bool useless = true;
    return std::vector<Model>{
        {"autoencoder", "dense 128 x 4, 8, 128 x 4, back to the input", Shape{640}, 640, autoencoder, kAny, useless,
         true},
        {"ds_cnn", "4 depthwise separable blocks over spectrograms", Shape{49, 10, 1}, 12, ds_cnn, kSteps, useless},
        {"lenet", "conv 32, conv 64, dense 1024, dropout", Shape{28, 28, 1}, 10, lenet},
        {"lenet5", "LeNet-5 with Relu and max pools: 6-16-120-84", Shape{28, 28, 1}, 10, lenet5},
        {"lenet_bn", "lenet with batch norms after its convolutions", Shape{28, 28, 1}, 10, lenet_bn},
        {"mlp", "dense 128, dense 64, for any input", Shape{28, 28, 1}, 10, mlp, kAny},
        {"mobilenet_v1", "13 depthwise separable blocks, Relu6", Shape{224, 224, 3}, 1000, mobilenet_v1},
        {"mobilenet_v2", "17 inverted residual blocks, Relu6", Shape{224, 224, 3}, 1000, mobilenet_v2},
        {"resnet20", "9 residual blocks, Relu", Shape{32, 32, 3}, 10, resnet20},
        {"resnet8", "3 residual blocks, Relu", Shape{32, 32, 3}, 10, resnet8, kPictures, useless},
        {"visual_wake_words", "mobilenet_v1 at width 0.25 with Relu", Shape{96, 96, 3}, 2, visual_wake_words, kPictures,
         useless},
        {"wake_word", "4 separable convolutions over steps", Shape{30, 40}, 3, wake_word, kSteps},
    };
  }();
  return models;
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

Shape Model::input(std::int64_t batch) const {
  std::vector<std::int64_t> extents = image.to_vector();
  extents.insert(extents.begin(), batch);
  return Shape(extents);
}

namespace {

constexpr std::array<std::string_view, 3> kExamples = {"pictures [h, w, c]", "[steps, channels] or pictures [h, w, c]",
                                                       "examples [...]"};

bool takes(const Model& model, int rank) {
  switch (model.examples) {
    case Examples::kPictures:
      return rank == 3;
    case Examples::kSteps:
      return rank == 2 || rank == 3;
    case Examples::kAny:
      return rank > 0;
  }
  return false;
}

[[noreturn]] void refuse_input(const Model& model, const Shape& images) {
  std::vector<std::string> others;
  for (const Model& other : model_table())
    if (takes(other, images.rank() - 1)) others.emplace_back(other.name);
  const auto extents = images.extents();
  const Shape example = extents.empty() ? Shape{} : Shape(extents.subspan(1));
  fail(model.name, " takes ", kExamples[static_cast<std::size_t>(model.examples)],
       others.empty() ? concat(", not ", example) : concat("; ", joined(others), " take ", example));
}

}  // namespace

Output Model::build(Graph& graph, Output images, const ModelOptions& options) const {
  if (!takes(*this, images.shape().rank() - 1)) refuse_input(*this, images.shape());
  return network(graph, images, options);
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

ParameterCounts count_parameters(const Model& model, const Graph& graph) {
  ParameterCounts counts = {.trained = size_of(graph, 1).parameters, .folded = 0, .keras = 0};
  counts.keras = counts.trained;
  const std::unordered_set<const Node*> unused = unused_nodes(graph);
  for (const Node* node : graph.nodes()) {
    if (unused.contains(node)) continue;
    if (multiply_adds_of(node->op(), node->input_specs()) > 0)
      counts.folded += node->input(1).shape().elements() + node->output().shape().channels();
    if (node->as<layers::BatchNorm>())
      counts.keras += (model.has_useless_biases ? 3 : 2) * node->output().shape().channels();
  }
  return counts;
}

}  // namespace miniqat::models
