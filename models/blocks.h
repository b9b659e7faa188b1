#pragma once

#include <cstdint>
#include <string>

#include "core/graph/graph.h"
#include "layers/layers.h"

namespace miniqat::models {

// What models are put together from. Each block adds its variables and ops under the scope `name`.

struct ConvBlock {
  std::int64_t channels = 0;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  Padding padding = Padding::kSame;
};

/// `name`/weights (He normal), Conv2D, biases (zeros), BiasAdd, Relu. x: [n, h, w, c].
Output conv_relu(Graph& graph, const std::string& name, Output x, const ConvBlock& block);

enum class Activation { kNone, kRelu, kRelu6 };

/// What follows a convolution without bias: `name`/BatchNorm with the variables gamma (ones), beta (zeros), moving_mean
/// (zeros) and moving_variance (ones) under its own name, then Relu or Relu6.
struct Normalisation {
  Activation activation = Activation::kRelu6;
  layers::BatchNormAttributes batch_norm = {};
};

/// `name`/weights (He normal), Conv2D and the normalisation. x: [n, h, w, c].
Output conv_norm(Graph& graph, const std::string& name, Output x, const ConvBlock& block,
                 const Normalisation& normalisation);

struct DepthwiseBlock {
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
};

/// `name`/weights (He normal of the kernel's pixels), DepthwiseConv2d (SAME, multiplier 1) and the normalisation.
/// x: [n, h, w, c].
Output depthwise_norm(Graph& graph, const std::string& name, Output x, const DepthwiseBlock& block,
                      const Normalisation& normalisation);

/// `name`/Mean over height and width: [n, h, w, c] -> [n, c].
Output global_mean(Graph& graph, const std::string& name, Output x);

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

/// The stride of a MobileNet's first convolution: 2, and 1 for images [n, h, w, c] of at most 64 pixels a side, which
/// the published strides would shrink to two pixels or one.
std::int64_t first_stride(const Shape& images);

}  // namespace miniqat::models
