#include "models/mobilenet_v1.h"

#include <array>

#include "models/blocks.h"

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

Output mobilenet_v1(Graph& graph, Output images, const ModelOptions& options) {
  require_input("mobilenet_v1", images.shape());
  return mobilenet_of(graph, images, options, Activation::kRelu6);
}

Output visual_wake_words(Graph& graph, Output images, const ModelOptions& options) {
  require_input("visual_wake_words", images.shape());
  ModelOptions quarter = options;
  quarter.width *= 0.25;
  return mobilenet_of(graph, images, quarter, Activation::kRelu);
}

}  // namespace miniqat::models
