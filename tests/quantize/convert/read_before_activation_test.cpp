// A layer whose result is read both before and behind its activation: the integers before it have a quantizer of their
// own, and the activation is an operation by itself.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/graph/graph_json.h"
#include "quantize/convert/convert.h"
#include "quantize/quantize.h"
#include "tests/quantize/convert/integer_check.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"
#include "tests/quantize/fold/folding_ways.h"
#include "tests/quantize/trained_net.h"

namespace miniqat::quantize::read_before_activation_test {
namespace {

using testing::FoldingWay;
using testing::Texts;

Output vector(Graph& graph, const std::string& name, std::int64_t size, double mean, bool trainable = true) {
  return layers::variable(graph, name, {size},
                          {.kind = Initializer::Kind::kTruncatedNormal, .mean = mean, .stddev = 0.3}, trainable);
}

/// 3x3, stride 1, to six channels, with a bias or a batch norm.
Output linear(Graph& graph, const std::string& scope, Output x, bool normalised) {
  const Output w = layers::variable(graph, scope + "/weights", {3, 3, x.shape()[3], 6});
  const Output y = layers::conv2d(graph, scope + "/Conv2D", x, w);
  if (!normalised) return layers::bias_add(graph, scope + "/BiasAdd", y, vector(graph, scope + "/biases", 6, 0));
  return layers::batch_norm(graph, scope + "/BatchNorm", y, vector(graph, scope + "/gamma", 6, 1),
                            vector(graph, scope + "/beta", 6, 0), vector(graph, scope + "/mean", 6, 0, false),
                            vector(graph, scope + "/variance", 6, 1, false), {.decay = 0.9});
}

using Op = std::function<Output(Graph&, Output)>;

struct NamedOp {
  std::string name;
  Op make;
};

const std::vector<NamedOp>& activations() {
  static const std::vector<NamedOp> all = {
      {"Relu", [](Graph& graph, Output x) { return layers::relu(graph, "a/act", x); }},
      {"Relu6", [](Graph& graph, Output x) { return layers::relu6(graph, "a/act", x); }},
      {"Clip", [](Graph& graph, Output x) { return layers::clip(graph, "a/act", x, {.low = -0.2, .high = 0.8}); }},
  };
  return all;
}

/// What else reads the layer's result; "Concat" and "Add" of both are made apart.
const std::vector<NamedOp>& readers() {
  static const std::vector<NamedOp> all = {
      {"Concat", {}},
      {"Add", {}},
      {"Sigmoid", [](Graph& graph, Output x) { return layers::sigmoid(graph, "reader", x); }},
      {"Mul", [](Graph& graph,
                 Output x) { return layers::mul(graph, "reader", x, layers::constant(graph, "factor", {}, {0.7})); }},
      {"Conv2D", [](Graph& graph, Output x) { return linear(graph, "reader", x, false); }},
      {"MaxPool",
       [](Graph& graph, Output x) {
         return layers::max_pool(graph, "reader", x, {.window = {3, 3}, .strides = {1, 1}, .padding = Padding::kSame});
       }},
      {"OtherActivation",
       [](Graph& graph, Output x) { return layers::clip(graph, "reader", x, {.low = -0.4, .high = 0.3}); }},
      {"OtherRelu", [](Graph& graph, Output x) { return layers::relu(graph, "reader", x); }},
  };
  return all;
}

struct Case {
  NamedOp activation;
  NamedOp reader;
  bool normalised;

  std::string name() const { return (normalised ? "BatchNorm" : "Bias") + activation.name + reader.name; }

  Graph graph() const {
    Graph graph;
    const Output images = layers::placeholder(graph, "images", {4, 8, 8, 3});
    const Output before = linear(graph, "a", images, normalised);
    const Output behind = activation.make(graph, before);
    Output both;
    if (reader.name == "Concat")
      both = layers::concat(graph, "both", {before, behind});
    else if (reader.name == "Add")
      both =
          layers::add(graph, "both",
                      layers::max_pool(graph, "pool", behind, {.strides = {1, 1}, .padding = Padding::kSame}), before);
    else
      both = layers::concat(graph, "both", {reader.make(graph, before), behind});
    const Output rows = layers::mean(graph, "Mean", both, {.axes = {1, 2}});
    graph.set_outputs({layers::matmul(graph, "fc/MatMul", rows,
                                      layers::variable(graph, "fc/weights", {rows.shape().channels(), 5}))});
    return graph;
  }
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const bool normalised : {false, true})
    for (const NamedOp& activation : activations())
      for (const NamedOp& reader : readers()) cases.push_back({activation, reader, normalised});
  return cases;
}

void PrintTo(const Case& c, std::ostream* stream) { *stream << c.name(); }

class ReadBeforeActivation : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Cases, ReadBeforeActivation, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name(); });

TEST_P(ReadBeforeActivation, BothEdgesHaveQuantizers) {
  layers::register_ops();
  register_ops();
  for (const FoldingWay& way : testing::folding_ways()) {
    SCOPED_TRACE(way.name());
    const RewriteOptions options{.per_channel = way.per_channel, .bn_fold = way.fold, .strict = true};
    Graph training = GetParam().graph();
    Graph evaluation = training.clone();
    const RewriteReport report = create_training_graph(training, options);
    const Node& activation = training.at("a/act");
    EXPECT_EQ(activation.input(0).node->type(), "FakeQuant");
    // An Add of the layer's result is its bypass.
    EXPECT_EQ(activation.input(0).name(), GetParam().reader.name == "Add" ? "a/conv_quant" : "a/act_quant");
    EXPECT_EQ(std::ranges::count(report.inserted, "a/act/activation_" + std::string(activation.type()) + "_quant"), 1)
        << report.text();
    EXPECT_TRUE(create_training_graph(training, options).inserted.empty());
    create_eval_graph(evaluation, options);
    turn_to_evaluation(training);
    EXPECT_EQ(graph_to_json(training), graph_to_json(evaluation));
  }
}

