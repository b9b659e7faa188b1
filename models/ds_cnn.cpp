#include "models/ds_cnn.h"

#include "core/text/error.h"
#include "models/blocks.h"

namespace miniqat::models {

Output ds_cnn(Graph& graph, Output images, const ModelOptions& options) {
  require_input("ds_cnn", images.shape());
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
