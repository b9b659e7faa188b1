// A layer whose result is read both before and behind its activation: the integers before it have a quantizer of their
// own, and the activation is an operation by itself.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/graph_json.h"
#include "quantize/convert/convert.h"
#include "quantize/quantize.h"
#include "tests/quantize/convert/integer_check.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"
#include "tests/quantize/fold/folding_ways.h"
#include "tests/quantize/toy_graph.h"
#include "tests/quantize/trained_net.h"

namespace miniqat::quantize::read_before_activation_test {
namespace {

using testing::FoldingWay;
using testing::Texts;

/// A net of 3x3 convolutions to six channels: these chains, and a dense layer behind the mean of their last tensor.
Graph net(const std::string& chains) {
  const testing::ToySizes sizes = {.images = {4, 8, 8, 3}, .filter = 3, .channels = 6, .trains = true};
  return std::move(testing::ToyGraph(chains + " | Mean Mean | dense fc 5 | output", sizes).graph);
}

const Texts kActivations = {"Relu", "Relu6", "Clip"};
/// What else reads the layer's result: a step to the tensor "reader", or a Concat or an Add of both.
const Texts kReaders = {"Concat both",      "Add both",         "Sigmoid reader", "Mul reader =[]factor",
                        "conv_bias reader", "MaxPool reader 1", "Clip reader",    "Relu reader"};

struct Case {
  std::string activation;
  std::string reader;
  bool normalised;

  std::string name() const {
    const std::string type = reader.substr(0, reader.find(' '));
    return (normalised ? "BatchNorm" : "Bias") + activation + (type == activation ? "Other" : "") +
           (type == "conv_bias" ? "Conv2D" : type);
  }

  Graph graph() const {
    const std::string before = normalised ? "a/BatchNorm" : "a/BiasAdd";
    const std::string layer =
        concat(normalised ? "images | conv a | batch_norm a" : "images | conv_bias a", " | ", activation, " a/act; ");
    if (reader == "Add both") return net(concat(layer, "a/act | MaxPool pool 1 | Add both ", before));
    if (reader == "Concat both") return net(concat(layer, before, " | Concat both a/act"));
    return net(concat(layer, before, " | ", reader, " | Concat both a/act"));
  }
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const bool normalised : {false, true})
    for (const std::string& activation : kActivations)
      for (const std::string& reader : kReaders) cases.push_back({activation, reader, normalised});
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
    EXPECT_EQ(activation.input(0).name(), GetParam().reader == "Add both" ? "a/conv_quant" : "a/act_quant");
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
  testing::expect_trained_integers(Case{"Relu", "Concat both", false}.graph());
  testing::expect_trained_integers(Case{"Relu6", "Sigmoid reader", true}.graph());
}

/// Of a residual sum, and of a layer before its bias.
TEST(ReadBeforeActivation, EveryPartOfALayerMayBeRead) {
  const Graph graph = net(
      "images | conv_bias a | Relu a/Relu | conv_bias b | Add Add a/Conv2D | Relu b/Relu | conv_bias c | Add last Add");
  Graph training = graph.clone();
  const RewriteReport report = create_training_graph(training, {.strict = true});
  EXPECT_EQ(Texts(report.inserted.begin(), report.inserted.begin() + 8),
            (Texts{"a/weights_quant", "a/conv_quant", "add_quant", "b/weights_quant", "b/conv_quant", "c/weights_quant",
                   "c/conv_quant", "add_quant_1"}));
  for (const char* relu : {"a/Relu/activation_Relu_quant", "b/Relu/activation_Relu_quant"})
    EXPECT_EQ(std::ranges::count(report.inserted, relu), 1) << relu;
  testing::expect_trained_integers(graph);
}

/// Readers that need no integers, and one behind a quantizer of its own, change nothing. The first output, which is
/// converted, counts as a reader, further ones do not, nor do the loss, what no output needs, and what is outside the
/// scope.
TEST(ReadBeforeActivation, SomeReadersChangeNothing) {
  struct Row {
    std::string chains;
    Texts inserted;
    std::string scope = "";
  };
  const std::string layer = "images | conv_bias a | Relu a/Relu; ";
  const Texts fused = {"a/weights_quant", "a/act_quant"};
  const std::vector<Row> rows = {
      {"a/Relu | output; a/BiasAdd | output", fused},
      {"a/BiasAdd | output; a/Relu | output", {"a/weights_quant", "a/act_quant", "a/Relu/activation_Relu_quant"}},
      {"a/BiasAdd | Square penalty; a/Relu | output", fused},
      {"a/BiasAdd | Add unread a/BiasAdd; a/Relu | output", fused},
      {"a/BiasAdd | FakeQuant mine 8; a/Relu | Concat both mine | output",
       {"a/weights_quant", "a/act_quant", "both/activation_Concat_quant"}},
      {"a/Relu | Concat both a/BiasAdd | output", fused, "a"}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.chains);
    testing::ToyGraph toy(layer + row.chains);
    EXPECT_EQ(create_training_graph(toy.graph, {.scope = row.scope}).inserted, row.inserted);
    EXPECT_EQ(toy.input("a/Relu"), row.inserted.back() == "a/Relu/activation_Relu_quant" ? "a/act_quant" : "a/BiasAdd");
  }
}

}  // namespace
}  // namespace miniqat::quantize::read_before_activation_test
