#include "training/model_source.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/graph/graph_json.h"
#include "core/graph/losses.h"
#include "core/graph/reach.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/known_datasets.h"
#include "importers/onnx/import.h"
#include "layers/layers.h"
#include "models/models.h"
#include "quantize/graph_matcher.h"
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

/// A network, what its file calls the outputs, and what the graph does otherwise than the file.
struct NamedNetwork {
  Graph graph;
  std::vector<std::string> outputs;
  std::vector<std::string> notes = {};
};

NamedNetwork read_named_network(const std::filesystem::path& path, std::int64_t batch_size,
                                const std::optional<Shape>& pictures, bool keeps_softmax = false,
                                const std::string& wanted = {}) {
  if (is_onnx_file(path.string())) {
    importers::ImportOptions options{.batch_size = batch_size, .keeps_softmax = keeps_softmax, .output = wanted};
    if (pictures && pictures->rank() > 1) {
      options.height = (*pictures)[0];
      options.width = (*pictures)[1];
      options.keeps_size = true;
    }
    importers::ImportedModel model = importers::import_onnx(path, options);
    return {.graph = std::move(model.graph),
            .outputs = std::move(model.output_names),
            .notes = std::move(model.report.notes)};
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
  return find_images(network.graph, file).shape()[0];
}

void check_model_name(const std::string& model) {
  if (!is_graph_file(model)) models::find_model(model);
}

namespace {

/// At the end of the network, where only what keeps the numbers lies behind it, the op that its loss has as well; null
/// without one. A Softmax over other axes than the outputs is another function.
Node* find_op_of_loss(const Classifier& network) {
  constexpr std::array<std::string_view, 3> kBehind = {layers::Identity::kType, layers::Reshape::kType,
                                                       layers::Dropout::kType};
  Node& end = *quantize::source_through(network.logits, kBehind).node;
  const bool is_over_outputs = !end.as<layers::Softmax>() || end.output().shape().channels() == network.outputs();
  const std::size_t readers = end.uses().size() + (end.output() == network.logits ? 1 : 0);
  return end.type() == network.task->op_of_loss && is_over_outputs && readers == 1 ? &end : nullptr;
}

/// Returns what is to be said of it, as import_onnx() does; "" where there is nothing to leave out.
std::string leave_out_op_of_loss(Classifier& network) {
  Node* end = find_op_of_loss(network);
  if (end == nullptr) return "";
  const std::string type(end->type()), name = quote(end->name());
  network.graph.reroute(end->output(), end->input(0));
  network.graph.erase(*end);
  network.logits = network.graph.outputs().front();
  return concat("the final ", type, " ", name, " is left out: the network gives logits, whose loss has a ",
                type == layers::Softmax::kType ? "softmax" : "sigmoid", " of its own");
}

/// The network of a model file for a batch size: its copy or, if there is none, the file. An ONNX file is also read if
/// the copy has another batch size; runs of earlier versions were trained without its Softmax, whatever their task, or
/// with one behind which other outputs lie.
/// `is_certain`: whether that is the task, not only a guess for the first look.
Classifier read_classifier(const ClassifierOptions& options, const Shape& example, const Task& task,
                           bool is_certain = true) {
  bool leaves_out = true, keeps_softmax = is_certain && task.op_of_loss != layers::Softmax::kType;
  if (!options.model_graph.empty()) {
    Classifier copy = find_classifier(read_network(options.model_graph), options.model_graph, task);
    if (copy.images.shape()[0] == options.batch_size || !is_onnx_file(options.model)) return copy;
    leaves_out = find_op_of_loss(copy) == nullptr;
    keeps_softmax = keeps_softmax && copy.logits.node->as<layers::Softmax>() != nullptr;
  }
  NamedNetwork network = read_named_network(options.model, options.batch_size, example, keeps_softmax,
                                            leaves_out ? options.output : std::string());
  std::vector<std::string> left_out = choose_output_of(network, options.model, options.output);
  Classifier classifier;
  try {
    classifier = find_classifier(std::move(network.graph), options.model, task);
  } catch (const Error& error) {
    fail(error.what(), left_out.empty() ? "" : concat("; `output` chooses another output: ", joined(left_out)));
  }
  classifier.left_out = std::move(left_out);
  classifier.output_name = classifier.logits.name();
  if (const std::string note = leaves_out ? leave_out_op_of_loss(classifier) : ""; !note.empty())
    network.notes.push_back(note);
  // Who goes on with a run has heard them.
  if (options.model_graph.empty()) classifier.notes = std::move(network.notes);
  return classifier;
}

constexpr const char* kWhatHasLogits = "a network for classes has a logit for each class (softmax)";

std::string other_outputs(const Classifier& classifier) {
  return classifier.left_out.empty() ? "" : concat("; `output` chooses another output: ", joined(classifier.left_out));
}

/// A network for something else. Known before any picture is.
void refuse_one_logit(const Classifier& classifier, const std::string& source) {
  const Shape& logits = classifier.logits.shape();
  if (classifier.task == &classification() && logits[1] == 1)
    fail(source, ": the logits are ", logits, ": ", classifier.logits.name(),
         " gives one number for an example, a regression or the logit of a sigmoid (`task`), and ", kWhatHasLogits,
         other_outputs(classifier));
}

void require_outputs(const Classifier& classifier, const datasets::Dataset& dataset, const std::string& source) {
  const std::int64_t needed = classifier.task->outputs_for(dataset);
  if (classifier.outputs() == needed) return;
  refuse_one_logit(classifier, source);
  const Shape& outputs = classifier.logits.shape();
  fail(source, ": the ", classifier.task->outputs, " are ", outputs, ", ", dataset.name, " needs ",
       Shape{outputs[0], needed}, classifier.task == &classification() ? concat("; ", kWhatHasLogits) : "",
       other_outputs(classifier));
}

}  // namespace

const Task& guessed_task(const std::string& model, const datasets::Dataset& dataset) {
  if (is_model_name(model) && models::find_model(model).reconstructs) return reconstruction();
  return task_for(dataset);
}

Classifier make_classifier(const ClassifierOptions& options, const datasets::Dataset& dataset) {
  const Task& task = options.task == nullptr ? guessed_task(options.model, dataset) : *options.task;
  if (is_graph_file(options.model)) {
    Classifier classifier = read_classifier(options, dataset.example_shape(), task);
    require_fit(classifier, dataset, options.model);
    if (classifier.images.shape()[0] != options.batch_size)
      fail(options.model, ": the input ", classifier.images.shape(), " is for batches of ",
           classifier.images.shape()[0], ", `batch_size` is ", options.batch_size * options.shards,
           options.shards > 1 ? concat(", a slice of ", options.shards, " has ", options.batch_size) : "");
    return classifier;
  }
  if (!(options.width > 0 && options.width <= 16)) fail("`width` must be in (0, 16], is ", options.width);
  if (options.batch_size < 1) fail("a batch has at least 1 example, `batch_size` is ", options.batch_size);
  Classifier classifier;
  classifier.task = &task;
  std::vector<std::int64_t> extents = {options.batch_size};
  const Shape example = dataset.example_shape();
  extents.insert(extents.end(), example.extents().begin(), example.extents().end());
  classifier.images =
      layers::placeholder(classifier.graph, dataset.has_pictures() ? "images" : "inputs", Shape(extents));
  classifier.logits =
      models::find_model(options.model)
          .build(classifier.graph, classifier.images, {.outputs = task.outputs_for(dataset), .width = options.width});
  classifier.graph.set_outputs({classifier.logits});
  require_outputs(classifier, dataset, options.model);
  return classifier;
}

Output find_images(const Graph& graph, const std::string& source) {
  std::vector<const Node*> pictures, others;
  for (const Node* node : graph.nodes()) {
    const bool is_only_target = !node->uses().empty() && std::ranges::all_of(node->uses(), is_target);
    if (node->as<Placeholder>() == nullptr || node->output_specs()[0].dtype != DType::kFloat32 || is_only_target)
      continue;
    const std::size_t rank = node->output_specs()[0].shape.rank();
    if (rank >= 2) (rank == 4 ? pictures : others).push_back(node);
  }
  const std::vector<const Node*>& found = pictures.empty() ? others : pictures;
  if (found.size() > 1)
    fail(source, ": both ", describe(*found[0]), " and ", describe(*found[1]), " could take the ",
         pictures.empty() ? "examples" : "pictures");
  if (found.empty()) fail(source, ": no float32 Placeholder [n, ...] takes the examples");
  return found.front()->output();
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
  if (!datasets::is_path(dataset) || input.rank() != 4 || example.rank() != 3) return "";
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

void find_logits(Classifier& classifier, const std::string& source) {
  const bool has_classes = classifier.task == &classification();
  if (classifier.graph.outputs().empty()) fail(source, ": \"outputs\" must name the ", classifier.task->outputs);
  classifier.logits = classifier.graph.outputs().front();
  const Shape& outputs = classifier.logits.shape();
  if (outputs.rank() == 0 || outputs[0] != classifier.images.shape()[0] || (has_classes && outputs.rank() != 2))
    fail(source, ": the first output, ", classifier.logits.name(), " ", outputs, ", must be ", classifier.task->outputs,
         " [n, ", has_classes ? "classes" : "...", "]");
}

Classifier find_classifier(Graph graph, const std::string& source, const Task& task) {
  Classifier classifier{.graph = std::move(graph), .images = {}, .logits = {}, .task = &task};
  classifier.images = find_images(classifier.graph, source);
  find_logits(classifier, source);
  if (const Node* other = find_other_input(classifier.graph, classifier.logits, classifier.images))
    fail(source, ": ", classifier.logits.name(), " depends on ", describe(*other), " as well as on the examples of ",
         describe(*classifier.images.node), "; nothing else can be fed in training");
  return classifier;
}

void require_pictures_fit(const Output& images, const Shape& example, const std::string& dataset,
                          const std::string& source) {
  const Shape& input = images.shape();
  if (Shape(input.extents().subspan(1)) != example)
    fail(source, ": the input is ", input, ", the ", example.rank() == 3 ? "pictures" : "examples", " of ", dataset,
         " are ", example);
}

void require_pictures_fit(const ClassifierOptions& options, const Shape& example, const std::string& dataset) {
  // Whose outputs these are is known with the data only, but of a user who says it.
  const Task* task = options.task;
  const Classifier classifier =
      read_classifier(options, example, task == nullptr ? regression() : *task, task != nullptr);
  const Shape& input = classifier.images.shape();
  try {
    require_pictures_fit(classifier.images, example, dataset, options.model);
  } catch (const Error& error) {
    fail(error.what(), settings_that_fit(input, example, dataset));
  }
  if (task != nullptr) refuse_one_logit(classifier, options.model);
}

void require_fit(const Classifier& classifier, const datasets::Dataset& dataset, const std::string& source) {
  require_pictures_fit(classifier.images, dataset.example_shape(), dataset.name, source);
  require_outputs(classifier, dataset, source);
}

namespace {

bool is_unread(const Graph& graph, const Node& node) { return node.uses().empty() && !graph.is_output(node.output()); }

/// Erases what nothing reads: a placeholder, or a tensor with all that only it reads.
void erase_target(Graph& graph, Node& node) {
  if (!is_unread(graph, node) || (node.inputs().empty() && node.as<Placeholder>() == nullptr)) return;
  const std::vector<Output> inputs(node.inputs().begin(), node.inputs().end());
  graph.erase(node);
  for (const Output& input : inputs)
    if (graph.owns(input.node)) erase_target(graph, *input.node);
}

}  // namespace

Classifier without_loss(const Classifier& training) {
  Classifier copy{.graph = training.graph.clone(), .images = {}, .logits = {}, .task = training.task};
  Graph& graph = copy.graph;
  std::vector<Node*> losses;
  for (Node* node : graph.nodes())
    if (is_loss(*node) && is_unread(graph, *node)) losses.push_back(node);
  for (Node* node : losses) {
    Node& target = *target_of(*node).node;
    graph.erase(*node);
    erase_target(graph, target);
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
  Classifier copy{.graph = with_quantizers(network.graph, {}), .images = {}, .logits = {}, .task = network.task};
  copy.images = copy.graph.output_at(network.images.name());
  copy.logits = copy.graph.outputs().front();
  return copy;
}

Classifier evaluation_of(const Classifier& training) {
  Classifier evaluation = without_loss(training);
  quantize::turn_to_evaluation(evaluation.graph);
  return evaluation;
}

TrainingEnds add_loss(Classifier& classifier, const LossOptions& options) {
  return classifier.task->add_loss(classifier.graph, classifier.images, classifier.logits, options);
}

}  // namespace miniqat::training
