#include "training/model_source.h"

#include <algorithm>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/graph/graph_json.h"
#include "core/graph/reach.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/user_files.h"
#include "importers/onnx/import.h"
#include "layers/layers.h"
#include "models/models.h"
#include "quantize/op_roles.h"
#include "quantize/quantize.h"

namespace miniqat::training {

bool is_model_name(const std::string& model) {
  const std::vector<std::string> names = models::model_names();
  return std::ranges::find(names, model) != names.end();
}

bool is_graph_file(const std::string& model) { return model.ends_with(".json") || is_onnx_file(model); }

bool is_onnx_file(const std::string& model) { return model.ends_with(".onnx"); }

namespace {

/// A network and what its file calls the outputs.
struct NamedNetwork {
  Graph graph;
  std::vector<std::string> outputs;
};

NamedNetwork read_named_network(const std::filesystem::path& path, std::int64_t batch_size,
                                const std::optional<Shape>& pictures) {
  if (is_onnx_file(path.string())) {
    importers::ImportOptions options{.batch_size = batch_size};
    if (pictures) options = {batch_size, (*pictures)[0], (*pictures)[1], true};
    importers::ImportedModel model = importers::import_onnx(path, options);
    return {.graph = std::move(model.graph), .outputs = std::move(model.output_names)};
  }
  layers::register_ops();
  quantize::register_ops();
  NamedNetwork network{.graph = read_graph(path), .outputs = {}};
  for (const Output& output : network.graph.outputs()) network.outputs.push_back(output.name());
  return network;
}

/// The nodes that only these need, and all that is computed from them.
void erase_behind(Graph& graph, const std::vector<Output>& others) {
  const std::unordered_set<const Node*> kept = nodes_behind(graph.outputs());
  std::unordered_set<const Node*> gone = nodes_behind(others);
  std::erase_if(gone, [&](const Node* node) { return kept.contains(node); });
  std::vector<Node*> order = graph.topological_order();
  for (const Node* node : order)
    if (std::ranges::any_of(node->inputs(), [&](const Output& input) { return gone.contains(input.node); }))
      gone.insert(node);
  std::ranges::reverse(order);
  for (Node* node : order)
    if (gone.contains(node)) graph.erase(*node);
}

}  // namespace

Graph read_network(const std::filesystem::path& path, std::int64_t batch_size, const std::optional<Shape>& pictures) {
  return read_named_network(path, batch_size, pictures).graph;
}

std::vector<std::string> choose_output(Graph& graph, const std::vector<std::string>& names, const std::string& wanted) {
  const std::vector<Output> outputs = graph.outputs();
  std::size_t chosen = 0;
  while (!wanted.empty() && chosen < outputs.size() && names[chosen] != wanted && outputs[chosen].name() != wanted)
    ++chosen;
  if (chosen == outputs.size() && !wanted.empty())
    fail("there is no output ", quote(wanted), " (`output`); the outputs are: ", joined(names));
  if (outputs.size() < 2) return {};
  graph.set_outputs({outputs[chosen]});
  erase_behind(graph, outputs);
  std::vector<std::string> others = names;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(chosen));
  return others;
}

namespace {

std::vector<std::string> choose_output_of(NamedNetwork& network, const std::string& file, const std::string& wanted) {
  try {
    return choose_output(network.graph, network.outputs, wanted);
  } catch (const Error& error) {
    fail(file, ": ", error.what());
  }
}

}  // namespace

std::int64_t fixed_batch(const std::string& file, const std::string& output) {
  if (is_onnx_file(file)) return importers::fixed_batch(file);
  NamedNetwork network = read_named_network(file, 0, {});
  if (!output.empty()) choose_output_of(network, file, output);
  return find_classifier(std::move(network.graph), file).images.shape()[0];
}

void check_model_name(const std::string& model) {
  if (!is_graph_file(model)) models::find_model(model);
}

Classifier read_classifier(const ClassifierOptions& options, const Shape& example) {
  if (!options.model_graph.empty()) {
    Classifier copy = find_classifier(read_network(options.model_graph), options.model_graph);
    if (copy.images.shape()[0] == options.batch_size || !is_onnx_file(options.model)) return copy;
  }
  NamedNetwork network = read_named_network(options.model, options.batch_size, example);
  std::vector<std::string> left_out = choose_output_of(network, options.model, options.output);
  Classifier classifier;
  try {
    classifier = find_classifier(std::move(network.graph), options.model);
  } catch (const Error& error) {
    fail(error.what(), left_out.empty() ? "" : concat("; `output` chooses another output: ", joined(left_out)));
  }
  classifier.left_out = std::move(left_out);
  return classifier;
}

