// Batch norms that are part of no layer: in evaluation a product and a sum for each channel, among integers as those
// written as Mul and Add.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/engine/session.h"
#include "core/graph/graph_json.h"
#include "optim/sgd.h"
#include "quantize/convert/convert.h"
#include "quantize/quantize.h"
#include "quantize/quantizers.h"
#include "tests/quantize/convert/integer_check.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"
#include "tests/quantize/fold/folding_ways.h"
#include "tests/quantize/toy_graph.h"
#include "tests/quantize/trained_net.h"

namespace miniqat::quantize::batch_norm_scale_shift_test {
namespace {

using testing::EvalNet;
using testing::FoldingWay;
using testing::mentions;
using testing::operations_of;

// By hand.

struct NormNet {
  EvalNet net;
  Output x = net.quantizer("x", net.conv("a", net.images(), 3), {-2, 3});
  layers::BatchNormAttributes attributes = {.epsilon = 0.25, .is_training = false};
  float variance = 3.75f;

  Output norm(const std::string& name, Output input, const std::vector<float>& gamma) {
    const Shape channels{input.shape().channels()};
    const auto repeated = [&](float value) { return std::vector<float>(gamma.size(), value); };
    return layers::batch_norm(net.graph, name, input, net.variable(name + "/gamma", channels, gamma),
                              net.variable(name + "/beta", channels, repeated(0.5f)),
                              net.variable(name + "/mean", channels, repeated(-1)),
                              net.variable(name + "/variance", channels, repeated(variance)), attributes);
  }
};

/// gamma / sigma and beta - mean gamma / sigma with sigma = 2.
TEST(ConvertBatchNorm, IsADepthwiseConvolution) {
  NormNet norms;
  EvalNet& net = norms.net;
  const Output y = layers::relu(net.graph, "Relu", norms.norm("norm", norms.x, {1, -3, 0}));
  const integer::Model model = net.faithful(net.quantizer("y", y, {0, 6}));
  EXPECT_EQ(operations_of(model).back(), "DepthwiseConv2d norm -> y");
  const auto& layer = std::get<integer::Layer>(model.operations.back().action);
  for (const auto& [c, factor] : {std::pair(0, 0.5), std::pair(1, -1.5), std::pair(2, 0.0)}) {
    EXPECT_NEAR(double{layer.weight_scale(c)} * (layer.weights[static_cast<std::size_t>(c)] - 128), factor, 1e-6);
    const double unit = double{model.tensors[1].grid.scale} * layer.unit_scale(c);
    EXPECT_NEAR(unit * layer.bias[static_cast<std::size_t>(c)], 0.5 + factor, unit / 2 + 1e-6);
  }
}

TEST(ConvertBatchNorm, JoinsConstantsAndOtherBatchNorms) {
  NormNet norms;
  EvalNet& net = norms.net;
  Output y = layers::mul(net.graph, "Mul", norms.x, layers::constant(net.graph, "two", {}, {2}));
  y = norms.norm("first", y, {1, 2, 3});
  y = norms.norm("second", y, {2, -1, 1});
  y = layers::bias_add(net.graph, "BiasAdd", y, net.variable("biases", {3}, {1, -1, 0}));
  const integer::Model model = net.faithful(net.quantizer("y", y, {-6, 9}));
  EXPECT_EQ(operations_of(model).back(), "DepthwiseConv2d Mul -> y");
  const auto& layer = std::get<integer::Layer>(model.operations.back().action);
  EXPECT_NEAR(double{layer.weight_scale(1)} * (layer.weights[1] - 128), 2 * 1 * -0.5, 1e-6);
}

TEST(ConvertBatchNorm, OfOneChannelIsATable) {
  NormNet norms;
  EvalNet& net = norms.net;
  const Output x = net.quantizer("one", net.conv("b", norms.x, 1), {-2, 3});
  const integer::Model model = net.faithful(net.quantizer("y", norms.norm("norm", x, {-1}), {-3, 3}));
  EXPECT_EQ(operations_of(model).back(), "Lookup norm -> y");
}

TEST(ConvertBatchNorm, RefusesByName) {
  const auto refused = [](NormNet& norms, Output y) {
    return norms.net.refusal(norms.net.quantizer("out", y, {-1, 1}));
  };
  NormNet training;
  training.attributes.is_training = true;
  EXPECT_TRUE(mentions(refused(training, training.norm("norm", training.x, {1, 1, 1})),
                       {"[BatchNorm \"norm\"]", "one for training"}));
  NormNet infinite;
  infinite.attributes.epsilon = infinite.variance = 0;
  EXPECT_TRUE(mentions(refused(infinite, infinite.norm("norm", infinite.x, {1, 1, 1})),
                       {"[BatchNorm \"norm\"]", "channel 0", "root of 0"}));
  NormNet floating;
  const Output sum = floating.net.conv("b", floating.x, 3);
  EXPECT_TRUE(mentions(refused(floating, floating.norm("norm", sum, {1, 1, 1})),
                       {"[BatchNorm \"norm\"] reads b/BiasAdd", "no range"}));
  NormNet statistics;
  statistics.norm("norm", statistics.x, {1, 1, 1});
  EXPECT_TRUE(mentions(refused(statistics, statistics.net.graph.at("norm").output(1)),
                       {"[BatchNorm \"norm\"]", "norm:1", "no integer model"}));
}

// Trained.

struct Case {
  std::string name;
  /// ToyGraph's, of 3x3 convolutions to eight channels; behind the last tensor comes a dense layer.
  std::string chains;
  /// The batch norms that are part of no layer, and what is quantized for them.
  std::vector<std::pair<std::string, std::string>> alone;

