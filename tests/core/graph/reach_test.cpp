#include "core/graph/reach.h"

#include <gtest/gtest.h>

#include <set>

#include "layers/layers.h"

namespace miniqat::reach_test {
namespace {

/// x -> Relu "used" (the output); x -> MatMul "dead", -> Relu "dead/Relu"; x -> Square -> Mean "loss", a scalar.
struct Branches {
  Graph graph;
  Output x = placeholder(graph, "x", {2, 3});
  Output used = layers::relu(graph, "used", x);
  Output dead = layers::matmul(graph, "dead", used, variable(graph, "dead/weights", {3, 4}));
  Output end = layers::relu(graph, "dead/Relu", dead);
  Output square = layers::square(graph, "square", x);
  Output loss = layers::mean(graph, "loss", square, {.axes = {0, 1}});
};

std::set<std::string> names(const std::unordered_set<const Node*>& nodes) {
  std::set<std::string> list;
  for (const Node* node : nodes) list.insert(node->name());
  return list;
}

TEST(Reach, NodesBehindTensors) {
  Branches net;
  const auto behind = nodes_behind(std::vector{net.end});
  EXPECT_EQ(behind.size(), 5u);
  EXPECT_TRUE(behind.contains(net.x.node));
  EXPECT_TRUE(behind.contains(net.graph.find("dead/weights")));
  EXPECT_FALSE(behind.contains(net.square.node));
}

TEST(Reach, LayersThatReachNoOutputAreUnusedAndWhatHangsOnThem) {
  Branches net;
  EXPECT_TRUE(unused_nodes(net.graph).empty()) << "a graph without outputs is all there is";
  net.graph.set_outputs({net.used});
  EXPECT_EQ(names(unused_nodes(net.graph)), (std::set<std::string>{"dead", "dead/weights", "dead/Relu"}));
  net.graph.set_outputs({net.used, net.end});
  EXPECT_TRUE(unused_nodes(net.graph).empty());
}

TEST(Reach, ALossIsAnOutput) {
  Branches net;
  net.graph.set_outputs({net.used});
  const Output hidden = layers::matmul(net.graph, "hidden", net.used, variable(net.graph, "w", {3, 2}));
  EXPECT_TRUE(names(unused_nodes(net.graph)).contains("hidden"));
  layers::mean(net.graph, "other_loss", hidden, {.axes = {0, 1}});
  EXPECT_FALSE(names(unused_nodes(net.graph)).contains("hidden"));
}

/// What feeds a dead layer alone is dead as well; an op without a layer is none of our business.
TEST(Reach, WhatOnlyUnusedLayersReadIsUnused) {
  Branches net;
  net.graph.set_outputs({net.used});
  const Output before = layers::relu(net.graph, "before", net.x);
  layers::matmul(net.graph, "dead2", before, variable(net.graph, "dead2/weights", {3, 4}));
  layers::relu(net.graph, "alone", net.used);
  const std::set<std::string> unused = names(unused_nodes(net.graph));
  EXPECT_TRUE(unused.contains("before"));
  EXPECT_FALSE(unused.contains("alone"));
  EXPECT_FALSE(unused.contains("x"));
}

TEST(Reach, TheNoteNamesTheFirstLayer) {
  Branches net;
  EXPECT_EQ(note_on_unused_layers(net.graph), "");
  net.graph.set_outputs({net.used});
  EXPECT_EQ(note_on_unused_layers(net.graph),
            "[MatMul \"dead\"] reaches no output: left out of training, quantization, counts and exports");
  layers::matmul(net.graph, "more", net.end, variable(net.graph, "more/weights", {4, 4}));
  EXPECT_EQ(note_on_unused_layers(net.graph),
            "[MatMul \"dead\"] and 1 other layer reach no output: left out of training, quantization, counts and "
            "exports");
}

}  // namespace
}  // namespace miniqat::reach_test