namespace {

constexpr const char* kWhatIsTrained =
    "miniqat trains classifiers of pictures, which have a logit for each class (softmax)";

std::string other_outputs(const Classifier& classifier) {
  return classifier.left_out.empty() ? "" : concat("; `output` chooses another output: ", joined(classifier.left_out));
}

/// A network for something else. Known before any picture is.
void refuse_one_logit(const Classifier& classifier, const std::string& source) {
  const Shape& logits = classifier.logits.shape();
  if (logits[1] == 1)
    fail(source, ": the logits are ", logits, ": ", classifier.logits.name(),
         " gives one number for a picture, a regression or the logit of a sigmoid, and ", kWhatIsTrained,
         other_outputs(classifier));
}

void require_logits(const Classifier& classifier, const datasets::Dataset& dataset, const std::string& source) {
  const Shape& logits = classifier.logits.shape();
  if (logits[1] == dataset.classes) return;
  refuse_one_logit(classifier, source);
  fail(source, ": the logits are ", logits, ", ", dataset.name, " needs ", Shape{logits[0], dataset.classes}, "; ",
       kWhatIsTrained, other_outputs(classifier));
}

}  // namespace

Classifier make_classifier(const ClassifierOptions& options, const datasets::Dataset& dataset) {
  if (is_graph_file(options.model)) {
    Classifier classifier = read_classifier(options, dataset.example_shape());
    require_logits(classifier, dataset, options.model);
    require_fit(classifier, dataset, options.model);
    if (classifier.images.shape()[0] != options.batch_size)
      fail(options.model, ": the input ", classifier.images.shape(), " is for batches of ",
           classifier.images.shape()[0], ", `batch_size` is ", options.batch_size * options.shards,
           options.shards > 1 ? concat(", a slice of ", options.shards, " has ", options.batch_size) : "");
    return classifier;
  }
  Classifier classifier;
  const Shape example = dataset.example_shape();
  classifier.images =
      layers::placeholder(classifier.graph, "images", {options.batch_size, example[0], example[1], example[2]});
  classifier.logits =
      models::find_model(options.model)
          .build(classifier.graph, classifier.images, {.classes = dataset.classes, .width = options.width});
  classifier.graph.set_outputs({classifier.logits});
  return classifier;
}

Output find_images(const Graph& graph, const std::string& source) {
  const Node* found = nullptr;
  for (const Node* node : graph.nodes()) {
    const bool images = node->as<Placeholder>() != nullptr && node->output_specs()[0].dtype == DType::kFloat32 &&
                        node->output_specs()[0].shape.rank() == 4;
    if (!images) continue;
    if (found != nullptr)
      fail(source, ": both ", describe(*found), " and ", describe(*node), " could take the pictures");
    found = node;
  }
  if (found == nullptr) {
    const auto nodes = graph.nodes();
    const auto other = std::ranges::find_if(nodes, [](const Node* node) {
      return node->as<Placeholder>() != nullptr && node->output_specs()[0].dtype == DType::kFloat32;
    });
    fail(source, ": no float32 Placeholder [n, h, w, c] takes the pictures",
         other == nodes.end() ? ""
                              : concat("; ", describe(**other), " takes ", (*other)->output_specs()[0].shape,
                                       ", and miniqat trains classifiers of pictures"));
  }
  return found->output();
}

namespace {

/// The first Placeholder but `images` on which the tensor depends; null without.
const Node* find_other_input(const Graph& graph, const Output& tensor, const Output& images) {
  const std::unordered_set<const Node*> behind = nodes_behind(std::span(&tensor, 1));
  for (const Node* node : graph.nodes())
    if (node->as<Placeholder>() != nullptr && node != images.node && behind.contains(node)) return node;
  return nullptr;
}

/// The settings that make pictures of a user's own files fit; "" for data that have a name.
std::string settings_that_fit(const Shape& input, const Shape& example, const std::string& dataset) {
  if (!datasets::is_path(dataset)) return "";
  std::string settings;
  if (input[1] != example[0] || input[2] != example[1]) settings = concat("`image_size` ", input[1], "x", input[2]);
  const bool colour = input[3] != example[2];
  if (colour && input[3] != 1 && input[3] != 3) return "";
  if (colour) settings += concat(settings.empty() ? "" : " and ", "`colour` ", input[3] == 1 ? "grey" : "rgb");
  return settings.empty()
             ? ""
             : concat("; ", settings, settings.find(" and ") == std::string::npos ? " makes" : " make", " them fit");
}

}  // namespace

