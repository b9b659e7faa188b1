#pragma once

#include <cstdint>
#include <string>

#include "core/graph.h"
#include "layers/layers.h"

namespace miniqat::models {

// What models are put together from. Each block adds its variables and ops under the scope `name`.

struct ConvBlock {
  std::int64_t channels = 0;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  layers::Padding padding = layers::Padding::kSame;
};

/// `name`/weights (He normal), Conv2D, biases (zeros), BiasAdd, Relu. x: [n, h, w, c].
Output conv_relu(Graph& graph, const std::string& name, Output x, const ConvBlock& block);

/// `name`/weights (Glorot uniform), MatMul, biases (zeros), BiasAdd. x: [n, inputs] -> [n, outputs].
Output dense(Graph& graph, const std::string& name, Output x, std::int64_t outputs);

/// dense with He normal weights and a Relu after it.
Output dense_relu(Graph& graph, const std::string& name, Output x, std::int64_t outputs);

/// 2x2 windows, stride 2, VALID.
Output max_pool(Graph& graph, const std::string& name, Output x);

/// [n, ...] -> [n, product of the rest].
Output flatten(Graph& graph, const std::string& name, Output x);

/// channels * width, rounded, at least 1.
std::int64_t scaled(std::int64_t channels, double width);

}  // namespace miniqat::models
