#include "quantize/calibrate/adaptive_rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <variant>

#include "layers/layers.h"
#include "quantize/calibrate/bias_correction.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/calibrate/float_network.h"
#include "quantize/convert/convert.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"
#include "tests/quantize/fold/batch_norm_classifier.h"
#include "tests/thread_counts.h"

namespace miniqat::quantize::adaptive_rounding_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::numbers;
using Values = std::vector<float>;

Values values_of(const Tensor& tensor) {
  const std::span<const float> values = tensor.values<float>();
  return {values.begin(), values.end()};
}

FeedsOfBatches batches_of(Output images, const std::vector<Tensor>& batches) {
  return [=](const std::function<void(const Feeds&)>& visit) {
    for (const Tensor& batch : batches) visit({{images, batch}});
  };
}

void find_ranges(Session& session, const FeedsOfBatches& batches) {
  Calibrator calibrator(session, {.method = CalibrationMethod::kMinMax});
  batches([&](const Feeds& feeds) { calibrator.observe(feeds); });
  calibrator.finish();
}

TEST(AdaptiveRounding, MovesOneOfTwoWeightsThatMeetTheSameInput) {
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {2, 3});
  const Output weights = layers::variable(graph, "fc/weights", {3, 1});
  graph.set_outputs({layers::matmul(graph, "fc/MatMul", images, weights)});
  create_eval_graph(graph, {.weight_bits = 2, .activation_bits = 8, .symmetric_weights = true});
  Session session(graph);
  session.set_variable("fc/weights", Tensor::from({3, 1}, Values{1, 0.375F, 0.375F}));
  const auto batches = batches_of(images, {Tensor::from({2, 3}, Values{1, 0, 0, 0, 1, 1})});
  find_ranges(session, batches);
  std::vector<std::string> heard;
  const AdaptiveRounding result =
      round_adaptively(session, batches, {}, [&](const std::string& layer, std::size_t number, std::size_t all) {
        heard.push_back(concat(layer, " ", number, " ", all));
      });
  EXPECT_EQ(heard, std::vector<std::string>{"fc/MatMul 1 1"});
  // On the grid -1, 0, 1 the nearest are 1, 0, 0, which give 1 and 0 for 1 and 0.75; with 1 of the equal ones, 1 and 1.
  const Values moved = values_of(session.variable("fc/weights"));
  EXPECT_EQ(moved[0], 1);
  EXPECT_EQ(std::min(moved[1], moved[2]), 0.375F);
  EXPECT_EQ(std::max(moved[1], moved[2]), 0.5625F) << "an eighth of the way from 0.5 to 1";
  const Tensor quantized = session.run({.fetches = {graph.output_at("fc/weights_quant")}}, {}).fetched[0];
  EXPECT_EQ(quantized.data<float>()[1] + quantized.data<float>()[2], 1);
  ASSERT_EQ(result.rounded.size(), 1u);
  EXPECT_EQ(result.rounded[0].moved, 1);
  EXPECT_EQ(result.rounded[0].weights, 3);
  EXPECT_NEAR(result.rounded[0].nearest_error, 0.75 * 0.75 / (1 + 0.75 * 0.75), 1e-6);
  EXPECT_NEAR(result.rounded[0].error, 0.25 * 0.25 / (1 + 0.75 * 0.75), 1e-6);
  EXPECT_EQ(values_of(result.before.at("fc/weights")), (Values{1, 0.375F, 0.375F}));
  EXPECT_EQ(result.text(),
            "  rounded    fc/MatMul: 1 of 3 weights not at the nearest integer, error of the output 36% -> 4%\n");
  EXPECT_TRUE(mentions(error_of([&] { round_adaptively(session, [](const auto&) {}); }), {"no batch"}));
}

/// A layer alone.
struct LayerCase {
  const char* name;
  Shape images;
  Shape weights;
  std::variant<layers::Conv2dAttributes, layers::MatMulAttributes> attributes = {};
  bool depthwise = false;
};

const LayerCase kCases[] = {
    {"Conv2D", {4, 7, 6, 3}, {3, 3, 3, 5}},
    {"Strided", {4, 7, 6, 3}, {3, 2, 3, 5}, layers::Conv2dAttributes{.strides = {2, 1}}},
    {"Valid", {4, 7, 6, 3}, {2, 3, 3, 5}, layers::Conv2dAttributes{.strides = {1, 2}, .padding = Padding::kValid}},
    {"Dilated", {4, 7, 6, 2}, {3, 3, 2, 4}, layers::Conv2dAttributes{.dilations = {1, 2}}},
    {"Depthwise", {4, 7, 6, 3}, {3, 3, 3, 1}, layers::Conv2dAttributes{.strides = {2, 2}}, true},
    {"Multiplied", {4, 5, 6, 3}, {3, 3, 3, 2}, layers::Conv2dAttributes{.padding = Padding::kValid}, true},
    {"OneChannel", {4, 5, 6, 1}, {3, 3, 1, 4}, layers::Conv2dAttributes{}, true},
    {"MatMul", {30, 12}, {12, 40}, layers::MatMulAttributes{}},
    {"Transposed", {30, 12}, {40, 12}, layers::MatMulAttributes{.transpose_b = true}},
};

