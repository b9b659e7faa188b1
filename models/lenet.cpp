#include <functional>
#include <string>

#include "models/blocks.h"
#include "models/networks.h"

namespace miniqat::models {
namespace {

/// A convolution with its Relu.
using Convolution = std::function<Output(const std::string& name, Output x, const ConvBlock& block)>;

Output lenet_of(Graph& graph, Output images, const ModelOptions& options, const Convolution& convolution) {
  const auto wide = [&](std::int64_t channels) { return scaled(channels, options.width); };
  Output x = convolution("conv1", images, {.channels = wide(32), .kernel = 5});
  x = max_pool(graph, "pool1", x);
  x = convolution("conv2", x, {.channels = wide(64), .kernel = 5});
  x = max_pool(graph, "pool2", x);
  x = dense_relu(graph, "fc1", flatten(graph, "flatten", x), wide(1024));
  x = layers::dropout(graph, "dropout", x, {.rate = 0.5});
  return dense(graph, "fc2", x, options.outputs);
}

}  // namespace

/// The LeNet of TensorFlow's MNIST tutorial: conv 5x5x32 SAME, Relu, max pool 2, conv 5x5x64 SAME, Relu, max pool 2,
/// dense 1024, Relu, dropout 0.5, dense `outputs`. Nodes live under conv1, pool1, conv2, pool2, fc1, dropout, fc2.
Output lenet(Graph& graph, Output images, const ModelOptions& options) {
  return lenet_of(graph, images, options, [&](const std::string& name, Output x, const ConvBlock& block) {
    return conv_relu(graph, name, x, block);
  });
}

/// lenet with batch norms instead of biases after its convolutions, before their Relus.
Output lenet_bn(Graph& graph, Output images, const ModelOptions& options) {
  const Normalisation normalisation = {.activation = Activation::kRelu,
                                       .batch_norm = {.decay = options.batch_norm_decay}};
  return lenet_of(graph, images, options, [&](const std::string& name, Output x, const ConvBlock& block) {
    return conv_norm(graph, name, x, block, normalisation);
  });
}

/// LeNet-5 after LeCun et al. 1998 with Relu and max pools: conv 5x5x6 SAME, pool 2, conv 5x5x16 VALID, pool 2, dense
/// 120, 84, `outputs`.
Output lenet5(Graph& graph, Output images, const ModelOptions& options) {
  const auto wide = [&](std::int64_t channels) { return scaled(channels, options.width); };
  Output x = conv_relu(graph, "conv1", images, {.channels = wide(6), .kernel = 5});
  x = max_pool(graph, "pool1", x);
  x = conv_relu(graph, "conv2", x, {.channels = wide(16), .kernel = 5, .padding = Padding::kValid});
  x = max_pool(graph, "pool2", x);
  x = dense_relu(graph, "fc1", flatten(graph, "flatten", x), wide(120));
  x = dense_relu(graph, "fc2", x, wide(84));
  return dense(graph, "fc3", x, options.outputs);
}

}  // namespace miniqat::models
