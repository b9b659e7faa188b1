#pragma once

#include "models/models.h"

namespace miniqat::models {

/// A multilayer perceptron for inputs of any rank: flatten, dense 128, Relu, dense 64, Relu, dense `outputs`. Nodes
/// live under flatten, fc1, fc2, fc3.
Output mlp(Graph& graph, Output images, const ModelOptions& options = {});

}  // namespace miniqat::models