struct LayerNet {
  Graph graph;
  Output images;
  FeedsOfBatches batches;

  explicit LayerNet(const LayerCase& c, const RewriteOptions& options) {
    images = layers::placeholder(graph, "images", c.images);
    const Output weights = layers::variable(graph, "a/weights", c.weights);
    if (const auto* product = std::get_if<layers::MatMulAttributes>(&c.attributes))
      graph.set_outputs({layers::matmul(graph, "a/layer", images, weights, *product)});
    else if (c.depthwise)
      graph.set_outputs({layers::depthwise_conv2d(graph, "a/layer", images, weights,
                                                  std::get<layers::Conv2dAttributes>(c.attributes))});
    else
      graph.set_outputs(
          {layers::conv2d(graph, "a/layer", images, weights, std::get<layers::Conv2dAttributes>(c.attributes))});
    create_eval_graph(graph, options);
    batches = batches_of(images, {numbers("one", c.images, 0, 1), numbers("two", c.images, -0.2, 1)});
  }

  /// E||W_q x - W x||^2 / E||W x||^2 by running the layer, with `before` as W.
  double error(Session& session, const NamedTensors& before) const {
    FloatNetwork in_float(session, before);
    double errors = 0, squares = 0;
    const Output output = graph.output_at("a/layer");
    batches([&](const Feeds& feeds) {
      const Values y = values_of(in_float.run({output}, feeds)[0]);
      const Values found = values_of(session.run({.fetches = {output}}, feeds).fetched[0]);
      for (std::size_t i = 0; i < y.size(); ++i) {
        errors += (found[i] - y[i]) * (found[i] - y[i]);
        squares += y[i] * y[i];
      }
    });
    return errors / squares;
  }
};

class LayerTest : public ::testing::TestWithParam<LayerCase> {};
INSTANTIATE_TEST_SUITE_P(AdaptiveRounding, LayerTest, ::testing::ValuesIn(kCases),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(LayerTest, ReportsTheErrorsThatTheLayerHas) {
  for (const int bits : {2, 3, 8})
    for (const bool per_channel : {false, true})
      for (const bool symmetric : {false, true}) {
        LayerNet net(GetParam(), {.weight_bits = bits, .symmetric_weights = symmetric, .per_channel = per_channel});
        Session session(net.graph);
        session.set_variable("a/weights", numbers("weights", GetParam().weights, -1, 0.8));
        find_ranges(session, net.batches);
        const Tensor range = session.variable("a/weights_quant/max").clone();
        const double nearest = net.error(session, {});
        const AdaptiveRounding result = round_adaptively(session, net.batches);
        ASSERT_EQ(result.rounded.size(), 1u);
        EXPECT_NEAR(result.rounded[0].nearest_error, nearest, 1e-5);
        EXPECT_NEAR(result.rounded[0].error, net.error(session, result.before), 1e-5) << bits << per_channel;
        EXPECT_LT(result.rounded[0].error, nearest) << bits << per_channel;
        EXPECT_GT(result.rounded[0].moved, 0);
        EXPECT_EQ(values_of(session.variable("a/weights_quant/max")), values_of(range));
      }
}

/// The classifier with batch norms, trained a little and quantized; a gamma is 0, others are negative.
struct QuantizedNet {
  testing::BatchNormClassifier net;
  Graph graph;
  std::unique_ptr<Session> session;
  FeedsOfBatches batches;

  explicit QuantizedNet(const RewriteOptions& options) {
    Session trained(net.graph, {.seed = 3});
    const auto optimizer = testing::BatchNormClassifier::optimizer();
    for (int step = 0; step < 40; ++step) trained.train_step(net.loss, optimizer, net.batch());
    graph = net.graph.clone();
    create_eval_graph(graph, options);
    session = std::make_unique<Session>(graph);
    session->restore(trained.checkpoint(), Session::Restore::kByName, "the trained net");
    session->set_variable("conv/gamma", Tensor::from({4}, Values{0, -0.8F, 1.2F, 1e-30F}));
    const Tensor images = net.batch()[0].second;
    Tensor dimmed = images.clone();
    for (float& pixel : dimmed.values<float>()) pixel /= 2;
    batches = batches_of(graph.output_at("images"), {images, dimmed});
    find_ranges(*session, batches);
  }

  Values fetched(const std::string& name) {
    return values_of(session->run({.fetches = {graph.output_at(name)}}, {}).fetched[0]);
  }
};

TEST(AdaptiveRounding, MovesFoldedWeightsThroughTheirVariables) {
  QuantizedNet net({.weight_bits = 3, .activation_bits = 4});
  NamedTensors before;
  for (const auto& [name, value] : net.session->variables()) before[name] = value.clone();
  const Values folded = net.fetched("conv/mul_fold");
  const AdaptiveRounding result = round_adaptively(*net.session, net.batches);
  ASSERT_EQ(result.rounded.size(), 3u);
  EXPECT_TRUE(result.left_out.empty());
  std::map<std::string, bool> moved;
  for (const RoundedLayer& layer : result.rounded) {
    moved[layer.variable] = layer.moved > 0;
    EXPECT_EQ(layer.error<layer.nearest_error, layer.moved> 0) << layer.layer;
    EXPECT_EQ(values_of(result.before.at(layer.variable)), values_of(before.at(layer.variable))) << layer.layer;
  }
  EXPECT_TRUE(moved.at("conv/weights") && moved.at("dw/weights"));
  for (const auto& [name, value] : net.session->variables())
    EXPECT_EQ(values_of(value) != values_of(before.at(name)), moved.contains(name) && moved.at(name)) << name;
  // Less than a step from the folded weight, and the weights behind a gamma of 0 as they were.
  const Values quantized = net.fetched("conv/weights_quant"), raw = values_of(net.session->variable("conv/weights"));
  const float step = (net.session->variable("conv/weights_quant/max").data<float>()[0] -
                      net.session->variable("conv/weights_quant/min").data<float>()[0]) /
                     6;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    EXPECT_LT(std::abs(quantized[i] - folded[i]), step * 1.001F);
    if (i % 4 == 0) {
      EXPECT_EQ(raw[i], values_of(before.at("conv/weights"))[i]);
    }
  }
}

