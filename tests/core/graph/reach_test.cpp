#include "core/graph/reach.h"

#include <gtest/gtest.h>

#include <set>

#include "core/graph/graph.h"
#include "core/tensors/random.h"
#include "layers/layers.h"
#include "tests/errors.h"

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

bool reaches(const Node* from, const Node* to) {
  std::set<const Node*> seen = {from};
  std::vector<const Node*> pending = {from};
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (node == to) return true;
    for (const Use& use : node->uses())
      if (seen.insert(use.node).second) pending.push_back(use.node);
  }
  return false;
}

/// Sums of any two tensors there are, and rerouted edges, whichever way they point.
TEST(NodeOrder, RefusesJustTheEdgesThatCloseACycle) {
  int refused = 0, backwards = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Graph graph;
    const auto any = [&] { return graph.nodes()[random.below(graph.size())]; };
    layers::placeholder(graph, "x", {2});
    for (int i = 0; i < 120; ++i) {
      const std::uint64_t what = random.below(10);
      if (what < 4) {
        layers::add(graph, concat("n", i), any()->output(), any()->output());
      } else if (what < 5) {
        layers::placeholder(graph, concat("x", i), {2});
      } else if (what < 6) {
        if (Node* node = any(); node->uses().empty() && graph.size() > 1) graph.erase(*node);
      } else {
        Node* from = any();
        Node* to = any();
        if (from->uses().empty()) continue;
        const Use use = from->uses()[random.below(from->uses().size())];
        const bool cycle = reaches(use.node, to);
        backwards += !cycle && NodeOrder::is_before(*use.node, *to) ? 1 : 0;
        const std::string error =
            testing::error_of([&] { graph.reroute(from->output(), to->output(), std::span(&use, 1)); });
        ASSERT_EQ(!error.empty(), cycle) << error;
        refused += cycle ? 1 : 0;
      }
      ASSERT_NO_THROW(graph.verify());
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(backwards, 50);
}

/// Each insertion right behind the first node, where no label is left after some dozen of them.
TEST(NodeOrder, FindsRoomInOnePlaceAgainAndAgain) {
  Graph graph;
  const Output x = layers::placeholder(graph, "x", {1});
  Output last = layers::relu(graph, "end", x);
  for (int i = 0; i < 3000; ++i) {
    const Output y = layers::relu(graph, concat("n", i), x);
    ASSERT_TRUE(NodeOrder::is_before(*x.node, *y.node));
    ASSERT_TRUE(NodeOrder::is_before(*y.node, *last.node)) << i;
    last = y;
  }
  graph.verify();
}

TEST(GraphNames, NumbersThatAreFreeAgainAreTaken) {
  Graph graph;
  const auto add = [&] { return layers::placeholder(graph, graph.unique_name("x"), {1}).node; };
  std::vector<Node*> nodes;
  for (int i = 0; i < 6; ++i) nodes.push_back(add());
  EXPECT_EQ(nodes.back()->name(), "x_5");
  graph.erase(*nodes[2]);
  graph.erase(*nodes[4]);
  EXPECT_EQ(add()->name(), "x_2");
  EXPECT_EQ(add()->name(), "x_4");
  EXPECT_EQ(add()->name(), "x_6");
  graph.erase(*graph.find("x"));
  EXPECT_EQ(add()->name(), "x");
}

}  // namespace

}  // namespace miniqat::reach_test
