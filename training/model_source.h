#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "datasets/dataset.h"
#include "training/task/task.h"

namespace miniqat::training {

/// A network as a graph with its ends, and what it learns.
struct Classifier {
  Graph graph;
  /// float32 placeholder, [n, h, w, c] of pictures, [n, ...] of numbers.
  Output images;
  /// The graph's first output: [n, classes] of a network that tells classes apart, [n, ...] of any other. A rewrite of
  /// the graph in place may put another there and remove the node of this one: find_logits() behind it.
  Output logits;
  /// The names of the outputs that were left out of a model file with several.
  std::vector<std::string> left_out = {};
  /// What the model file calls the output that was kept; empty for a model that has a name, and for a run's copy.
  std::string output_name = {};
  /// Whatever it does otherwise than the model file (importers::ImportReport): "the final Softmax ... is left out:
  /// ...". Empty for a model that has a name, and for a run's copy.
  std::vector<std::string> notes = {};
  const Task* task = &classification();

  /// Numbers that it gives for an example.
  std::int64_t outputs() const { return logits.shape().elements() / logits.shape()[0]; }
};

/// Whether --model names a file rather than a model from `miniqat models`.
bool is_graph_file(const std::string& model);
/// One of models::model_names().
bool is_model_name(const std::string& model);

/// Whether it is an ONNX model, which has weights, too.
bool is_onnx_file(const std::string& model);

/// Throws Error unless `model` is a known name or a path that ends in .json or .onnx.
void check_model_name(const std::string& model);

/// A graph JSON file with any of miniqat's ops, or an ONNX model (docs/import.md). `batch_size` is for the latter: 0 is
/// the file's, or 128 where the file leaves it open. `pictures`, [h, w, c] or [steps, c], have the height and width, or
/// the steps, of a model that leaves them open. Throws what read_graph() and import_onnx() throw.
Graph read_network(const std::filesystem::path& path, std::int64_t batch_size = 0,
                   const std::optional<Shape>& pictures = {});

/// Keeps one output of the graph and takes away what nothing but the others needs. `names` are the outputs' names in
/// the file, which the graph may call otherwise; `wanted` is a name there or here, "" the first output. Returns the
/// names of the others. Throws Error that lists the outputs if there is no such one.
std::vector<std::string> choose_output(Graph& graph, const std::vector<std::string>& names, const std::string& wanted);

/// The batch of a classifier in a graph JSON file, or the one that an ONNX model fixes; 0 where that leaves it open.
/// `output`: as in ClassifierOptions. Throws what read_network(), choose_output(), find_classifier() and
/// importers::fixed_batch() throw.
std::int64_t fixed_batch(const std::string& file, const std::string& output = {});

struct ClassifierOptions {
  std::string model;
  /// A copy of a model file's network, a graph JSON, which is read in its place; "" without one.
  std::string model_graph = {};
  double width = 1.0;
  std::int64_t batch_size = 128;
  /// The output of a model file that has the logits, by its name there or in the graph; "" is the first.
  std::string output = {};
  /// For errors: so many such batches are one of --batch-size.
  std::int64_t shards = 1;
  /// Null: guessed_task().
  const Task* task = nullptr;
};

/// The task of a network where nobody names one: what the data are for (task_for()), or a model for one task has that.
const Task& guessed_task(const std::string& model, const datasets::Dataset& dataset);

/// Builds a model for a data set's examples, or reads it from a file and checks that its input and its first
/// output fit the data set, the task and the batch size. Of a file with several outputs one is kept (choose_output()),
/// and a Softmax or Sigmoid at its end, which the loss has, is left out; a run's copy has the network as it was
/// trained. Throws Error that says what does not fit.
Classifier make_classifier(const ClassifierOptions& options, const datasets::Dataset& dataset);

/// The graph's float placeholder that takes the examples: the only one of rank 4, or else the only one of rank 2 and
/// more that no loss reads as its target. Throws Error for none and for several. `source` names the graph in errors.
Output find_images(const Graph& graph, const std::string& source);

/// The ends of a graph that is there already: find_images() and its first output. Throws Error when there is no such
/// thing, where classes have no logits [n, classes], and where that output needs another input, too. `source` names the
/// graph in errors.
Classifier find_classifier(Graph graph, const std::string& source, const Task& task = classification());

/// Takes the graph's first output as the classifier's logits: as find_classifier() does, and anew behind a rewrite in
/// place. Throws Error where there is none, and where it does not have the shape of the task's outputs.
void find_logits(Classifier& classifier, const std::string& source);

/// Throws Error unless the network takes the data set's examples and gives what its task needs of them.
void require_fit(const Classifier& classifier, const datasets::Dataset& dataset, const std::string& source);

/// require_fit() of the examples alone, which have the shape of `example`.
void require_pictures_fit(const Output& images, const Shape& example, const std::string& dataset,
                          const std::string& source);

/// Throws Error unless the classifier in a model file takes such pictures; it names the flags of `train` that help.
void require_pictures_fit(const ClassifierOptions& options, const Shape& example, const std::string& dataset);

/// Adds the loss of the network's task.
TrainingEnds add_loss(Classifier& classifier, const LossOptions& options = {});

/// A copy of a classifier without the losses that nothing reads and what only their targets are computed from: without
/// what add_loss() gave it. Throws Error for a graph without outputs.
Classifier without_loss(const Classifier& training);

/// A clone of the graph in which only the named quantizers work; the others' readers take what these read.
Graph with_quantizers(const Graph& graph, const std::set<std::string>& working);

/// A copy of a classifier in which no quantizer works.
Classifier without_quantizers(const Classifier& network);

/// The evaluation graph of a classifier whose graph create_training_graph() has rewritten: a copy without loss, turned
/// to evaluation. Its variables have the names that they have in the training graph.
Classifier evaluation_of(const Classifier& training);

}  // namespace miniqat::training
