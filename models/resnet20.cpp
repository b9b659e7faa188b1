#include <array>

#include "core/text/error.h"
#include "models/blocks.h"
#include "models/networks.h"

namespace miniqat::models {
namespace {

constexpr std::array<std::int64_t, 3> kStages = {16, 32, 64};
constexpr int kBlocksAStage = 3;

struct ResidualBlock {
  std::int64_t channels;
  std::int64_t stride;
};

/// Option A: every `stride`-th pixel, and zeros for the channels that x lacks.
Output shortcut(Graph& graph, const std::string& name, Output x, const ResidualBlock& block) {
  if (block.stride != 1)
    x = layers::max_pool(graph, name + "/MaxPool", x, {.window = {1, 1}, .strides = {block.stride, block.stride}});
  const std::int64_t missing = block.channels - x.shape().channels();
  if (missing == 0) return x;
  const std::int64_t before = missing / 2;
  return layers::pad(graph, name + "/Pad", x, {.paddings = {{0, 0}, {0, 0}, {0, 0}, {before, missing - before}}});
}

Output residual(Graph& graph, const std::string& name, Output input, const ResidualBlock& block,
                const layers::BatchNormAttributes& batch_norm) {
  Output x = conv_norm(graph, name + "/conv1", input, {.channels = block.channels, .stride = block.stride},
                       {.activation = Activation::kRelu, .batch_norm = batch_norm});
  x = conv_norm(graph, name + "/conv2", x, {.channels = block.channels},
                {.activation = Activation::kNone, .batch_norm = batch_norm});
  const Output kept = shortcut(graph, name + "/shortcut", input, block);
  return layers::relu(graph, name + "/Relu", layers::add(graph, name + "/Add", x, kept));
}

}  // namespace

/// The ResNet-20 for CIFAR-10 (He et al. 2015, arXiv:1512.03385, section 4.2): conv 3x3x16, three stages of three
/// blocks of two 3x3 convolutions with 16, 32 and 64 channels; mean over the picture, dense `outputs`. Each convolution
/// has batch norm (epsilon 1e-5) and Relu; the second one of a block has its Relu after the Add. Shortcuts have no
/// parameters (option A): where a stage begins they take every second pixel and pad the new channels with zeros, half
/// on either side. With 32x32 pixels and 10 classes 0.27 M parameters and 41 M multiply-adds. Nodes live under conv0,
/// stage1/block1/conv1, stage1/block1/conv2, ..., stage3/block3/conv2, pool, fc.
Output resnet20(Graph& graph, Output images, const ModelOptions& options) {
  const auto wide = [&](std::int64_t channels) { return scaled(channels, options.width); };
  const layers::BatchNormAttributes batch_norm = {.epsilon = 1e-5, .decay = options.batch_norm_decay};
  Output x = conv_norm(graph, "conv0", images, {.channels = wide(kStages[0])},
                       {.activation = Activation::kRelu, .batch_norm = batch_norm});
  for (std::size_t stage = 0; stage < kStages.size(); ++stage)
    for (int k = 0; k < kBlocksAStage; ++k)
      x = residual(graph, concat("stage", stage + 1, "/block", k + 1), x,
                   {.channels = wide(kStages[stage]), .stride = stage > 0 && k == 0 ? 2 : 1}, batch_norm);
  return dense(graph, "fc", global_mean(graph, "pool", x), options.outputs);
}

}  // namespace miniqat::models
