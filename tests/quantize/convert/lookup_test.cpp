// Elementwise functions among integers: their ranges, their tables, and trained nets with gates.

#include <gtest/gtest.h>

#include <cmath>

#include "core/engine/session.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/quantize.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"

namespace miniqat::quantize::lookup_test {
namespace {

using integer::Clamp;
using integer::Grid;
using integer::Lookup;
using integer::Model;
using testing::EvalNet;
using testing::operations_of;
using testing::Texts;

const Lookup& last_lookup(const Model& model) { return std::get<Lookup>(model.operations.back().action); }

TEST(ConvertLookup, ASigmoidIsATable) {
  for (const int bits : {8, 4, 2}) {
    EvalNet net;
    const Output x = net.quantizer("x", net.conv("a", net.images()), {-3, 5});
    const float last = 1 - std::ldexp(1.0f, -bits);
    FakeQuantAttributes attributes = EvalNet::evaluating();
    attributes.bits = bits;
    const Model model =
        net.faithful(net.quantizer("gate/q", layers::sigmoid(net.graph, "gate", x), {0, last}, attributes));
    EXPECT_EQ(operations_of(model), (Texts{"Conv2D a/Conv2D -> x", "Lookup gate -> gate/q"}));
    const Grid grid = {.scale = std::ldexp(1.0f, -bits), .zero_point = 0, .bits = bits};
    EXPECT_EQ(model.tensor(model.output).grid, grid);
    EXPECT_EQ(last_lookup(model).function, "Sigmoid");
    ASSERT_EQ(last_lookup(model).table.size(), 256u);
    const Grid& from = model.tensors[1].grid;
    for (int q = 0; q < 256; ++q) {
      const double real = 1 / (1 + std::exp(-double{from.scale} * (q - from.zero_point)));
      const double place = std::floor(real * (1 << bits) + 0.5);
      EXPECT_EQ(last_lookup(model).table[static_cast<std::size_t>(q)], std::min(place, (1 << bits) - 1.0)) << q;
    }
  }
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
  Graph graph;
  Output x = layers::placeholder(graph, "images", {4, 8, 8, 3});
  x = layers::relu(graph, "stem/Relu", testing::conv_bias(graph, "stem", x, 3, 8));
  const Output gate = layers::sigmoid(graph, "gate/Sigmoid", testing::conv_bias(graph, "gate", x, 1, 8));
  x = layers::mul(graph, "gated", x, gate);
  x = layers::reshape(graph, "flat", x, {.shape = {4, -1}});
  x = layers::matmul(graph, "dense/MatMul", x, layers::variable(graph, "dense/weights", {512, 5}));
  graph.set_outputs({x});
  return graph;
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
