#include "core/text/error.h"
#include "models/blocks.h"
#include "models/networks.h"

namespace miniqat::models {

/// The depthwise separable network of MLPerf Tiny's keyword spotting (Banbury et al. 2021, arXiv:2106.07597, after the
/// DS-CNN of Zhang et al. 2017, arXiv:1711.07128; the benchmark's `keyword_spotting/keras_model.py`): conv 10x4x64 with
/// stride 2, dropout 0.2, four blocks of a 3x3 depthwise and a 1x1 convolution of 64 channels, dropout 0.4, mean, dense
/// `outputs`. Each convolution has batch norm (epsilon 0.001) and Relu. It takes spectrograms, [n, steps, bands] or
/// [n, steps, bands, 1]. With 49 steps of 10 bands and 12 words 24,908 parameters as Keras counts them, 23,180 trained,
/// and 2,656,768 multiply-adds. Nodes live under image, conv0, dropout0, block1/depthwise, block1/pointwise, ...,
/// block4/pointwise, dropout1, pool, fc.
Output ds_cnn(Graph& graph, Output images, const ModelOptions& options) {
  constexpr int kSeparable = 4;
  const std::int64_t channels = scaled(64, options.width);
  const Normalisation relu = {.activation = Activation::kRelu, .batch_norm = {.decay = options.batch_norm_decay}};
  Output x = images;
  if (x.shape().rank() == 3)
    x = layers::reshape(graph, "image", x, {.shape = {x.shape()[0], x.shape()[1], x.shape()[2], 1}});
  x = conv_norm(graph, "conv0", x, {.channels = channels, .kernel = {10, 4}, .stride = 2}, relu);
  x = layers::dropout(graph, "dropout0", x, {.rate = 0.2});
  for (int block = 1; block <= kSeparable; ++block) {
    const std::string name = concat("block", block);
    x = depthwise_norm(graph, name + "/depthwise", x, {}, relu);
    x = conv_norm(graph, name + "/pointwise", x, {.channels = channels, .kernel = 1}, relu);
  }
  x = layers::dropout(graph, "dropout1", x, {.rate = 0.4});
  return dense(graph, "fc", global_mean(graph, "pool", x), options.outputs);
}

}  // namespace miniqat::models
