#include <gtest/gtest.h>

#include <map>

#include "core/engine/session.h"
#include "core/graph/graph.h"
#include "core/tensors/random.h"
#include "layers/layers.h"
#include "tests/core/graph/graph_picture.h"
#include "tests/errors.h"

namespace miniqat::graph_rollback_test {
namespace {

using testing::picture;

/// Calls one mutator or another, many times, with whatever nodes there are. What they refuse is refused.
void disturb(Graph& graph, Random& random, int calls) {
  for (int i = 0; i < calls; ++i) {
    if (graph.size() < 2) placeholder(graph, graph.unique_name("fresh"), {2, 3});
    const std::vector<Node*> nodes = graph.nodes();
    const auto any = [&] { return nodes[random.below(nodes.size())]; };
    try {
      switch (random.below(7)) {
        case 0:
        case 1:
          layers::add(graph, graph.unique_name("more"), any()->output(), any()->output());
          break;
        case 2:
          graph.reroute(any()->output(), any()->output());
          break;
        case 3:
          graph.erase(*any());
          break;
        case 4:
          graph.replace_op(*any(), layers::relu(graph, graph.unique_name("op"), any()->output()).node->shared_op());
          break;
        case 5: {
          std::vector<Node*> backwards(nodes.rbegin(), nodes.rend());
          graph.set_node_order(backwards);
          break;
        }
        default:
          graph.set_outputs({any()->output(), any()->output()});
      }
    } catch (const Error&) {
    }
  }
}

Graph random_graph(Random& random) {
  Graph graph;
  for (const char* name : {"x", "y", "z"}) placeholder(graph, name, {2, 3});
  disturb(graph, random, 40);
  return graph;
}

/// Node by node: the graph's are at the same addresses, with the same ops at theirs.
std::map<const Node*, const Op*> addresses(const Graph& graph) {
  std::map<const Node*, const Op*> all;
  for (const Node* node : graph.nodes()) all.emplace(node, &node->op());
  return all;
}

TEST(GraphRollback, UndoesEveryMutator) {
  int erased = 0, replaced = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Graph graph = random_graph(random);
    const std::string before = picture(graph), name = graph.unique_name("more");
    const std::uint64_t revision = graph.revision();
    const auto nodes = addresses(graph);
    {
      GraphRollback rollback(graph);
      disturb(graph, random, 60);
      for (const auto& [node, op] : nodes) graph.owns(node) ? replaced += &node->op() != op : ++erased;
    }
    ASSERT_EQ(picture(graph), before) << seed;
    EXPECT_EQ(graph.revision(), revision);
    EXPECT_EQ(addresses(graph), nodes);
    EXPECT_EQ(graph.unique_name("more"), name);
    graph.verify();
    // It works on as if nothing had been.
    disturb(graph, random, 20);
    graph.verify();
  }
  EXPECT_GT(erased, 100);
  EXPECT_GT(replaced, 100);
}

TEST(GraphRollback, CommitKeepsWhatHappened) {
  Random random(5), same(5);
  Graph graph = random_graph(random), plain = random_graph(same);
  {
    GraphRollback rollback(graph);
    disturb(graph, random, 60);
    rollback.commit();
  }
  disturb(plain, same, 60);
  EXPECT_EQ(picture(graph), picture(plain));
  graph.verify();
  GraphRollback another(graph);
}

TEST(GraphRollback, OneAtATime) {
  Graph graph;
  placeholder(graph, "x", {1});
  GraphRollback first(graph);
  EXPECT_THROW(GraphRollback second(graph), Error);
  placeholder(graph, "y", {1});
}

TEST(GraphRollback, ASessionGoesOn) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2});
  const Output y = layers::relu(graph, "y", x);
  graph.set_outputs({y});
  Session session(graph);
  const Tensor feed = Tensor::from<float>({2}, {-1.0f, 2.0f});
  session.run({.fetches = {y}}, {{x, feed}});
  {
    GraphRollback rollback(graph);
    graph.reroute(y, layers::square(graph, "z", x));
    graph.erase(*y.node);
  }
  const RunResult result = session.run({.fetches = {y}}, {{x, feed}});
  EXPECT_EQ(result.fetched[0].values<float>()[0], 0);
  EXPECT_EQ(result.fetched[0].values<float>()[1], 2);
}

}  // namespace
}  // namespace miniqat::graph_rollback_test
