#include "models/blocks.h"
#include "models/networks.h"

namespace miniqat::models {

/// A multilayer perceptron for inputs of any rank: flatten, dense 128, Relu, dense 64, Relu, dense `outputs`. Nodes
/// live under flatten, fc1, fc2, fc3.
Output mlp(Graph& graph, Output images, const ModelOptions& options) {
  Output x = flatten(graph, "flatten", images);
  x = dense_relu(graph, "fc1", x, scaled(128, options.width));
  x = dense_relu(graph, "fc2", x, scaled(64, options.width));
  return dense(graph, "fc3", x, options.outputs);
}

}  // namespace miniqat::models
