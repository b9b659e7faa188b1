#include "models/mobilenet_v2.h"

#include <algorithm>
#include <array>

#include "models/blocks.h"

namespace miniqat::models {
namespace {

/// A row of table 2: `repeats` blocks, of which the first has the stride.
struct Table2Row {
  std::int64_t expansion;
  std::int64_t channels;
  std::int64_t repeats;
  std::int64_t stride;
};

constexpr std::array<Table2Row, 7> kTable2 = {
    {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}};

/// channels * width to a multiple of 8 that is at least 8 and not below 90% of it: the rule of the authors' code.
std::int64_t in_eights(std::int64_t channels, double width) {
  constexpr std::int64_t kStep = 8;
  const double wanted = static_cast<double>(channels) * width;
  const std::int64_t nearest = static_cast<std::int64_t>(wanted + kStep / 2) / kStep * kStep;
  const std::int64_t rounded = std::max(kStep, nearest);
  return static_cast<double>(rounded) < 0.9 * wanted ? rounded + kStep : rounded;
}

struct InvertedResidual {
  std::int64_t expansion;
  std::int64_t channels;
  std::int64_t stride;
};

Output inverted_residual(Graph& graph, const std::string& name, Output input, const InvertedResidual& block,
                         const layers::BatchNormAttributes& batch_norm) {
  const Normalisation relu6 = {.activation = Activation::kRelu6, .batch_norm = batch_norm};
  const Normalisation linear = {.activation = Activation::kNone, .batch_norm = batch_norm};
  const std::int64_t inputs = input.shape().channels();
  Output x = input;
  if (block.expansion != 1)
    x = conv_norm(graph, name + "/expand", x, {.channels = inputs * block.expansion, .kernel = 1}, relu6);
  x = depthwise_norm(graph, name + "/depthwise", x, {.stride = block.stride}, relu6);
  x = conv_norm(graph, name + "/project", x, {.channels = block.channels, .kernel = 1}, linear);
  return block.stride == 1 && block.channels == inputs ? layers::add(graph, name + "/Add", x, input) : x;
}

}  // namespace

Output mobilenet_v2(Graph& graph, Output images, const ModelOptions& options) {
  require_input("mobilenet_v2", images.shape());
  const layers::BatchNormAttributes batch_norm = {.epsilon = 0.001, .decay = options.batch_norm_decay};
  const Normalisation relu6 = {.activation = Activation::kRelu6, .batch_norm = batch_norm};
  Output x = conv_norm(graph, "conv0", images,
                       {.channels = in_eights(32, options.width), .stride = first_stride(images.shape())}, relu6);
  int blocks = 0;
  for (const Table2Row& row : kTable2)
    for (std::int64_t k = 0; k < row.repeats; ++k)
      x = inverted_residual(graph, "block" + std::to_string(++blocks), x,
                            {.expansion = row.expansion,
                             .channels = in_eights(row.channels, options.width),
                             .stride = k == 0 ? row.stride : 1},
                            batch_norm);
  x = conv_norm(graph, "conv1", x, {.channels = in_eights(1280, std::max(1.0, options.width)), .kernel = 1}, relu6);
  return dense(graph, "fc", global_mean(graph, "pool", x), options.outputs);
}

}  // namespace miniqat::models