  Graph graph() const {
    const testing::ToySizes sizes = {.images = {4, 8, 8, 3}, .filter = 3, .channels = 8, .trains = true};
    const bool rows = chains.find("Mean Mean") != std::string::npos;
    return std::move(testing::ToyGraph(chains + (rows ? "" : " | Mean Mean") + " | dense fc 5 | output", sizes).graph);
  }
};

void PrintTo(const Case& c, std::ostream* stream) { *stream << c.name; }

const std::string kOwn = "n/BatchNorm/activation_BatchNorm_quant";
const std::vector<std::pair<std::string, std::string>> kAlone = {{"n/BatchNorm", kOwn}};
const std::vector<Case> kPlaces = {
    {"BehindRelu", "images | conv_relu a | batch_norm n | conv b", kAlone},
    {"BehindMaxPool", "images | conv_relu a | MaxPool pool | batch_norm n | conv b", kAlone},
    {"BehindConcat", "images | conv b; images | conv_relu a | Concat both b/Conv2D | batch_norm n | conv c", kAlone},
    {"BehindAdd", "images | conv b; images | conv_relu a | Add both b/Conv2D | batch_norm n | conv c", kAlone},
    {"BehindABatchNorm", "images | conv a | batch_norm a | batch_norm n | conv b", kAlone},
    {"BehindABatchNormAlone",
     "images | conv_relu a | batch_norm m | batch_norm n | conv b",
     {{"m/BatchNorm", "n/BatchNorm"}, kAlone[0]}},
    {"OnThePicture", "images | batch_norm n | conv_relu a", kAlone},
    {"BehindAMean", "images | conv_relu a | Mean Mean | batch_norm n", kAlone},
    {"BehindABias", "images | conv_bias a | batch_norm n | conv b", kAlone},
    {"LayerHasOtherReaders", "images | conv a | Relu a/Relu; a/Conv2D | batch_norm n | Concat both a/Relu | conv b",
     kAlone},
    {"OfALayerTwice",
     "images | conv a | batch_norm m; a/Conv2D | batch_norm n | Concat both m/BatchNorm | conv b",
     {kAlone[0], {"m/BatchNorm", "m/BatchNorm/activation_BatchNorm_quant"}}},
};

/// x + conv(relu(norm(conv(relu(norm(x)))))), the first of the norms with other readers of its input.
std::string preactivated(const std::string& scope, const std::string& x) {
  return concat(" | batch_norm ", scope, "/n | Relu ", scope, "/n/Relu | conv ", scope, "/a | batch_norm ", scope,
                "/a | Relu ", scope, "/a/Relu | conv ", scope, "/b | Add ", scope, "/Add ", x);
}

/// x and what norm, Relu and convolution make of it.
std::string dense_layer(const std::string& scope, const std::string& x) {
  return concat(" | batch_norm ", scope, " | Relu ", scope, "/Relu | conv ", scope, " | Concat ", scope, "/Concat ", x);
}

const std::vector<Case> kNetworks = {
    {"Preactivation",
     "images | conv stem | batch_norm stem" + preactivated("one", "stem/BatchNorm") + preactivated("two", "one/Add") +
         " | batch_norm last | Relu last/Relu",
     {{"one/n/BatchNorm", "one/n/Relu"}, {"two/n/BatchNorm", "two/n/Relu"}, {"last/BatchNorm", "last/Relu"}}},
    {"DenseNet",
     "images | conv stem | batch_norm stem | Relu stem/Relu | MaxPool pool" + dense_layer("one", "pool") +
         dense_layer("two", "one/Concat") +
         " | batch_norm transition | Relu transition/Relu | conv transition | AvgPool smaller" +
         dense_layer("three", "smaller") + " | batch_norm last | Relu last/Relu",
     {{"one/BatchNorm", "one/Relu"},
      {"two/BatchNorm", "two/Relu"},
      {"transition/BatchNorm", "transition/Relu"},
      {"three/BatchNorm", "three/Relu"},
      {"last/BatchNorm", "last/Relu"}}},
};

std::vector<Case> all_cases() {
  std::vector<Case> cases = kPlaces;
  std::ranges::copy(kNetworks, std::back_inserter(cases));
  return cases;
}

class BatchNormAlone : public ::testing::TestWithParam<Case> {
 protected:
  static void for_all_ways(const std::function<void(RewriteOptions)>& check) {
    for (const FoldingWay& way : testing::folding_ways()) {
      SCOPED_TRACE(way.name());
      check({.per_channel = way.per_channel, .bn_fold = way.fold, .strict = true});
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Cases, BatchNormAlone, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

const BatchNormReport& line_on(const RewriteReport& report, const std::string& batch_norm) {
  return *std::ranges::find(report.batch_norms, batch_norm, &BatchNormReport::batch_norm);
}

/// Delay and freeze as for all others. The report says where each is quantized.
TEST_P(BatchNormAlone, IsQuantizedInTraining) {
  for_all_ways([&](RewriteOptions options) {
    options.quant_delay = 7;
    options.freeze_bn_delay = 11;
    Graph graph = GetParam().graph();
    const RewriteReport report = create_training_graph(graph, options);
    for (const auto& [name, quantized] : GetParam().alone) {
      EXPECT_EQ(freeze_delay_of(graph.at(name)), 11) << name;
      const BatchNormReport& line = line_on(report, name);
      EXPECT_FALSE(line.folded);
      const bool is_own = graph.at(quantized).as<FakeQuant>();
      EXPECT_TRUE(mentions(line.text, {concat("in evaluation a product and a sum for each channel, quantized ",
                                              is_own ? "by " : "after ", quantized)}))
          << line.text;
    }
    const auto not_folded = std::ranges::count(report.batch_norms, false, &BatchNormReport::folded);
    EXPECT_EQ(not_folded, std::ssize(GetParam().alone)) << report.text();
    for (const Node* node : graph.nodes())
      if (const auto* quantizer = node->as<FakeQuant>()) {
        EXPECT_EQ(quantizer->delay, 7) << node->name();
      }
    for (const MatchReport& match : report.matches) EXPECT_TRUE(match.matched || match.statistics) << match.text;
  });
}

TEST_P(BatchNormAlone, EvaluationIsTheSameOfBothGraphsAndTwiceIsOnce) {
  for_all_ways([&](const RewriteOptions& options) {
    layers::register_ops();
    register_ops();
    Graph training = GetParam().graph();
    Graph evaluation = training.clone();
    create_eval_graph(evaluation, options);
    create_training_graph(training, options);
    const RewriteReport again = create_training_graph(training, options);
    EXPECT_TRUE(again.inserted.empty());
    EXPECT_TRUE(again.conflicts.empty());
    turn_to_evaluation(training);
    EXPECT_EQ(graph_to_json(training), graph_to_json(evaluation));
  });
}

/// Of few numbers behind a Relu a good part may be one number that lies beside a tie, so the share is that of all.
TEST_P(BatchNormAlone, IntegersAreThoseOfTheSimulation) {
  for (const FoldingWay& way : testing::two_folding_ways(GetParam().name)) {
    SCOPED_TRACE(way.name());
    const testing::TrainedNet net =
        testing::train_briefly(GetParam().graph(), {.per_channel = way.per_channel, .bn_fold = way.fold});
    const integer::Model model = convert(net.evaluation, net.variables, {.input = testing::kPictures});
    const Tensor images = testing::images_for(net.evaluation, model, 1);
    testing::Agreement all;
    for (const auto& check : testing::check_operations(net.evaluation, net.variables, model, images)) {
      EXPECT_LE(check.largest, 1 + std::floor(check.bias_steps)) << check.operation;
      all.elements += check.elements;
      all.different += check.different;
    }
    EXPECT_LE(static_cast<double>(all.different), 0.005 * static_cast<double>(all.elements));
  }
}

/// At few bits a tie early in a deep network is many steps at its end, so operation by operation.
TEST(BatchNormAlone, FewBits) {
  for (const Case& c : kNetworks)
    for (const RangeChoice ranges : {RangeChoice::kObserved, RangeChoice::kLearned}) {
      SCOPED_TRACE(c.name);
      const testing::TrainedNet net =
          testing::train_briefly(c.graph(), {.weight_bits = 4, .activation_bits = 4, .ranges = ranges});
      const integer::Model model = convert(net.evaluation, net.variables, {.input = testing::kPictures});
      const Tensor images = testing::images_for(net.evaluation, model, 1);
      for (const auto& check : testing::check_operations(net.evaluation, net.variables, model, images))
        EXPECT_LE(check.largest, 1) << check.operation;
    }
}

/// The engine and C, too.
TEST(BatchNormAlone, TrainedIntegers) {
  for (const Case& c : kPlaces) {
    SCOPED_TRACE(c.name);
    if (c.name == "BehindMaxPool" || c.name == "OnThePicture" || c.name == "BehindAMean")
      testing::expect_trained_integers(c.graph());
  }
}

/// The moving statistics stay from the third step on.
TEST(BatchNormAlone, FreezesInTraining) {
  Graph graph = kPlaces.front().graph();
  create_training_graph(graph, {.freeze_bn_delay = 3});
  const Output loss = layers::mean(graph, "loss", graph.outputs().front(), {.axes = {0, 1}});
  Session session(graph);
  Tensor pictures(graph.at("images").output().shape());
  for (std::size_t i = 0; float& pixel : pictures.values<float>()) pixel = static_cast<float>(i++ % 7) - 3;
  const auto mean_after_a_step = [&] {
    session.train_step(loss, optim::Sgd({.learning_rate = 0.01}), {{graph.at("images").output(), pictures}});
    const Tensor mean = session.variable("n/moving_mean");
    return std::vector<float>(mean.values<float>().begin(), mean.values<float>().end());
  };
  const std::vector<float> first = mean_after_a_step(), second = mean_after_a_step();
  EXPECT_NE(first, second);
  EXPECT_EQ(mean_after_a_step(), second);
}

}  // namespace
}  // namespace miniqat::quantize::batch_norm_scale_shift_test
