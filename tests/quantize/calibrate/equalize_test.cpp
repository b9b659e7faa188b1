#include "quantize/calibrate/equalize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/tensors/random.h"
#include "layers/layers.h"
#include "models/blocks.h"
#include "models/models.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"
#include "tests/layers/op_runner.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::equalize_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::random_tensor;
using testing::ToyGraph;
using Values = std::vector<float>;

Values values_of(Session& session, const std::string& name) {
  const auto values = session.variable(name).values<float>();
  return {values.begin(), values.end()};
}

/// Two convolutions of one pixel with two channels in between: conv1 1 -> 2, an activation, conv2 2 -> 1.
struct TwoLayers {
  enum class Between { kRelu, kRelu6, kNothing };

  explicit TwoLayers(Between between = Between::kRelu) {
    images = layers::placeholder(graph, "images", {2, 1, 1, 1});
    Output x = conv("conv1", images, 2);
    if (between == Between::kRelu) x = layers::relu(graph, "conv1/Relu", x);
    if (between == Between::kRelu6) x = layers::relu6(graph, "conv1/Relu6", x);
    logits = conv("conv2", x, 1);
    graph.set_outputs({logits});
    session = std::make_unique<Session>(graph);
    // Ranges 4 and 0.25 before 1 and 1.
    set("conv1/weights", {4, -0.25f});
    set("conv2/weights", {-1, 1});
    set("conv1/biases", {0, 0.5f});
  }

  Output conv(const std::string& scope, Output x, std::int64_t channels) {
    const Output weights = layers::variable(graph, scope + "/weights", {1, 1, x.shape().channels(), channels});
    const Output biases = layers::variable(graph, scope + "/biases", {channels}, Initializer::constant(0));
    return layers::bias_add(graph, scope + "/BiasAdd", layers::conv2d(graph, scope + "/Conv2D", x, weights), biases);
  }
  void set(const std::string& name, const Values& values) {
    session->set_variable(name, Tensor::from(session->variable(name).shape(), values));
  }
  Equalization equalize(const Values& pixels) {
    Equalizer equalizer(*session);
    equalizer.observe({{images, Tensor::from({2, 1, 1, 1}, pixels)}});
    return equalizer.finish();
  }

  Graph graph;
  Output images;
  Output logits;
  std::unique_ptr<Session> session;
};

TEST(Equalizer, MovesScalesToTheNextLayer) {
  TwoLayers net;
  // Channel 0 reaches 4 and channel 1 reaches 0.75.
  const Equalization result = net.equalize({1, -1});
  ASSERT_EQ(result.pairs.size(), 1u);
  EXPECT_EQ(result.pairs[0].first, "conv1/Conv2D");
  EXPECT_EQ(result.pairs[0].second, "conv2/Conv2D");
  // sqrt(4 * 1) / 1 and sqrt(0.25 * 1) / 1.
  EXPECT_EQ(result.pairs[0].scales, (std::vector<double>{2, 0.5}));
  EXPECT_EQ(result.pairs[0].limited, 0);
  EXPECT_EQ(values_of(*net.session, "conv1/weights"), (Values{2, -0.5f}));
  EXPECT_EQ(values_of(*net.session, "conv1/biases"), (Values{0, 1}));
  EXPECT_EQ(values_of(*net.session, "conv2/weights"), (Values{-2, 0.5f}));
  EXPECT_EQ(values_of(*net.session, "conv2/biases"), (Values{0}));
  ASSERT_EQ(result.left_out.size(), 1u);
  EXPECT_EQ(result.left_out[0].layer, "conv2/Conv2D");
  EXPECT_TRUE(mentions(result.left_out[0].reason, {"conv2/BiasAdd", "output of the graph"}));
}

TEST(Equalizer, ChangesNothingMoreTheSecondTime) {
  TwoLayers net;
  net.equalize({1, -1});
  EXPECT_EQ(net.equalize({1, -1}).pairs[0].scales, (std::vector<double>{1, 1}));
}

