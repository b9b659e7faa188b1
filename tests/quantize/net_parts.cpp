#include "tests/quantize/net_parts.h"

#include <algorithm>
#include <utility>

#include "core/graph/registry.h"
#include "quantize/op_roles.h"
#include "tests/quantize/fold/primitive_batch_norm.h"

namespace miniqat::testing {

Output NetParts::variable(const std::string& stem, const Shape& shape, double mean, bool trainable) {
  return layers::variable(graph, name(stem), shape,
                          {.kind = Initializer::Kind::kTruncatedNormal, .mean = mean, .stddev = 0.3}, trainable);
}

Output NetParts::weights(const Shape& shape) {
  std::vector<Output> fitting;
  std::ranges::copy_if(weights_, std::back_inserter(fitting), [&](Output w) { return w.shape() == shape; });
  if (!fitting.empty() && chance(2)) return fitting[random_.below(fitting.size())];

  const std::int64_t last = shape[shape.rank() - 1];
  Output w;
  if (last > 1 && chance(6)) {
    std::vector<std::int64_t> extents = shape.to_vector();
    std::vector<Output> parts;
    for (const std::int64_t part : {std::int64_t{1}, last - 1}) {
      extents.back() = part;
      const Output variable = layers::variable(graph, name("part"), Shape(extents));
      parts.push_back(chance(2) ? variable : layers::identity(graph, name("part/read"), variable));
    }
    w = layers::concat(graph, name("weights"), parts, {.axis = -1});
  } else {
    w = layers::variable(graph, name("weights"), shape);
  }
  if (chance(4)) w = layers::identity(graph, name("weights/read"), w);
  weights_.push_back(w);
  return w;
}

layers::Conv2dAttributes NetParts::window(Output x, std::int64_t filter) {
  layers::Conv2dAttributes attributes;
  const std::int64_t smaller = std::min(x.shape()[1], x.shape()[2]);
  if (smaller >= filter && chance(3)) attributes.padding = Padding::kValid;
  if (chance(4)) attributes.strides = {2, 2};
  if (attributes.padding == Padding::kSame && attributes.strides[0] == 1 && chance(4)) attributes.dilations = {2, 1};
  if (attributes.dilations[0] == 1 && chance(4)) {
    attributes.padding = Padding::kExplicit;
    const std::int64_t least = std::max<std::int64_t>(filter - smaller, 0);
    attributes.pads = {1, std::min(filter - 1, least), least, below(2)};
    if (filter == 1) attributes.pads = {0, 0, 0, 0};
  }
  return attributes;
}

Output NetParts::conv(Output x, std::int64_t channels) {
  const std::int64_t filter = chance(2) ? 1 : 3;
  if (channels == 0) channels = more_channels + (chance(2) ? 3 : 2 + below(4));
  const Output w = weights({filter, filter, x.shape()[3], channels});
  return layers::conv2d(graph, name("Conv2D"), x, w, window(x, filter));
}

Output NetParts::depthwise(Output x) {
  const std::int64_t multiplier = x.shape()[3] <= 3 ? 1 + below(2) : 1;
  const Output w = weights({3, 3, x.shape()[3], multiplier});
  return layers::depthwise_conv2d(graph, name("DepthwiseConv2d"), x, w, window(x, 3));
}

Output NetParts::atrous(Output x) {
  // Two pixels of padding and what makes the extent even, which the crop takes away again.
  const std::int64_t rows = x.shape()[1] % 2;
  const std::int64_t columns = x.shape()[2] % 2;
  const Output blocks = layers::space_to_batch(graph, name("SpaceToBatchND"), x,
                                               {.block_shape = {2, 2}, .paddings = {{2, 2 + rows}, {2, 2 + columns}}});
  const Output y = x.shape()[3] <= 4 && chance(2)
                       ? layers::depthwise_conv2d(graph, name("DepthwiseConv2d"), blocks,
                                                  weights({3, 3, x.shape()[3], 1}), {.padding = Padding::kValid})
                       : layers::conv2d(graph, name("Conv2D"), blocks, weights({3, 3, x.shape()[3], 3}),
                                        {.padding = Padding::kValid});
  return layers::batch_to_space(graph, name("BatchToSpaceND"), y,
                                {.block_shape = {2, 2}, .crops = {{0, rows}, {0, columns}}});
}

Output NetParts::dense(Output x) {
  const std::int64_t in = x.shape()[1];
  const std::int64_t out = 2 + below(4);
  const bool transposed = chance(3);
  const Output w = weights(transposed ? Shape{out, in} : Shape{in, out});
  return layers::matmul(graph, name("MatMul"), x, w, {.transpose_b = transposed});
}

Output NetParts::layer(Output x) {
  if (x.shape().rank() == 2) return dense(x);
  switch (below(4)) {
    case 0:
      return depthwise(x);
    case 1:
      return atrous(x);
    default:
      return conv(x);
  }
}

Output NetParts::batch_norm(Output x, bool learns) {
  if (chance(4)) x = layers::identity(graph, name("copy"), x);
  const std::int64_t channels = x.shape().channels();
  const Output gamma = chance(4) ? layers::constant(graph, name("ones"), {channels}, {1})
                                 : variable("gamma", {channels}, chance(2) ? 1 : -1);
  return layers::batch_norm(
      graph, name("BatchNorm"), x, gamma, vector("beta", channels), variable("moving_mean", {channels}, 0, false),
      variable("moving_variance", {channels}, 1, false), {.epsilon = 0.01, .decay = 0.9, .is_training = learns});
}

Output NetParts::primitive_batch_norm(Output x, Output other) {
  Form form = {.statistics = static_cast<Statistics>(below(7)),
               .order = static_cast<Order>(below(5)),
               .scaling = !chance(3),
               .swapped = chance(2),
               .identities = chance(3)};
  // BiasAdd refuses the offset of rank 4 that kept dimensions may lead to.
  form.bias_add = form.statistics != Statistics::kKeptDims && chance(3);
  PrimitiveOps ops{.graph = std::move(graph), .form = form, .scope = scope};
  auto [centre, spread] = ops.statistics(x);
  Output unread;
  if (other != x) {
    const auto [other_centre, other_spread] = ops.statistics(other);
    const bool takes_centre = chance(2);
    unread = std::exchange(takes_centre ? centre : spread, takes_centre ? other_centre : other_spread);
  }
  const Output y = ops.normalise(x, centre, spread, ops.epsilon());
  graph = std::move(ops.graph);
  // What reads x beside a batch norm keeps it from being folded.
  if (unread.node) erase_unread(unread.node->name());
  return y;
}

void NetParts::erase_unread(const std::string& name) {
  Node* node = graph.find(name);
  if (!node || !node->uses().empty() || node->inputs().empty()) return;
  std::vector<std::string> inputs;
  for (const Output& input : node->inputs()) inputs.push_back(input.node->name());
  graph.erase(*node);
  for (const std::string& input : inputs) erase_unread(input);
}

Output NetParts::bias_or_batch_norm(Output x) {
  const std::int64_t channels = x.shape().channels();
  switch (below(6)) {
    case 0:
      return layers::bias_add(graph, name("BiasAdd"), x, vector("biases", channels));
    case 1:
      return layers::add(graph, name("Add"), vector("biases", channels), x);
    case 2:
      return x;
    case 3:
      return fits_primitive_batch_norm(x) ? primitive_batch_norm(x, x) : batch_norm(x);
    default:
      return batch_norm(x);
  }
}

Output NetParts::activation(Output x) {
  const std::vector<std::string_view> functions = quantize::types_with(quantize::OpRole::kTable);
  const int choice = below(5 + functions.size());
  if (choice >= 5) {
    layers::register_ops();
    const std::string type(functions[static_cast<std::size_t>(choice - 5)]);
    return graph.add(name(type), make_op(type), {x}).output();
  }
  switch (choice) {
    case 0:
      return layers::identity(graph, name("Identity"), x);
    case 1:
      return layers::relu6(graph, name("Relu6"), x);
    case 2: {
      const double low = chance(2) ? -0.4 : 0.1;
      return layers::clip(graph, name("Clip"), x, {.low = low, .high = chance(2) ? 0.7 : 2});
    }
    default:
      return layers::relu(graph, name("Relu"), x);
  }
}

layers::PoolAttributes NetParts::pool(Output x) {
  layers::PoolAttributes attributes;
  attributes.strides = {1 + below(2), 1 + below(2)};
  if (x.shape()[1] < 2 || x.shape()[2] < 2 || chance(2)) attributes.padding = Padding::kSame;
  return attributes;
}

Output NetParts::pad(Output x) {
  return layers::pad(graph, name("Pad"), x, {.paddings = {{0, 0}, {1, 0}, {below(2), 1}, {0, 0}}});
}

Output NetParts::line(Output x) {
  const std::int64_t channels = x.shape().channels();
  const Output c = chance(3) ? layers::constant(graph, name("constant"), {}, {chance(2) ? 0.6 : -1.3})
                             : variable("channels", {channels}, chance(2) ? 0.5 : -0.5);
  switch (below(6)) {
    case 0:
      return layers::add(graph, name("Add"), c, x);
    case 1:
      return layers::sub(graph, name("Sub"), c, x);
    case 2:
      return layers::sub(graph, name("Sub"), x, c);
    case 3:
      return layers::div(graph, name("Div"), x, layers::constant(graph, name("divisor"), {}, {0.7}));
    default:
      return layers::mul(graph, name("Mul"), x, c);
  }
}

Output NetParts::lines(Output x) {
  for (int count = 1 + below(3); count > 0; --count) x = line(x);
  return x;
}

Output NetParts::slice(Output x) {
  const std::int64_t channels = x.shape().channels(), first = below(static_cast<std::size_t>(channels));
  const std::int64_t end = first + 1 + below(static_cast<std::size_t>(channels - first));
  return layers::slice(graph, name("Slice"), x, {.axes = {-1}, .starts = {first}, .ends = {end}});
}

}  // namespace miniqat::testing
