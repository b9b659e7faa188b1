#pragma once

#include <cstdint>
#include <string>

#include "core/graph/graph.h"
#include "layers/layers.h"

namespace miniqat::models {

// What models are put together from. Each block adds its variables and ops under the scope `name`.

/// Rows and columns of a filter; one number for both.
struct Kernel {
  std::int64_t rows = 3;
  std::int64_t columns = 3;

  constexpr Kernel(std::int64_t side) : rows(side), columns(side) {}
  constexpr Kernel(std::int64_t of_rows, std::int64_t of_columns) : rows(of_rows), columns(of_columns) {}
};

struct ConvBlock {
  std::int64_t channels = 0;
  Kernel kernel = 3;
  std::int64_t stride = 1;
  Padding padding = Padding::kSame;
};

/// `name`/weights (He normal), Conv2D, biases (zeros), BiasAdd. x: [n, h, w, c].
Output conv_bias(Graph& graph, const std::string& name, Output x, const ConvBlock& block);

/// conv_bias with a Relu after it.
Output conv_relu(Graph& graph, const std::string& name, Output x, const ConvBlock& block);

enum class Activation { kNone, kRelu, kRelu6 };

/// What follows a layer without bias: `name`/BatchNorm with the variables gamma (ones), beta (zeros), moving_mean
/// (zeros) and moving_variance (ones) under its own name, then Relu or Relu6.
struct Normalisation {
  Activation activation = Activation::kRelu6;
  layers::BatchNormAttributes batch_norm = {};
};

/// `name`/weights (He normal), Conv2D and the normalisation. x: [n, h, w, c].
Output conv_norm(Graph& graph, const std::string& name, Output x, const ConvBlock& block,
                 const Normalisation& normalisation);

struct DepthwiseBlock {
  Kernel kernel = 3;
  std::int64_t stride = 1;
  Padding padding = Padding::kSame;
};

/// `name`/weights (He normal of the kernel's pixels), DepthwiseConv2d (multiplier 1). x: [n, h, w, c].
Output depthwise(Graph& graph, const std::string& name, Output x, const DepthwiseBlock& block);

/// depthwise and the normalisation.
Output depthwise_norm(Graph& graph, const std::string& name, Output x, const DepthwiseBlock& block,
                      const Normalisation& normalisation);

/// `name`/Mean over height and width: [n, h, w, c] -> [n, c].
Output global_mean(Graph& graph, const std::string& name, Output x);

/// `name`/weights (Glorot uniform), MatMul, biases (zeros), BiasAdd. x: [n, inputs] -> [n, outputs].
Output dense(Graph& graph, const std::string& name, Output x, std::int64_t outputs);

/// dense with He normal weights and a Relu after it.
Output dense_relu(Graph& graph, const std::string& name, Output x, std::int64_t outputs);

/// `name`/weights (He normal), MatMul and the normalisation. x: [n, inputs] -> [n, outputs].
Output dense_norm(Graph& graph, const std::string& name, Output x, std::int64_t outputs,
                  const Normalisation& normalisation);

/// 2x2 windows, stride 2, VALID.
Output max_pool(Graph& graph, const std::string& name, Output x);

/// [n, ...] -> [n, product of the rest]; a matrix stays as it is.
Output flatten(Graph& graph, const std::string& name, Output x);

/// channels * width, rounded, at least 1.
std::int64_t scaled(std::int64_t channels, double width);

/// The stride of a MobileNet's first convolution: 2, and 1 for images [n, h, w, c] of at most 64 pixels a side, which
/// the published strides would shrink to two pixels or one.
std::int64_t first_stride(const Shape& images);

}  // namespace miniqat::models
