#include <array>

#include "core/text/error.h"
#include "models/blocks.h"
#include "models/networks.h"

namespace miniqat::models {
namespace {

struct WakeWordBlock {
  std::int64_t steps;
  std::int64_t channels;
};

constexpr std::array<WakeWordBlock, 4> kWakeWordBlocks = {{{3, 128}, {5, 128}, {10, 128}, {15, 32}}};

/// [n, steps, ...] -> [n, steps, 1, the rest].
Output steps_of(Graph& graph, Output x) {
  const std::int64_t batch = x.shape()[0], steps = x.shape()[1];
  std::int64_t least = 1;
  for (const WakeWordBlock& block : kWakeWordBlocks) least += block.steps - 1;
  if (steps < least) fail("wake_word takes at least ", least, " steps, got ", steps);
  if (x.shape().rank() == 4 && x.shape()[2] == 1) return x;
  return layers::reshape(graph, "steps", x, {.shape = {batch, steps, 1, x.shape().elements() / (batch * steps)}});
}

}  // namespace

/// The network of MLPerf Tiny's streaming wake word (the benchmark's `streaming_wakeword/keras_model.py`, `ds_tcn`):
/// four blocks of a depthwise convolution over 3, 5, 10 and 15 steps, all VALID, without bias, batch norm or
/// activation, and a convolution over one step with 128, 128, 128 and 32 channels, batch norm (epsilon 0.001), Relu and
/// dropout 0.2; dense `outputs`. It takes [n, steps, channels]; a picture [n, h, w, c] is h steps of w * c channels.
/// Fewer than 30 steps are refused, more than 30 leave several to the dense layer. The convolutions have pixels in a
/// column, [n, steps, 1, channels]. With 30 steps of 40 bands and 3 outputs 47,707 parameters as Keras counts them,
/// 46,875 trained, and 826,368 multiply-adds. Nodes live under steps, block1/depthwise, block1/pointwise,
/// block1/dropout, ..., block4/dropout, flatten, fc.
Output wake_word(Graph& graph, Output images, const ModelOptions& options) {
  const Normalisation relu = {.activation = Activation::kRelu, .batch_norm = {.decay = options.batch_norm_decay}};
  Output x = steps_of(graph, images);
  int blocks = 0;
  for (const WakeWordBlock& block : kWakeWordBlocks) {
    const std::string name = concat("block", ++blocks);
    x = depthwise(graph, name + "/depthwise", x, {.kernel = {block.steps, 1}, .padding = Padding::kValid});
    x = conv_norm(graph, name + "/pointwise", x, {.channels = scaled(block.channels, options.width), .kernel = 1},
                  relu);
    x = layers::dropout(graph, name + "/dropout", x, {.rate = 0.2});
  }
  return dense(graph, "fc", flatten(graph, "flatten", x), options.outputs);
}

}  // namespace miniqat::models