TEST(AdaptiveRounding, TheIntegerModelHasTheChosenIntegers) {
  for (const bool per_channel : {false, true}) {
    QuantizedNet net({.weight_bits = 3, .activation_bits = 4, .per_channel = per_channel, .quantize_input = true});
    const AdaptiveRounding result = round_adaptively(*net.session, net.batches);
    const integer::Model model = convert(net.graph, net.session->variables());
    std::int64_t layers = 0, moved = 0;
    for (const integer::Operation& operation : model.operations) {
      const auto* layer = std::get_if<integer::Layer>(&operation.action);
      if (layer == nullptr) continue;
      const std::string scope = layers == 0 ? "conv" : layers == 1 ? "dw" : "fc";
      const Values quantized = net.fetched(scope + "/weights_quant");
      for (std::size_t i = 0; i < quantized.size(); ++i) {
        const std::int64_t channel = static_cast<std::int64_t>(i) % layer->output_channels();
        const float weight =
            layer->weight_scale(channel) * static_cast<float>(layer->weights[i] - layer->weight_zero_point(channel));
        EXPECT_NEAR(weight, quantized[i], 1e-6) << scope << " " << i;
      }
      moved += result.rounded[static_cast<std::size_t>(layers++)].moved;
    }
    EXPECT_EQ(layers, 3);
    EXPECT_GT(moved, 0);
  }
}

TEST(AdaptiveRounding, BiasCorrectionComparesWithTheFloatNetwork) {
  QuantizedNet net({.weight_bits = 2, .activation_bits = 4});
  FloatNetwork in_float(*net.session);
  const AdaptiveRounding rounding = round_adaptively(*net.session, net.batches);
  const Output logits = net.graph.output_at("fc/BiasAdd");
  correct_biases(*net.session, net.batches, rounding.before);
  std::array<double, 3> differences = {};
  net.batches([&](const Feeds& feeds) {
    const Values wanted = values_of(in_float.run({logits}, feeds)[0]);
    const Values found = values_of(net.session->run({.fetches = {logits}}, feeds).fetched[0]);
    for (std::size_t i = 0; i < wanted.size(); ++i) differences[i % 3] += found[i] - wanted[i];
  });
  for (const double difference : differences) EXPECT_NEAR(difference, 0, 1e-3);
}

