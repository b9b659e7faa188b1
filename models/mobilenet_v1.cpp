#include <array>

#include "models/blocks.h"
#include "models/networks.h"

namespace miniqat::models {
namespace {

/// `repeats` blocks of table 1, of which the first has the stride.
struct Table1Row {
  std::int64_t channels;
  std::int64_t repeats;
  std::int64_t stride;
};

/// The stride 2 that table 1 prints for the very last block is a slip: its sizes are those of stride 1.
constexpr std::array<Table1Row, 5> kTable1 = {{{64, 1, 1}, {128, 2, 2}, {256, 2, 2}, {512, 6, 2}, {1024, 2, 2}}};

Output mobilenet_of(Graph& graph, Output images, const ModelOptions& options, Activation activation) {
  const auto wide = [&](std::int64_t channels) { return scaled(channels, options.width); };
  const Normalisation normalisation = {.activation = activation,
                                       .batch_norm = {.epsilon = 0.001, .decay = options.batch_norm_decay}};
  Output x =
      conv_norm(graph, "conv0", images, {.channels = wide(32), .stride = first_stride(images.shape())}, normalisation);
  int blocks = 0;
  for (const Table1Row& row : kTable1)
    for (std::int64_t k = 0; k < row.repeats; ++k) {
      const std::string name = "block" + std::to_string(++blocks);
      x = depthwise_norm(graph, name + "/depthwise", x, {.stride = k == 0 ? row.stride : 1}, normalisation);
      x = conv_norm(graph, name + "/pointwise", x, {.channels = wide(row.channels), .kernel = 1}, normalisation);
    }
  return dense(graph, "fc", global_mean(graph, "pool", x), options.outputs);
}

}  // namespace

/// MobileNet (Howard et al. 2017, arXiv:1704.04861, table 1): conv 3x3x32, then 13 blocks of a 3x3 depthwise and a 1x1
/// convolution; mean over the picture, dense `outputs`. Each convolution has batch norm (epsilon 0.001) and Relu6, as
/// in the authors' code. At width 1 with 224x224 pixels and 1000 classes 4.2 M parameters and 569 M multiply-adds. For
/// images of at most 64 pixels a side the first stride is 1 instead of 2, so that CIFAR's 32x32 end as 2x2. Nodes live
/// under conv0, block1/depthwise, block1/pointwise, ..., block13/pointwise, pool, fc.
Output mobilenet_v1(Graph& graph, Output images, const ModelOptions& options) {
  return mobilenet_of(graph, images, options, Activation::kRelu6);
}

/// The network of MLPerf Tiny's visual wake words (Banbury et al. 2021, arXiv:2106.07597; the benchmark's
/// `visual_wake_words/vww_model.py`): mobilenet_v1 with a quarter of its channels and Relu instead of Relu6. A width of
/// 1 is that quarter. With 96x96 pixels and 2 classes 221,794 parameters as Keras counts them, 213,586 trained, and
/// 7,489,664 multiply-adds. Nodes have the names of mobilenet_v1's.
Output visual_wake_words(Graph& graph, Output images, const ModelOptions& options) {
  ModelOptions quarter = options;
  quarter.width *= 0.25;
  return mobilenet_of(graph, images, quarter, Activation::kRelu);
}

}  // namespace miniqat::models
