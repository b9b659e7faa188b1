// Elementwise functions among integers: their ranges, their tables, and trained nets with gates.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/engine/session.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/quantize.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::lookup_test {
namespace {

using integer::Grid;
using integer::Lookup;
using integer::Model;
using testing::EvalNet;
using testing::operations_of;
using testing::Texts;

const Lookup& last_lookup(const Model& model) { return std::get<Lookup>(model.operations.back().action); }

/// A function whose results have this range and so many bits.
struct Function {
  /// Of the function, also of its node; none for an op with a constant.
  std::string name;
  std::function<Output(Graph&, Output)> make;
  std::function<double(double)> value;
  Range<float> results;
  int bits = 8;
  /// Of the integers that it is a function of.
  Range<float> operands = {-4, 5};
};

std::vector<Function> functions() {
  std::vector<Function> all = {{"HardSwish",
                                [](Graph& graph, Output x) { return layers::hard_swish(graph, "HardSwish", x); },
                                [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; },
                                {-0.4f, 5}}};
  for (const int bits : {8, 4, 2})
    all.push_back({"Sigmoid",
                   [](Graph& graph, Output x) { return layers::sigmoid(graph, "Sigmoid", x); },
                   [](double x) { return 1 / (1 + std::exp(-x)); },
                   {0, 1 - std::ldexp(1.0f, -bits)},
                   bits});
  for (const double alpha : {0.1, 0.3})
    all.push_back(
        {"LeakyRelu",
         [alpha](Graph& graph, Output x) { return layers::leaky_relu(graph, "LeakyRelu", x, {.alpha = alpha}); },
         [alpha](double x) { return x < 0 ? alpha * x : x; },
         {-0.7f, 5}});
  for (const double alpha : {1.0 / 6, 0.3})
    all.push_back(
        {"HardSigmoid",
         [alpha](Graph& graph, Output x) {
           return layers::hard_sigmoid(graph, "HardSigmoid", x, {.alpha = alpha, .beta = 0.4});
         },
         [alpha](double x) { return std::clamp(double{static_cast<float>(alpha)} * x + double{0.4f}, 0.0, 1.0); },
         {0, 1},
         8,
         {-4.1f, 5.27f}});
  return all;
}

/// Ops of a tensor and the number 0.7, on either side.
std::vector<Function> ops_with_a_constant() {
  using Build = Output (*)(Graph&, const std::string&, Output, Output);
  std::vector<Function> all;
  const auto add = [&](const std::string& name, Build build, bool swaps, double (*value)(double)) {
    all.push_back({name,
                   [=](Graph& graph, Output x) {
                     const Output c = layers::constant(graph, "number", {}, {0.7});
                     return build(graph, name, swaps ? c : x, swaps ? x : c);
                   },
                   value,
                   {-6.13f, 7.33f}});
  };
  add("Mul", layers::mul, false, [](double x) { return 0.7f * x; });
  add("Mul", layers::mul, true, [](double x) { return 0.7f * x; });
  add("Add", layers::add, false, [](double x) { return x + 0.7f; });
  add("Sub", layers::sub, false, [](double x) { return x - 0.7f; });
  add("Sub", layers::sub, true, [](double x) { return 0.7f - x; });
  add("Div", layers::div, false, [](double x) { return x / 0.7f; });
  return all;
}

/// The conversion of a function, compared with its formula.
Model expect_table(const Function& function) {
  SCOPED_TRACE(concat(function.name, ", ", function.bits, " bits"));
  EvalNet net;
  const Output x = net.quantizer("x", net.conv("a", net.images()), function.operands);
  FakeQuantAttributes attributes = EvalNet::evaluating();
  attributes.bits = function.bits;
  const Model model = net.faithful(net.quantizer("y", function.make(net.graph, x), function.results, attributes));
  EXPECT_EQ(operations_of(model), (Texts{"Conv2D a/Conv2D -> x", concat("Lookup ", function.name, " -> y")}));
  const std::vector<std::uint8_t>& table = last_lookup(model).table;
  EXPECT_EQ(table.size(), 256u);
  const Grid &from = model.tensors[1].grid, &to = model.tensor(model.output).grid;
  for (std::size_t q = 0; q < table.size(); ++q) {
    const double real = double{from.scale} * (static_cast<int>(q) - from.zero_point);
    const double place = std::floor(function.value(real) / to.scale + to.zero_point + 0.5);
    EXPECT_EQ(table[q], std::clamp(place, 0.0, std::exp2(function.bits) - 1)) << q;
  }
  return model;
}

TEST(ConvertLookup, AFunctionIsATable) {
  for (const Function& function : functions()) {
    const Model model = expect_table(function);
    EXPECT_EQ(last_lookup(model).function, function.name);
    if (function.name != "Sigmoid") continue;
    const Grid grid = {.scale = std::ldexp(1.0f, -function.bits), .zero_point = 0, .bits = function.bits};
    EXPECT_EQ(model.tensor(model.output).grid, grid);
  }
}

TEST(ConvertLookup, AnOpWithAConstantIsATable) {
  for (const Function& function : ops_with_a_constant()) expect_table(function);
}

TEST(ConvertLookup, TablesOfFewerBitsAreShorter) {
  EvalNet net;
  FakeQuantAttributes attributes = EvalNet::evaluating();
  attributes.bits = 3;
  const Output x = net.quantizer("x", net.conv("a", net.images()), {-3, 5}, attributes);
  const Model model = net.faithful(net.quantizer("y", layers::sigmoid(net.graph, "gate", x), {0, 1}));
  EXPECT_EQ(last_lookup(model).table.size(), 8u);
}

/// Behind a dead Relu every picture gives one half.
TEST(ConvertLookup, OfNothingButZeroItMayBeMore) {
  EvalNet net;
  const Output dead = net.quantizer("dead", net.conv("a", net.images()), {0, 0});
  const Output half = net.quantizer("half", layers::sigmoid(net.graph, "gate", dead), {0, 255.0f / 256});
  const Model model = net.faithful(net.quantizer("y", net.conv("b", half), {-9, 9}));
  EXPECT_EQ(std::get<Lookup>(model.operations[1].action).table[0], 128);
}

TEST(ConvertLookup, AReluBehindItClampsTheTable) {
  EvalNet net;
  const Output x = net.quantizer("x", net.conv("a", net.images()), {-3, 5});
  const Output y = layers::relu6(net.graph, "Relu6", layers::sigmoid(net.graph, "gate", x));
  const Model model = net.faithful(net.quantizer("y", y, {-1, 1}));
  EXPECT_EQ(operations_of(model).back(), "Lookup gate -> y");
  EXPECT_EQ(model.operations.back().clamp.min, model.tensor(model.output).grid.zero_point);
}

TEST(ConvertLookup, NeedsARangeOnBothSides) {
  EvalNet net;
  const Output x = net.conv("a", net.images());
  EXPECT_TRUE(testing::mentions(net.refusal(net.quantizer("y", layers::sigmoid(net.graph, "gate", x), {0, 1})),
                                {"[Sigmoid \"gate\"]", "a/BiasAdd", "no range"}));
  EvalNet other;
  const Output quantized = other.quantizer("x", other.conv("a", other.images()), {-3, 5});
  EXPECT_TRUE(testing::mentions(other.refusal(layers::sigmoid(other.graph, "gate", quantized)), {"gate", "no range"}));
}

/// x * sigmoid(w * x), in front of a dense layer.
Graph gated_net() {
  const std::string chain =
      "images | conv_relu stem | conv_bias gate | Sigmoid gate/Sigmoid | Mul gated stem/Relu | Reshape flat 4 -1 | "
      "dense dense 5 | output";
  return std::move(
      testing::ToyGraph(chain, {.images = {4, 8, 8, 3}, .filter = 3, .channels = 8, .trains = true}).graph);
}

TEST(RewriteLookup, TheQuantizerOfASigmoidHasItsRange) {
  for (const int bits : {8, 4}) {
    Graph graph = gated_net();
    const RewriteReport report = create_training_graph(graph, {.activation_bits = bits, .strict = true});
    EXPECT_TRUE(std::ranges::count(report.inserted, "gate/Sigmoid/activation_Sigmoid_quant")) << report.text();
    EXPECT_TRUE(std::ranges::count(report.inserted, "gate/act_quant")) << "its input has a range, too";
    const Node& quantizer = graph.at("gate/Sigmoid/activation_Sigmoid_quant");
    EXPECT_EQ(quantizer.as<FakeQuant>()->range, RangeKind::kFixed);
    EXPECT_EQ(quantizer.as<FakeQuant>()->bits, bits);
    Session session(graph);
    const NamedTensors variables = session.variables();
    EXPECT_EQ(variables.at(quantizer.name() + "/min").data<float>()[0], 0);
    EXPECT_EQ(variables.at(quantizer.name() + "/max").data<float>()[0], 1 - std::ldexp(1.0f, -bits));
    EXPECT_TRUE(create_training_graph(graph, {.activation_bits = bits}).inserted.empty());
  }
}

TEST(RewriteLookup, OtherBitsThanItHasAreAConflict) {
  Graph graph = gated_net();
  create_training_graph(graph, {.activation_bits = 4});
  bool named = false;
  for (const SettingConflict& conflict : create_training_graph(graph, {.activation_bits = 8}).conflicts)
    named = named || conflict.text == "gate/Sigmoid/activation_Sigmoid_quant has 4 bits, not 8";
  EXPECT_TRUE(named);
  EXPECT_TRUE(create_training_graph(graph, {.activation_bits = 4, .ema_decay = 0.9}).conflicts.size() > 0);
}

TEST(CalibrateLookup, KnownRangesStay) {
  Graph graph = gated_net();
  create_eval_graph(graph, {});
  Session session(graph);
  Calibrator calibrator(session, {});
  Tensor images(Shape{4, 8, 8, 3});
  std::ranges::fill(images.values<float>(), 0.5f);
  calibrator.observe(Feeds{{graph.at("images").output(), images}});
  for (const CalibratedRange& range : calibrator.finish())
    EXPECT_NE(range.quantizer, "gate/Sigmoid/activation_Sigmoid_quant");
  EXPECT_EQ(session.variables().at("gate/Sigmoid/activation_Sigmoid_quant/max").data<float>()[0], 255.0f / 256);
}

TEST(TrainedLookup, IntegersOfAGate) { testing::expect_trained_integers(gated_net()); }

}  // namespace
}  // namespace miniqat::quantize::lookup_test