TEST(AdaptiveRounding, RepeatsWithASeedWhateverTheThreads) {
  Values first;
  testing::with_thread_counts([&] {
    const LayerCase& c = kCases[7];
    LayerNet net(c, {.weight_bits = 3});
    Session session(net.graph);
    session.set_variable("a/weights", numbers("weights", c.weights));
    find_ranges(session, net.batches);
    round_adaptively(session, net.batches, {.seed = 5, .patches = 20});
    const Values rounded = values_of(session.variable("a/weights"));
    if (first.empty()) first = rounded;
    EXPECT_EQ(rounded, first);
  });
  LayerNet net(kCases[7], {.weight_bits = 3});
  Session session(net.graph);
  session.set_variable("a/weights", numbers("weights", kCases[7].weights));
  find_ranges(session, net.batches);
  round_adaptively(session, net.batches, {.seed = 6, .patches = 20});
  EXPECT_NE(values_of(session.variable("a/weights")), first);
}

TEST(AdaptiveRounding, InputsThatAreAlwaysZeroChangeNothing) {
  LayerNet net(kCases[7], {.weight_bits = 2});
  Session session(net.graph);
  session.set_variable("a/weights", numbers("weights", kCases[7].weights));
  find_ranges(session, net.batches);
  const AdaptiveRounding result = round_adaptively(session, batches_of(net.images, {Tensor(kCases[7].images)}));
  EXPECT_EQ(result.rounded[0].moved, 0);
  EXPECT_EQ(result.rounded[0].nearest_error, 0);
  EXPECT_EQ(result.rounded[0].error, 0);
  EXPECT_EQ(values_of(session.variable("a/weights")), values_of(numbers("weights", kCases[7].weights)));
}

TEST(AdaptiveRounding, LeavesOutWhatItCannotRound) {
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {4, 4});
  const Output shared = layers::variable(graph, "shared", {4, 4});
  const auto weights = [&](const std::string& scope) { return layers::variable(graph, scope + "/weights", {4, 4}); };
  Output x = layers::matmul(graph, "fc1/MatMul", images, shared);
  x = layers::matmul(graph, "fc2/MatMul", x, shared);
  x = layers::matmul(graph, "fc3/MatMul", weights("fc3"), x);
  x = layers::matmul(graph, "fc4/MatMul", x, weights("fc4"), {.transpose_a = true});
  x = layers::matmul(graph, "fc5/MatMul", x, weights("fc5"));
  x = layers::matmul(graph, "fc6/MatMul", x, weights("fc6"));
  graph.set_outputs({x});
  for (const char* scope : {"fc1", "fc2", "fc3", "fc4", "fc6"}) create_eval_graph(graph, {.scope = scope});
  Session session(graph);
  const auto batches = batches_of(images, {numbers("images", {4, 4})});
  find_ranges(session, batches);
  const AdaptiveRounding result = round_adaptively(session, batches, {.most_inputs = 3});
  EXPECT_TRUE(result.rounded.empty());
  ASSERT_EQ(result.left_out.size(), 6u);
  const char* reasons[] = {"its weights are not a Variable of its own",
                           "its weights are not a Variable of its own",
                           "its weights are the left operand",
                           "its input is transposed",
                           "its weights are not quantized",
                           "an output has 4 weights, more than 3"};
  for (std::size_t k = 0; k < 6; ++k) EXPECT_EQ(result.left_out[k].reason, reasons[k]) << k;
  EXPECT_TRUE(result.text().starts_with("  left out   fc1/MatMul: its weights are not a")) << result.text();
  EXPECT_EQ(round_adaptively(session, batches).rounded.size(), 1u);
}

/// Two layers; asked for the second time in the second one, it ends there.
TEST(AdaptiveRounding, StopsInTheMiddleOfALayer) {
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {16, 12});
  const Output hidden =
      layers::matmul(graph, "first/MatMul", images, layers::variable(graph, "first/weights", {12, 8}));
  graph.set_outputs(
      {layers::matmul(graph, "second/MatMul", hidden, layers::variable(graph, "second/weights", {8, 5}))});
  create_eval_graph(graph, {.weight_bits = 3, .activation_bits = 8, .symmetric_weights = true});
  Session session(graph);
  for (const auto& [name, value] : session.variables())
    if (name.ends_with("/weights")) session.set_variable(name, numbers(name, value.shape()));
  const auto batches = batches_of(images, {numbers("batch", {16, 12})});
  find_ranges(session, batches);
  const Values second = values_of(session.variable("second/weights"));
  bool is_in_second = false;
  RoundingOptions options;
  options.stops = [&] { return is_in_second; };
  const AdaptiveRounding result =
      round_adaptively(session, batches, options,
                       [&](const std::string&, std::size_t number, std::size_t) { is_in_second = number == 2; });
  ASSERT_EQ(result.rounded.size(), 1u);
  EXPECT_EQ(result.rounded[0].layer, "first/MatMul");
  EXPECT_GT(result.rounded[0].moved, 0);
  EXPECT_EQ(values_of(session.variable("second/weights")), second);
}

}  // namespace
}  // namespace miniqat::quantize::adaptive_rounding_test