TEST_P(ReadBeforeActivation, IntegersAreThoseOfTheSimulation) {
  for (const FoldingWay& way :
       GetParam().normalised ? testing::two_folding_ways(GetParam().name()) : std::vector<FoldingWay>{{}}) {
    SCOPED_TRACE(way.name());
    const testing::TrainedNet net =
        testing::train_briefly(GetParam().graph(), {.per_channel = way.per_channel, .bn_fold = way.fold});
    const integer::Model model = convert(net.evaluation, net.variables, {.input = testing::kPictures});
    testing::expect_faithful(net.evaluation, net.variables, model, testing::images_for(net.evaluation, model, 1));
  }
}

/// The engine and C, too.
TEST(ReadBeforeActivation, TrainedIntegers) {
  testing::expect_trained_integers(Case{activations()[0], readers()[0], false}.graph());
  testing::expect_trained_integers(Case{activations()[1], readers()[2], true}.graph());
}

/// Of a residual sum, and of a layer before its bias.
TEST(ReadBeforeActivation, EveryPartOfALayerMayBeRead) {
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {4, 8, 8, 3});
  const Output first = layers::conv2d(graph, "a/Conv2D", images, layers::variable(graph, "a/weights", {3, 3, 3, 6}));
  const Output before = layers::bias_add(graph, "a/BiasAdd", first, vector(graph, "a/biases", 6, 0.2));
  const Output a = layers::relu(graph, "a/Relu", before);
  const Output sum = layers::add(graph, "Add", linear(graph, "b", a, false), first);
  const Output b = layers::relu(graph, "b/Relu", sum);
  graph.set_outputs({layers::add(graph, "last", linear(graph, "c", b, false), sum)});
  Graph training = graph.clone();
  const RewriteReport report = create_training_graph(training, {.strict = true});
  EXPECT_EQ(report.inserted,
            (Texts{"a/weights_quant", "a/conv_quant", "add_quant", "b/weights_quant", "b/conv_quant", "c/weights_quant",
                   "c/conv_quant", "add_quant_1", "a/Relu/activation_Relu_quant", "b/Relu/activation_Relu_quant"}));
  testing::expect_trained_integers(graph);
}

/// The first output, which is converted, counts as a reader, further ones do not, nor do the loss and what no output
/// needs.
TEST(ReadBeforeActivation, ReadersThatNeedNoIntegersChangeNothing) {
  const auto inserted = [](const std::function<void(Graph&, Output, Output)>& finish) {
    Graph graph;
    const Output before = linear(graph, "a", layers::placeholder(graph, "images", {4, 8, 8, 3}), false);
    finish(graph, before, layers::relu(graph, "a/Relu", before));
    return create_training_graph(graph).inserted;
  };
  const Texts fused = {"a/weights_quant", "a/act_quant"};
  const Texts apart = {"a/weights_quant", "a/act_quant", "a/Relu/activation_Relu_quant"};
  EXPECT_EQ(inserted([](Graph& graph, Output before, Output behind) { graph.set_outputs({behind, before}); }), fused);
  EXPECT_EQ(inserted([](Graph& graph, Output before, Output behind) { graph.set_outputs({before, behind}); }), apart);
  EXPECT_EQ(inserted([](Graph& graph, Output before, Output behind) {
              layers::square(graph, "penalty", before);
              graph.set_outputs({behind});
            }),
            fused);
  EXPECT_EQ(inserted([](Graph& graph, Output before, Output behind) {
              layers::add(graph, "unread", before, before);
              graph.set_outputs({behind});
            }),
            fused);
}

/// It has its integers already.
TEST(ReadBeforeActivation, AReaderBehindAQuantizerOfItsOwnChangesNothing) {
  Graph graph;
  const Output before = linear(graph, "a", layers::placeholder(graph, "images", {4, 8, 8, 3}), false);
  const Output behind = layers::relu(graph, "a/Relu", before);
  graph.set_outputs({layers::concat(graph, "both", {behind, fake_quant(graph, "mine", before, {})})});
  EXPECT_EQ(create_training_graph(graph, {.strict = true}).inserted,
            (Texts{"a/weights_quant", "a/act_quant", "both/activation_Concat_quant"}));
  EXPECT_EQ(graph.at("a/Relu").input(0).name(), "a/BiasAdd");
}

/// Outside the scope nothing becomes integers.
TEST(ReadBeforeActivation, AReaderOutsideTheScopeChangesNothing) {
  Graph graph;
  const Output before = linear(graph, "a", layers::placeholder(graph, "images", {4, 8, 8, 3}), false);
  const Output behind = layers::relu(graph, "a/Relu", before);
  graph.set_outputs({layers::concat(graph, "both", {behind, before})});
  EXPECT_EQ(create_training_graph(graph, {.scope = "a"}).inserted, (Texts{"a/weights_quant", "a/act_quant"}));
}

}  // namespace
}  // namespace miniqat::quantize::read_before_activation_test
