#include "models/resnet8.h"

#include <array>

#include "core/text/error.h"
#include "models/blocks.h"

namespace miniqat::models {

Output resnet8(Graph& graph, Output images, const ModelOptions& options) {
  require_input("resnet8", images.shape());
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