Classifier find_classifier(Graph graph, const std::string& source) {
  Classifier classifier{.graph = std::move(graph), .images = {}, .logits = {}};
  classifier.images = find_images(classifier.graph, source);
  if (classifier.graph.outputs().empty()) fail(source, ": \"outputs\" must name the logits");
  classifier.logits = classifier.graph.outputs().front();
  if (classifier.logits.shape().rank() != 2)
    fail(source, ": the first output, ", classifier.logits.name(), " ", classifier.logits.shape(),
         ", must be logits [n, classes]: miniqat trains classifiers of pictures");
  if (const Node* other = find_other_input(classifier.graph, classifier.logits, classifier.images))
    fail(source, ": ", classifier.logits.name(), " depends on ", describe(*other), " as well as on the pictures of ",
         describe(*classifier.images.node), "; nothing else can be fed in training");
  return classifier;
}

void require_pictures_fit(const Output& images, const Shape& example, const std::string& dataset,
                          const std::string& source) {
  const Shape& input = images.shape();
  if (Shape{input[1], input[2], input[3]} != example)
    fail(source, ": the input is ", input, ", the pictures of ", dataset, " are ", example);
}

void require_pictures_fit(const ClassifierOptions& options, const Shape& example, const std::string& dataset) {
  const Classifier classifier = read_classifier(options, example);
  const Shape& input = classifier.images.shape();
  try {
    require_pictures_fit(classifier.images, example, dataset, options.model);
  } catch (const Error& error) {
    fail(error.what(), settings_that_fit(input, example, dataset));
  }
  refuse_one_logit(classifier, options.model);
}

void require_fit(const Classifier& classifier, const datasets::Dataset& dataset, const std::string& source) {
  require_pictures_fit(classifier.images, dataset.example_shape(), dataset.name, source);
  const Shape& images = classifier.images.shape();
  const Shape& logits = classifier.logits.shape();
  if (logits != Shape{images[0], dataset.classes})
    fail(source, ": the logits are ", logits, ", ", dataset.name, " needs ", Shape{images[0], dataset.classes});
}

Classifier without_loss(const Classifier& training) {
  Classifier copy{.graph = training.graph.clone(), .images = {}, .logits = {}};
  Graph& graph = copy.graph;
  const auto unread = [&](const Node& node) { return node.uses().empty() && !graph.is_output(node.output()); };
  std::vector<Node*> losses;
  for (Node* node : graph.nodes())
    if (node->as<layers::SoftmaxCrossEntropy>() != nullptr && unread(*node)) losses.push_back(node);
  for (Node* node : losses) {
    Node& labels = *node->input(1).node;
    graph.erase(*node);
    if (labels.as<Placeholder>() != nullptr && unread(labels)) graph.erase(labels);
  }
  copy.images = graph.at(training.images.node->name()).output();
  if (graph.outputs().empty()) fail("the classifier's graph has no outputs any more");
  copy.logits = graph.outputs().front();
  return copy;
}

Graph with_quantizers(const Graph& graph, const std::set<std::string>& working) {
  Graph clone = graph.clone();
  for (const Node* node : clone.topological_order())
    if (quantize::is_quantizer(*node) && !working.contains(node->name())) clone.reroute(node->output(), node->input(0));
  return clone;
}

Classifier without_quantizers(const Classifier& network) {
  Classifier copy{.graph = with_quantizers(network.graph, {}), .images = {}, .logits = {}};
  copy.images = copy.graph.output_at(network.images.name());
  copy.logits = copy.graph.outputs().front();
  return copy;
}

Classifier evaluation_of(const Classifier& training) {
  Classifier evaluation = without_loss(training);
  quantize::turn_to_evaluation(evaluation.graph);
  return evaluation;
}

TrainingEnds add_loss(Classifier& classifier, double label_smoothing, std::vector<double> class_weights) {
  Graph& graph = classifier.graph;
  const Output labels =
      layers::placeholder(graph, graph.unique_name("labels"), {classifier.logits.shape()[0]}, DType::kInt32);
  return {labels, layers::softmax_cross_entropy(
                      graph, classifier.logits, labels, graph.unique_name("loss"),
                      {.label_smoothing = label_smoothing, .class_weights = std::move(class_weights)})};
}

}  // namespace miniqat::training
