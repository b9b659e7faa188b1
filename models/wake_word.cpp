#include "models/wake_word.h"

#include <array>

#include "core/text/error.h"
#include "models/blocks.h"

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

Output wake_word(Graph& graph, Output images, const ModelOptions& options) {
  require_input("wake_word", images.shape());
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
