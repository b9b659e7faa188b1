#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::models {

struct ModelOptions {
  std::int64_t classes = 10;
  /// Multiplies the channels of every layer but the last; at least one channel stays. (mobilenet_v2 rounds in its own
  /// way: see there.)
  double width = 1.0;
  /// The decay of the moving statistics, for models with batch norm.
  double batch_norm_decay = 0.99;
};

/// A model by name: builds its layers onto `images` [n, h, w, c] and returns the logits [n, classes].
using Builder = Output (*)(Graph& graph, Output images, const ModelOptions& options);

struct Model {
  std::string_view name;
  std::string_view summary;
  /// The published input, [h, w, c], and number of classes.
  Shape image;
  std::int64_t classes;
  Builder build;
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

}  // namespace miniqat::models