TEST(Equalizer, KeepsTheRangeOfTheActivation) {
  TwoLayers net;
  net.set("conv1/biases", {0, 3});
  // Channel 1 reaches 3.25 of 4: half of 3.25 / 4 would widen the range.
  const Equalization result = net.equalize({1, -1});
  EXPECT_EQ(result.pairs[0].scales, (std::vector<double>{2, 3.25 / 4}));
  EXPECT_EQ(result.pairs[0].limited, 1);
}

TEST(Equalizer, ScalesOnlyChannelsThatStayBelowSixBeforeARelu6) {
  TwoLayers net(TwoLayers::Between::kRelu6);
  // Channel 0 reaches 8; channel 1 reaches 1 of 6.
  const Equalization result = net.equalize({2, -2});
  EXPECT_EQ(result.pairs[0].scales, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(result.pairs[0].clipped, 1);
  // And with nothing above 6 both.
  TwoLayers small(TwoLayers::Between::kRelu6);
  EXPECT_EQ(small.equalize({1, -1}).pairs[0].scales, (std::vector<double>{2, 0.5}));
}

TEST(Equalizer, TakesMagnitudesWithoutAnActivation) {
  TwoLayers net(TwoLayers::Between::kNothing);
  net.set("conv1/biases", {0, -3});
  // Channel 1 reaches -3.25 of 4.
  EXPECT_EQ(net.equalize({1, -1}).pairs[0].scales, (std::vector<double>{2, 3.25 / 4}));
}

TEST(Equalizer, KeepsChannelsOfZeros) {
  for (const char* zeros : {"conv1/weights", "conv2/weights"}) {
    TwoLayers net;
    const Values before = values_of(*net.session, zeros);
    net.set(zeros, {before[0], 0});
    const Equalization result = net.equalize({1, -1});
    EXPECT_EQ(result.pairs[0].scales, (std::vector<double>{2, 1})) << zeros;
    EXPECT_EQ(result.pairs[0].empty, 1) << zeros;
    EXPECT_NE(result.text().find(", 1 kept because their weights are 0\n"), std::string::npos) << result.text();
  }
}

TEST(Equalizer, RefusesWhatIsNotANumber) {
  TwoLayers net;
  EXPECT_TRUE(mentions(error_of([&] { Equalizer(*net.session).finish(); }), {"no batch"}));
  EXPECT_TRUE(mentions(error_of([&] { net.set("conv1/weights", {4, NAN}); }), {"conv1/weights", "finite"}));
  const std::string text = error_of([&] { net.equalize({NAN, 1}); });
  EXPECT_TRUE(mentions(text, {"conv1/", "not finite"})) << text;
}

TEST(Equalizer, SavesWhatOneLargeChannelTakes) {
  // Channel 0 has weights a thousand times larger than channel 1, and the second layer makes up for it.
  const auto noise = [](bool equalized) {
    TwoLayers net;
    net.set("conv1/weights", {1, 0.001f});
    net.set("conv1/biases", {0, 0});
    net.set("conv2/weights", {0.001f, 1});
    const Tensor pixels = Tensor::from({2, 1, 1, 1}, Values{1, 0.7f});
    const auto run = [&](Session& session) {
      return session
          .run({.fetches = {session.graph().outputs().front()}}, {{session.graph().output_at("images"), pixels}})
          .fetched[0];
    };
    const Tensor in_float = run(*net.session);
    if (equalized) {
      Equalizer equalizer(*net.session);
      equalizer.observe({{net.images, pixels}});
      equalizer.finish();
    }
    Graph graph = net.graph.clone();
    create_eval_graph(graph, {});
    Session session(graph);
    session.restore(net.session->checkpoint(), Session::Restore::kByName, "the net");
    Calibrator calibrator(session, {.method = CalibrationMethod::kMinMax});
    calibrator.observe({{graph.output_at("images"), pixels}});
    calibrator.finish();
    const Tensor quantized = run(session);
    double error = 0, signal = 0;
    for (int i = 0; i < 2; ++i) {
      const double expected = in_float.data<float>()[i];
      error += std::pow(quantized.data<float>()[i] - expected, 2);
      signal += expected * expected;
    }
    return error / signal;
  };
  EXPECT_GT(noise(false), 0.2);
  EXPECT_LT(noise(true), 1e-4);
}

// Equalization keeps the function of whole networks.

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

TEST(EqualizedFunction, OfMultipliersFlattenedPoolsAndTransposedMatricesStays) {
  ToyGraph toy(
      "images | conv a | batch_norm a | Relu a/Relu | Pad pad | DepthwiseConv2d dw [3,3,2,3]dw/weights | batch_norm dw |"
      "Relu dw/Relu | AvgPool pool | Identity copy | Reshape flatten 2 54 | MatMulTransposed fc1 [5,54]fc1/weights |"
      "Add fc1/Add [5]biases | Relu fc1/Relu | dense fc2 4 | Relu fc2/Relu | dense fc3 3 | output",
      {.images = {2, 4, 4, 3}, .filter = 3, .channels = 2});
  EXPECT_EQ(expect_same_function(toy.graph, toy.graph.output_at("images")).pairs.size(), 4u);
}

TEST(EqualizedFunction, LeavesOutWhatWouldChangeIt) {
  const std::string sum = "images | conv a | conv b | Add add a/Conv2D | conv c | output",
                    shared = "[1,1,2,2]w; images | conv a | conv b w | conv c w | output";
  struct Row {
    std::string chains;
    std::string layer;
    std::string reason;
  };
  for (const Row& row : std::vector<Row>{
           {sum, "a", "[Conv2D \"a/Conv2D\"] has 2 readers"},
           {sum, "b", "[Add \"add\"] follows"},
           {shared, "a", "[Conv2D \"b/Conv2D\"]: its weights are not a Variable of its own"},
           {shared, "b", "its weights are not a Variable of its own"},
           {"images | conv a | Sigmoid s | conv b | output", "a", "[Sigmoid \"s\"] follows"},
           {"images | conv_bias a | batch_norm a | conv b | output", "a", "[BatchNorm \"a/BatchNorm\"] follows"},
           {"images | conv a | PadChannels pad | conv b | output", "a", "[Pad \"pad\"] moves the channels"},
           {"images | conv a | BiasAdd b =[2]ones | conv c | output", "a", "the bias of [BiasAdd \"b\"]"},
           {"images | conv a | output", "a", "is an output of the graph"}}) {
    SCOPED_TRACE(row.chains);
    const ToyGraph toy(row.chains);
    const PairSearch search = find_channel_pairs(toy.graph);
    EXPECT_TRUE(search.pairs.empty());
    const auto found = std::ranges::find(search.left_out, row.layer + "/Conv2D", &LeftOutLayer::layer);
    ASSERT_NE(found, search.left_out.end()) << row.layer;
    EXPECT_TRUE(mentions(found->reason, {row.reason}));
  }
}

/// A pair lies in the scope as a whole, or its weights stay.
TEST(EqualizedFunction, StaysInItsScope) {
  const ToyGraph toy("images | conv a/1 | conv a/2 | conv b/1 | conv b/2 | output");
  const PairSearch search = find_channel_pairs(toy.graph, "a");
  ASSERT_EQ(search.pairs.size(), 1u);
  EXPECT_EQ(search.pairs[0].second.layer->name(), "a/2/Conv2D");
  ASSERT_EQ(search.left_out.size(), 3u);
  EXPECT_EQ(search.left_out[0].reason, "[Conv2D \"b/1/Conv2D\"]: it is not in the scope \"a\"");
  EXPECT_EQ(search.left_out[1].reason, "it is not in the scope \"a\"");
}

TEST(EqualizedFunction, NeedsFoldedWeightsThatAreNumbers) {
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {1, 4, 4, 2});
  const Output x = models::conv_norm(graph, "a", images, {.channels = 2},
                                     {.activation = models::Activation::kRelu, .batch_norm = {.epsilon = 0}});
  graph.set_outputs({models::conv_relu(graph, "last", x, {.channels = 2})});
  Session session(graph);
  Equalizer equalizer(session);
  equalizer.observe({{images, random_tensor({1, 4, 4, 2}, 1, -1, 1)}});
  session.set_variable("a/BatchNorm/moving_variance", Tensor::from({2}, Values{1, 0}));
  EXPECT_TRUE(mentions(error_of([&] { equalizer.finish(); }), {"[Conv2D \"a/Conv2D\"]", "not finite"}));
}

}  // namespace
}  // namespace miniqat::quantize::equalize_test
