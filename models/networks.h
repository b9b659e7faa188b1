#pragma once

#include "core/graph/graph.h"
#include "models/model_options.h"

namespace miniqat::models {

// The networks of the table in models.cpp. The comment of each, with its paper and its nodes, is in its file.

Output autoencoder(Graph& graph, Output images, const ModelOptions& options);
Output ds_cnn(Graph& graph, Output images, const ModelOptions& options);
Output lenet(Graph& graph, Output images, const ModelOptions& options);
Output lenet5(Graph& graph, Output images, const ModelOptions& options);
Output lenet_bn(Graph& graph, Output images, const ModelOptions& options);
Output mlp(Graph& graph, Output images, const ModelOptions& options);
Output mobilenet_v1(Graph& graph, Output images, const ModelOptions& options);
Output mobilenet_v2(Graph& graph, Output images, const ModelOptions& options);
Output resnet20(Graph& graph, Output images, const ModelOptions& options);
Output resnet8(Graph& graph, Output images, const ModelOptions& options);
Output visual_wake_words(Graph& graph, Output images, const ModelOptions& options);
Output wake_word(Graph& graph, Output images, const ModelOptions& options);

}  // namespace miniqat::models
