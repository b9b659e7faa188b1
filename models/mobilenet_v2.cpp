#include <algorithm>
#include <array>

#include "models/blocks.h"
#include "models/networks.h"

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

/// MobileNetV2 (Sandler et al. 2018, arXiv:1801.04381, table 2): conv 3x3x32, 17 inverted residual blocks (expand 1x1,
/// depthwise 3x3, project 1x1; an Add around a block that keeps size and channels), conv 1x1x1280; mean over the
/// picture, dense `outputs`. Each convolution has batch norm (epsilon 0.001) and, except for the projections, Relu6. At
/// width 1 with 224x224 pixels and 1000 classes 3.5 M parameters (3.47 M without batch norm's) and 300 M multiply-adds.
/// Channels are rounded to multiples of 8, at least 8 and never below 90% of channels * width; the 1280 grow with a
/// width above 1 and don't shrink below it. For images of at most 64 pixels a side the first stride is 1 instead of 2.
/// Nodes live under conv0, block1/depthwise, block1/project, block2/expand, ..., block17/project, conv1, pool, fc.
Output mobilenet_v2(Graph& graph, Output images, const ModelOptions& options) {
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
