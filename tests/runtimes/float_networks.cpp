#include "tests/runtimes/float_networks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/engine/session.h"
#include "core/graph/source_ops.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "layers/layers.h"
#include "models/models.h"
#include "tests/quantize/net_parts.h"
#include "tests/quantize/random_net.h"

namespace miniqat::testing {
namespace {

void fill(Tensor& tensor, std::uint64_t seed, double low, double high) {
  Random random(seed);
  for (float& value : tensor.values<float>()) value = static_cast<float>(low + (high - low) * random.uniform());
}

Tensor filled(const Shape& shape, double low, double high) {
  Tensor tensor(shape);
  fill(tensor, 3, low, high);
  return tensor;
}

using Build = std::function<Output(Graph&, Output)>;

Output vector_of(Graph& graph, const char* name) { return variable(graph, name, {3}); }

std::vector<Build> layers_of_images() {
  return {
      [](Graph& g, Output x) {
        return layers::conv2d(g, "c/Conv2D", x, variable(g, "c/w", {3, 2, 3, 5}), {.strides = {2, 1}});
      },
      [](Graph& g, Output x) {
        return layers::conv2d(g, "c/Conv2D", x, variable(g, "c/w", {2, 3, 3, 5}),
                              {.padding = Padding::kExplicit, .dilations = {1, 2}, .pads = {1, 0, 0, 3}});
      },
      [](Graph& g, Output x) {
        return layers::depthwise_conv2d(g, "d", x, variable(g, "d/w", {3, 2, 3, 2}), {.padding = Padding::kValid});
      },
      [](Graph& g, Output x) {
        return layers::batch_norm(g, "n", x, vector_of(g, "gamma"), vector_of(g, "beta"), vector_of(g, "mean"),
                                  vector_of(g, "variance"), {.epsilon = 0.01});
      },
      [](Graph& g, Output x) {
        const Output flat = layers::reshape(g, "r", x, {.shape = {2, -1}});
        const Output sums = layers::matmul(g, "m", flat, variable(g, "w", {5, 72}), {.transpose_b = true});
        return layers::bias_add(g, "b", sums, variable(g, "v", {5}));
      },
  };
}

std::vector<Build> functions_of_images() {
  return {
      [](Graph& g, Output x) { return layers::bias_add(g, "b", layers::relu(g, "r", x), vector_of(g, "v")); },
      [](Graph& g, Output x) { return layers::mul(g, "m", x, vector_of(g, "v")); },
      [](Graph& g, Output x) {
        return layers::sub(g, "s", variable(g, "v", {4, 6, 3}), x);
      },
      [](Graph& g, Output x) {
        return layers::add(g, "a", x, variable(g, "v", {6, 1}));
      },
      [](Graph& g, Output x) { return layers::div(g, "d", x, constant(g, "k", {}, {4})); },
      [](Graph& g, Output x) {
        return layers::mul(g, "m", x, layers::mean(g, "s", x, {.axes = {1, 2}, .keep_dims = true}));
      },
      [](Graph& g, Output x) { return layers::relu6(g, "r", x); },
      [](Graph& g, Output x) { return layers::clip(g, "c", x, {.low = -0.5, .high = 0.25}); },
      [](Graph& g, Output x) { return layers::sigmoid(g, "s", x); },
      [](Graph& g, Output x) { return layers::hard_swish(g, "h", x); },
      [](Graph& g, Output x) { return layers::leaky_relu(g, "l", x, {.alpha = 0.3}); },
      [](Graph& g, Output x) { return layers::hard_sigmoid(g, "hs", x, {.alpha = 0.3, .beta = 0.4}); },
      [](Graph& g, Output x) { return layers::dropout(g, "d", layers::identity(g, "i", x), {.rate = 0.25}); },
  };
}

/// Numbers below 0, and zeros around them.
Output padded(Graph& g, Output x) {
  const Output below = layers::sub(g, "below", x, constant(g, "two", {}, {2}));
  return layers::pad(g, "pad", below, {.paddings = {{0, 0}, {1, 2}, {2, 1}, {0, 0}}});
}

std::vector<Build> shapes_of_images() {
  return {
      [](Graph& g, Output x) {
        return layers::max_pool(g, "p", x, {.window = {3, 2}, .strides = {2, 1}, .padding = Padding::kSame});
      },
      [](Graph& g, Output x) {
        return layers::avg_pool(g, "p", x, {.window = {3, 2}, .strides = {2, 3}, .padding = Padding::kSame});
      },
      [](Graph& g, Output x) {
        return layers::mean(g, "m", x, {.axes = {-2, 1}});
      },
      [](Graph& g, Output x) {
        return layers::pad(g, "p", x, {.paddings = {{0, 0}, {1, 2}, {0, 3}, {0, 0}}});
      },
      [](Graph& g, Output x) {
        return layers::pad(g, "p", x, {.paddings = {{0, 0}, {0, 1}, {0, 0}, {2, 1}}});
      },
      [](Graph& g, Output x) {
        return layers::max_pool(g, "p", padded(g, x), {.window = {2, 2}, .strides = {2, 2}});
      },
      [](Graph& g, Output x) {
        return layers::max_pool(g, "p", padded(g, x), {.window = {3, 2}, .strides = {1, 2}, .padding = Padding::kSame});
      },
      [](Graph& g, Output x) {
        const Output same = layers::dropout(g, "d", layers::identity(g, "i", padded(g, x)), {.rate = 0.25});
        return layers::max_pool(g, "p", same, {.window = {2, 2}});
      },
      [](Graph& g, Output x) {
        return layers::avg_pool(g, "p", padded(g, x), {.window = {3, 3}, .padding = Padding::kSame});
      },
      [](Graph& g, Output x) {
        return layers::concat(g, "c", {x, layers::relu(g, "r", x)}, {.axis = 2});
      },
      [](Graph& g, Output x) {
        return layers::concat(g, "c", {x, layers::relu(g, "r", x)});
      },
      [](Graph& g, Output x) {
        return layers::slice(g, "s", x, {.axes = {-1, 1}, .starts = {1, 0}, .ends = {3, 3}});
      },
      [](Graph& g, Output x) {
        return layers::slice(g, "s", x, {.axes = {2}, .starts = {1}, .ends = {6}, .steps = {2}});
      },
      [](Graph& g, Output x) {
        return layers::reshape(g, "r", x, {.shape = {2, -1}});
      },
  };
}

/// Neither a computation of parameters alone nor a part of a batch norm in primitive ops: the file holds neither.
bool has_counterpart(const Node* node) {
  constexpr auto kTypes = std::to_array<std::string_view>({"SpaceToBatchND", "Rsqrt", "Reciprocal", "Square"});
  if (std::ranges::find(kTypes, node->type()) != kTypes.end()) return false;
  if (node->as<layers::Mean>() != nullptr && node->as<layers::Mean>()->axes != std::vector<std::int64_t>{1, 2})
    return false;
  const auto is_parameter = [](const Output& x) {
    return x.node->as<Variable>() != nullptr || x.node->as<Constant>() != nullptr;
  };
  return node->inputs().empty() || !std::ranges::all_of(node->inputs(), is_parameter);
}

}  // namespace

Output FloatNetwork::input() const {
  for (const Node* node : graph.nodes())
    if (node->as<Placeholder>() != nullptr) return node->output();
  fail("the network has no input");
}

Tensor FloatNetwork::random_input() const { return filled(input().shape(), -1, 1); }

Tensor FloatNetwork::results() {
  Session session(graph);
  session.restore({.tensors = variables, .metadata = {}}, Session::Restore::kByName, "test");
  return session.run({.fetches = {graph.outputs()[0]}}, {{input(), random_input()}}).fetched[0];
}

FloatNetwork with_random_variables(Graph graph, std::uint64_t seed) {
  FloatNetwork network{std::move(graph), {}, {}};
  Session session(network.graph, {.seed = seed});
  for (const auto& [name, value] : session.variables()) {
    Tensor own = value.clone();
    const bool is_weight = value.shape().rank() > 1;
    if (name.find("variance") != std::string::npos)
      fill(own, ++seed, 0.5, 2);
    else if (!is_weight)
      fill(own, ++seed, -0.5, 0.5);
    network.variables.emplace(name, own);
  }
  return network;
}

FloatNetwork float_model(const std::string& name) {
  const models::Model& model = models::find_model(name);
  Graph graph;
  const Output images = placeholder(graph, "images", model.input(2));
  graph.set_outputs({model.build(graph, images, {.width = 0.25})});
  FloatNetwork network = with_random_variables(std::move(graph), 5);
  network.name = name;
  return network;
}

std::vector<FloatNetwork> single_ops() {
  std::vector<Build> builds = layers_of_images();
  for (const std::vector<Build>& more : {functions_of_images(), shapes_of_images()})
    builds.insert(builds.end(), more.begin(), more.end());
  std::vector<FloatNetwork> networks;
  for (const Build& build : builds) {
    Graph graph;
    const Output x = placeholder(graph, "x", {2, 4, 6, 3});
    graph.set_outputs({build(graph, x)});
    networks.push_back(with_random_variables(std::move(graph), 1));
    networks.back().name = miniqat::describe(*networks.back().graph.outputs()[0].node);
  }
  return networks;
}

std::vector<FloatNetwork> random_float_networks(int count) {
  std::vector<FloatNetwork> networks;
  for (std::uint64_t seed = 1; std::ssize(networks) < count; ++seed) {
    Graph graph = well_formed_net(seed);
    if (!std::ranges::all_of(graph.nodes(), has_counterpart)) continue;
    networks.push_back(with_random_variables(std::move(graph), seed));
    networks.back().name = concat("random net ", seed);
  }
  return networks;
}

/// What a link of a chain may be, for images of a few pixels at least.
Output link(NetParts& parts, Output x) {
  Graph& graph = parts.graph;
  const bool small = x.shape()[1] * x.shape()[2] <= 100;
  switch (parts.below(12)) {
    case 0:
    case 1:
    case 2:
      return small ? parts.pad(x) : x;
    case 3:
    case 4:
      return parts.max_pool(x);
    case 5:
      return parts.avg_pool(x);
    case 6:
      return parts.bias_or_batch_norm(parts.chance(2) ? parts.conv(x) : parts.depthwise(x));
    case 7:
      return layers::sub(graph, parts.name("below"), x, constant(graph, parts.name("three"), {}, {3}));
    case 8:
      return layers::dropout(graph, parts.name("Dropout"), layers::identity(graph, parts.name("Identity"), x), {});
    case 9:
      return layers::concat(graph, parts.name("Concat"), {x, parts.activation(x)});
    case 10:
      return parts.chance(2) ? parts.slice(x) : parts.lines(x);
    default:
      return parts.activation(x);
  }
}

std::vector<FloatNetwork> random_float_chains(int count) {
  std::vector<FloatNetwork> networks;
  for (std::uint64_t seed = 1; std::ssize(networks) < count; ++seed) {
    NetParts parts(seed);
    Output x = placeholder(parts.graph, "images", {2, 6, 7, 3});
    for (int links = 4 + parts.below(6); links > 0; --links) x = link(parts, x);
    if (x.node->as<Placeholder>() != nullptr || x.shape().channels() > 20) continue;
    parts.graph.set_outputs({parts.chance(2) ? x : layers::mean(parts.graph, "mean", x, {.axes = {1, 2}})});
    if (!std::ranges::all_of(parts.graph.nodes(), has_counterpart)) continue;
    networks.push_back(with_random_variables(std::move(parts.graph), seed));
    networks.back().name = concat("random chain ", seed);
  }
  return networks;
}

double relative_difference(const Tensor& expected, const Tensor& found) {
  if (expected.shape() != found.shape()) fail("shapes ", expected.shape(), " and ", found.shape());
  double largest = 0, apart = 0;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double a = double{expected.data<float>()[i]}, b = double{found.data<float>()[i]};
    largest = std::max(largest, std::abs(a));
    // NaN is a difference, too.
    if (!(std::abs(a - b) <= apart)) apart = std::abs(a - b);
  }
  return apart == 0 ? 0 : apart / largest;
}

}  // namespace miniqat::testing
