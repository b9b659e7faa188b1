#include "models/mlp.h"

#include "models/blocks.h"

namespace miniqat::models {

Output mlp(Graph& graph, Output images, const ModelOptions& options) {
  require_input("mlp", images.shape());
  Output x = flatten(graph, "flatten", images);
  x = dense_relu(graph, "fc1", x, scaled(128, options.width));
  x = dense_relu(graph, "fc2", x, scaled(64, options.width));
  return dense(graph, "fc3", x, options.outputs);
}

}  // namespace miniqat::models
