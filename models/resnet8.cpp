#include <array>

#include "core/text/error.h"
#include "models/blocks.h"
#include "models/networks.h"

namespace miniqat::models {

/// The ResNet-8 of MLPerf Tiny's image classification (Banbury et al. 2021, arXiv:2106.07597; the benchmark's
/// `image_classification/keras_model.py`): conv 3x3x16, three stages of one block of two 3x3 convolutions with 16, 32
/// and 64 channels, the second and the third with stride 2; mean over the picture, dense `outputs`. Each of these
/// convolutions has batch norm (epsilon 0.001) and Relu, the second one of a block has its Relu after the Add. Where
/// channels change the shortcut is a 1x1 convolution with stride 2 and a bias, without batch norm. With 32x32 pixels
/// and 10 classes 78,666 parameters as Keras counts them, 77,946 trained, and 12,501,632 multiply-adds. Nodes live
/// under conv0, stage1/conv1, stage1/conv2, stage2/conv1, ..., stage2/shortcut, ..., pool, fc.
Output resnet8(Graph& graph, Output images, const ModelOptions& options) {
  constexpr std::array<std::int64_t, 3> kChannels = {16, 32, 64};
  const Normalisation relu = {.activation = Activation::kRelu, .batch_norm = {.decay = options.batch_norm_decay}};
  const Normalisation linear = {.activation = Activation::kNone, .batch_norm = relu.batch_norm};
  Output x = conv_norm(graph, "conv0", images, {.channels = scaled(kChannels[0], options.width)}, relu);
  for (std::size_t stage = 0; stage < kChannels.size(); ++stage) {
    const std::string name = concat("stage", stage + 1);
    const std::int64_t channels = scaled(kChannels[stage], options.width), stride = stage == 0 ? 1 : 2;
    Output y = conv_norm(graph, name + "/conv1", x, {.channels = channels, .stride = stride}, relu);
    y = conv_norm(graph, name + "/conv2", y, {.channels = channels}, linear);
    if (stage > 0) x = conv_bias(graph, name + "/shortcut", x, {.channels = channels, .kernel = 1, .stride = stride});
    x = layers::relu(graph, name + "/Relu", layers::add(graph, name + "/Add", y, x));
  }
  return dense(graph, "fc", global_mean(graph, "pool", x), options.outputs);
}

}  // namespace miniqat::models
