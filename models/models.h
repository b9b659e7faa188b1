#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "models/model_options.h"

namespace miniqat::models {

/// The examples that a model takes.
enum class Examples {
  /// [h, w, c].
  kPictures,
  /// [steps, channels], and pictures.
  kSteps,
  /// Examples of any rank: it flattens them.
  kAny,
};

struct Model {
  std::string_view name;
  std::string_view summary;
  /// The published input without its batch, [h, w, c] of pictures, and the published number of outputs.
  Shape image;
  std::int64_t outputs;
  /// Builds the layers onto `images` of a rank that the model takes.
  Output (*network)(Graph& graph, Output images, const ModelOptions& options);
  Examples examples = Examples::kPictures;
  /// Whether the reference network's layers before a batch norm have biases, which a batch norm makes useless: it takes
  /// the mean away. Ours have none.
  bool has_useless_biases = false;
  /// The network gives as many numbers as an example has, whatever ModelOptions::outputs says.
  bool reconstructs = false;

  /// The published input of a batch.
  Shape input(std::int64_t batch) const;
  /// Builds its layers onto `images` [n, ...] and returns [n, outputs]. Throws Error for a rank that it does not take:
  /// the line names the shape of an example and the models that take it.
  Output build(Graph& graph, Output images, const ModelOptions& options) const;
};

/// All models, in the order in which `miniqat models` lists them.
std::span<const Model> model_table();

/// The names of all models, in the order of model_table().
std::vector<std::string> model_names();

/// Throws Error that lists the known names.
const Model& find_model(std::string_view name);

struct ModelSize {
  std::int64_t parameters = 0;
  std::int64_t multiply_adds = 0;
};

/// Trainable parameters and multiply-adds of one image (the graph's total over its batch), of what reaches an output.
ModelSize size_of(const Graph& graph, std::int64_t batch);

/// The parameters of a network that a model built, counted in three ways.
struct ParameterCounts {
  /// What an optimizer updates.
  std::int64_t trained = 0;
  /// The weights of the layers and a bias for each of their output channels: what integers have, and what is left once
  /// batch norms are folded.
  std::int64_t folded = 0;
  /// What Keras says of the reference network, and benchmarks publish: also moving statistics, and biases that a batch
  /// norm makes useless.
  std::int64_t keras = 0;
};

ParameterCounts count_parameters(const Model& model, const Graph& graph);

}  // namespace miniqat::models
