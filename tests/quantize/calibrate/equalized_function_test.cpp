// Equalization keeps the function of whole networks.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/tensors/random.h"
#include "layers/layers.h"
#include "models/models.h"
#include "quantize/calibrate/equalize.h"
#include "tests/errors.h"

namespace miniqat::quantize::equalized_function_test {
namespace {

using testing::mentions;

Tensor random_tensor(const Shape& shape, std::uint64_t seed, double low, double high) {
  Tensor tensor(shape);
  Random random(seed);
  for (float& value : tensor.values<float>()) value = static_cast<float>(random.uniform(low, high));
  return tensor;
}

/// Random gammas of both signs, betas, statistics and biases, and channels of very different weights.
NamedTensors random_variables(Session& session) {
  NamedTensors variables;
  for (const auto& [name, value] : session.variables()) {
    const std::uint64_t seed = hash_text(name);
    if (value.shape().rank() > 1) {
      Tensor weights = value.clone();
      const Tensor factors = random_tensor({value.shape().channels()}, seed, -4, 1);
      for (std::int64_t i = 0; i < weights.elements(); ++i)
        weights.data<float>()[i] *= std::exp(factors.data<float>()[i % factors.elements()]);
      variables[name] = weights;
    } else if (name.ends_with("moving_variance")) {
      variables[name] = random_tensor(value.shape(), seed, 0.1, 2);
    } else if (name.ends_with("gamma")) {
      variables[name] = random_tensor(value.shape(), seed, -1, 3);
    } else {
      variables[name] = random_tensor(value.shape(), seed, -0.5, 0.5);
    }
  }
  return variables;
}

Tensor run_in_double(Graph& graph, const NamedTensors& variables, const Feeds& feeds) {
  Session session(graph, {.backend = Backend::kReference, .precision = DType::kFloat64});
  session.restore({.tensors = variables, .metadata = {}}, Session::Restore::kByName, "the net");
  return session.run({.fetches = {graph.outputs().front()}}, feeds).fetched[0];
}

/// Equalizes a float network with random variables; the logits must stay the same up to the variables' rounding.
Equalization expect_same_function(Graph& graph, Output images) {
  Session session(graph);
  const NamedTensors before = random_variables(session);
  session.restore({.tensors = before, .metadata = {}}, Session::Restore::kByName, "random numbers");
  const Feeds feeds = {{images, random_tensor(images.shape(), 7, -1, 1)}};
  Equalizer equalizer(session);
  equalizer.observe(feeds);
  const Equalization result = equalizer.finish();
  const Tensor expected = run_in_double(graph, before, feeds).to(DType::kFloat32);
  const Tensor equalized = run_in_double(graph, session.variables(), feeds).to(DType::kFloat32);
  float largest = 0, difference = 0;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    largest = std::max(largest, std::abs(expected.data<float>()[i]));
    difference = std::max(difference, std::abs(expected.data<float>()[i] - equalized.data<float>()[i]));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LT(difference, 3e-6f * largest);
  std::set<std::string> changed;
  for (const auto& [name, value] : before)
    if (!std::ranges::equal(value.values<float>(), session.variable(name).values<float>())) changed.insert(name);
  const std::vector<std::string> named = equalizer.variables();
  EXPECT_EQ(changed, std::set<std::string>(named.begin(), named.end()));
  return result;
}

TEST(EqualizedFunction, OfTheBuiltInModelsStays) {
  struct Case {
    const char* model;
    Shape image;
    double width;
    std::size_t pairs;
  };
  // Every block of resnet20 has one pair. Of mobilenet_v2's 17 blocks 16 have two and the first, which does not expand,
  // has one; conv1 is in two more. At this width all other tensors between blocks have two readers.
  for (const Case& one : {Case{"lenet", {2, 12, 12, 1}, 0.25, 3}, Case{"lenet5", {2, 20, 20, 1}, 0.5, 4},
                          Case{"resnet20", {2, 8, 8, 3}, 0.125, 9}, Case{"mobilenet_v1", {1, 16, 16, 3}, 0.125, 27},
                          Case{"mobilenet_v2", {1, 16, 16, 3}, 0.125, 35}}) {
    SCOPED_TRACE(one.model);
    Graph graph;
    const Output images = layers::placeholder(graph, "images", one.image);
    graph.set_outputs({models::find_model(one.model).build(graph, images, {.width = one.width})});
    const Equalization result = expect_same_function(graph, images);
    EXPECT_EQ(result.pairs.size(), one.pairs);
    EXPECT_LT(result.sweeps, 1000);
    for (const EqualizedPair& pair : result.pairs)
      EXPECT_FALSE(std::ranges::all_of(pair.scales, [](double scale) { return scale == 1; })) << pair.first;
  }
}

/// Layers that the models do not have, one behind the other.
struct OddLayers {
  Graph graph;
  Output images = layers::placeholder(graph, "images", {2, 4, 4, 3});

