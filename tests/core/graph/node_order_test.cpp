// The order that tells whether an edge closes a cycle: compared with a walk through the whole graph.

#include <gtest/gtest.h>

#include <set>

#include "core/graph/graph.h"
#include "core/tensors/random.h"
#include "layers/layers.h"
#include "tests/errors.h"

namespace miniqat::node_order_test {
namespace {

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
}  // namespace miniqat::node_order_test