  Output weights(const std::string& name, const Shape& shape) {
    return layers::variable(graph, name, shape, Initializer::he_normal());
  }
  Output batch_norm(const std::string& scope, Output x, const layers::BatchNormAttributes& attributes = {}) {
    std::vector<Output> vectors;
    for (const char* name : {"gamma", "beta", "moving_mean", "moving_variance"})
      vectors.push_back(layers::variable(graph, scope + "/" + name, {x.shape().channels()}, Initializer::constant(1)));
    return layers::batch_norm(graph, scope + "/BatchNorm", x, vectors[0], vectors[1], vectors[2], vectors[3],
                              attributes);
  }
};

TEST(EqualizedFunction, OfMultipliersFlattenedPoolsAndTransposedMatricesStays) {
  OddLayers net;
  Output x = layers::conv2d(net.graph, "conv", net.images, net.weights("conv/weights", {3, 3, 3, 2}));
  x = layers::relu(net.graph, "conv/Relu", net.batch_norm("conv", x));
  x = layers::pad(net.graph, "pad", x, {.paddings = {{0, 0}, {1, 1}, {1, 1}, {0, 0}}});
  x = layers::depthwise_conv2d(net.graph, "dw", x, net.weights("dw/weights", {3, 3, 2, 3}));
  x = layers::relu(net.graph, "dw/Relu", net.batch_norm("dw", x));
  x = layers::avg_pool(net.graph, "pool", x, {.window = {2, 2}, .strides = {2, 2}});
  x = layers::identity(net.graph, "copy", x);
  x = layers::reshape(net.graph, "flatten", x, {.shape = {2, 54}});
  x = layers::matmul(net.graph, "fc1", x, net.weights("fc1/weights", {5, 54}), {.transpose_b = true});
  const Output biases = layers::variable(net.graph, "fc1/biases", {5}, Initializer::constant(0));
  x = layers::relu(net.graph, "fc1/Relu", layers::add(net.graph, "fc1/Add", x, biases));
  x = layers::matmul(net.graph, "fc2", x, net.weights("fc2/weights", {5, 4}));
  x = layers::relu(net.graph, "fc2/Relu", x);
  net.graph.set_outputs({layers::matmul(net.graph, "fc3", x, net.weights("fc3/weights", {4, 3}))});
  EXPECT_EQ(expect_same_function(net.graph, net.images).pairs.size(), 4u);
}

/// The reason against `layer`.
std::string reason(const PairSearch& search, const std::string& layer) {
  for (const LeftOutLayer& one : search.left_out)
    if (one.layer == layer) return one.reason;
  return "";
}

TEST(EqualizedFunction, LeavesOutWhatWouldChangeIt) {
  OddLayers net;
  Graph& graph = net.graph;
  const auto conv = [&](const std::string& name, Output x, Output weights) {
    return layers::conv2d(graph, name, x, weights);
  };
  const Output shared = net.weights("shared", {1, 1, 3, 3});
  Output x = conv("residual", net.images, net.weights("residual/weights", {1, 1, 3, 3}));
  x = conv("sum", x, net.weights("sum/weights", {1, 1, 3, 3}));
  x = layers::add(graph, "add", x, graph.output_at("residual"));
  x = conv("before_shared", x, net.weights("before_shared/weights", {1, 1, 3, 3}));
  x = conv("shared1", x, shared);
  x = conv("shared2", x, shared);
  x = conv("curved", x, net.weights("curved/weights", {1, 1, 3, 3}));
  x = layers::sigmoid(graph, "curved/Sigmoid", x);
  x = conv("biased", x, net.weights("biased/weights", {1, 1, 3, 3}));
  const Output biases = layers::variable(graph, "biased/biases", {3}, Initializer::constant(0));
  x = net.batch_norm("biased", layers::bias_add(graph, "biased/BiasAdd", x, biases));
  x = conv("padded", x, net.weights("padded/weights", {1, 1, 3, 3}));
  x = layers::pad(graph, "more", x, {.paddings = {{0, 0}, {0, 0}, {0, 0}, {0, 3}}});
  x = conv("fixed", x, net.weights("fixed/weights", {1, 1, 6, 3}));
  const Output ones = layers::constant(graph, "ones", {3}, {1, 1, 1});
  x = layers::bias_add(graph, "fixed/BiasAdd", x, ones);
  x = conv("last", x, net.weights("last/weights", {1, 1, 3, 3}));
  graph.set_outputs({x});
  const PairSearch search = find_channel_pairs(graph);
  EXPECT_TRUE(search.pairs.empty());
  EXPECT_TRUE(mentions(reason(search, "residual"), {"[Conv2D \"residual\"] has 2 readers"}));
  EXPECT_TRUE(mentions(reason(search, "sum"), {"[Add \"add\"] follows"}));
  EXPECT_TRUE(mentions(reason(search, "before_shared"), {"shared1", "not a Variable of its own"}));
  EXPECT_TRUE(mentions(reason(search, "shared1"), {"its weights are not a Variable of its own"}));
  EXPECT_TRUE(mentions(reason(search, "curved"), {"[Sigmoid \"curved/Sigmoid\"] follows"}));
  EXPECT_TRUE(mentions(reason(search, "biased"), {"[BatchNorm \"biased/BatchNorm\"] follows"}));
  EXPECT_TRUE(mentions(reason(search, "padded"), {"[Pad \"more\"] moves the channels"}));
  EXPECT_TRUE(mentions(reason(search, "fixed"), {"the bias of [BiasAdd \"fixed/BiasAdd\"]"}));
  EXPECT_TRUE(mentions(reason(search, "last"), {"is an output of the graph"}));
}

TEST(EqualizedFunction, NeedsFoldedWeightsThatAreNumbers) {
  OddLayers net;
  Output x = layers::conv2d(net.graph, "conv", net.images, net.weights("conv/weights", {1, 1, 3, 3}));
  x = layers::relu(net.graph, "conv/Relu", net.batch_norm("conv", x, {.epsilon = 0}));
  net.graph.set_outputs({layers::conv2d(net.graph, "last", x, net.weights("last/weights", {1, 1, 3, 3}))});
  Session session(net.graph);
  Equalizer equalizer(session);
  equalizer.observe({{net.images, random_tensor(net.images.shape(), 1, -1, 1)}});
  session.set_variable("conv/moving_variance", Tensor::from({3}, std::vector<float>{1, 0, 1}));
  const std::string text = testing::error_of([&] { equalizer.finish(); });
  EXPECT_TRUE(mentions(text, {"[Conv2D \"conv\"]", "not finite"})) << text;
}

}  // namespace
}  // namespace miniqat::quantize::equalized_function_test
