#include "core/graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/op.h"
#include "layers/layers.h"
#include "tests/core/graph/graph_picture.h"
#include "tests/errors.h"

namespace miniqat::graph_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::picture;

std::vector<std::string> names(const std::vector<Node*>& nodes) {
  std::vector<std::string> result;
  for (const Node* node : nodes) result.push_back(node->name());
  return result;
}

/// x -> relu -> sum(relu, x) -> last, with `last` as the graph's output.
class GraphTest : public ::testing::Test {
 protected:
  Graph graph_;
  Output x_ = placeholder(graph_, "x", {2, 3});
  Output relu_ = layers::relu(graph_, "a/relu", x_);
  Output sum_ = layers::add(graph_, "a/sum", relu_, x_);
  Output last_ = layers::relu(graph_, "last", sum_);

  void SetUp() override { graph_.set_outputs({last_}); }

  /// The action throws an Error that mentions `parts`, and changes nothing.
  template <class Action>
  void expect_refused(const std::vector<std::string>& parts, const Action& action) {
    const std::string before = picture(graph_);
    const std::uint64_t revision = graph_.revision();
    EXPECT_TRUE(mentions(error_of(action), parts));
    EXPECT_EQ(picture(graph_), before);
    EXPECT_EQ(graph_.revision(), revision);
    graph_.verify();
  }
};

TEST_F(GraphTest, AddKnowsInputsAndConsumers) {
  EXPECT_EQ(picture(graph_),
            "[Placeholder \"x\"] 0>a/relu#0 0>a/sum#1;[Relu \"a/relu\"] <x 0>a/sum#0;"
            "[Add \"a/sum\"] <a/relu <x 0>last#0;[Relu \"last\"] <a/sum; out last");
  EXPECT_EQ(graph_.size(), 4u);
  EXPECT_EQ(scope_of("a/b/sum"), "a/b");
  EXPECT_EQ(scope_of("last"), "");
  graph_.verify();
}

TEST_F(GraphTest, AddListsATensorTakenTwiceTwice) {
  layers::mul(graph_, "square", last_, last_);
  EXPECT_EQ(last_.node->uses().size(), 2u);
  EXPECT_EQ(last_.node->uses()[1].input, 1);
  graph_.verify();
}

TEST_F(GraphTest, AddRefusesANameTwice) {
  expect_refused({"two nodes", "\"a/relu\""}, [&] { layers::relu(graph_, "a/relu", x_); });
}

TEST_F(GraphTest, AddRefusesMalformedNames) {
  for (const std::string name : {"", " ", "two words", "a:1", "quo\"te", "a,b", "/a", "a/", "/", "tab\t", "n\xc3\xa4h"})
    EXPECT_NE(error_of([&] { layers::relu(graph_, name, x_); }), "") << name;
  EXPECT_EQ(graph_.size(), 4u);
  layers::relu(graph_, "fine/Name_1.2-x", x_);
}

TEST_F(GraphTest, AddRefusesForeignEmptyAndMissingInputs) {
  Graph other;
  const Output foreign = placeholder(other, "x", {2, 3});
  expect_refused({"an input of \"new\"", "not of this graph"}, [&] { layers::relu(graph_, "new", foreign); });
  expect_refused({"an input of \"new\"", "empty"}, [&] { layers::relu(graph_, "new", Output{}); });
  expect_refused({"output 1", "[Placeholder \"x\"]"}, [&] { layers::relu(graph_, "new", Output{x_.node, 1}); });
  expect_refused({"output -1"}, [&] { layers::relu(graph_, "new", Output{x_.node, -1}); });
}

TEST_F(GraphTest, AddNamesTheNodeWhoseShapesDoNotFit) {
  const Output bias = variable(graph_, "bias", {4});
  expect_refused({"[BiasAdd \"layer/BiasAdd\"]", "[2,3]", "[4]"},
                 [&] { layers::bias_add(graph_, "layer/BiasAdd", x_, bias); });
}

TEST_F(GraphTest, RerouteMovesAllConsumersAndGraphOutputs) {
  const Output copy = layers::identity(graph_, "copy", last_);
  graph_.set_outputs({last_, x_, last_});
  EXPECT_EQ(graph_.reroute(last_, copy), 0);
  EXPECT_EQ(graph_.outputs(), (std::vector<Output>{copy, x_, copy}));

  const Output other = placeholder(graph_, "y", {2, 3});
  EXPECT_EQ(graph_.reroute(x_, other), 2);
  EXPECT_TRUE(x_.node->uses().empty());
  EXPECT_EQ(relu_.node->input(0), other);
  EXPECT_EQ(sum_.node->input(1), other);
  EXPECT_EQ(other.node->uses().size(), 2u);
  EXPECT_EQ(graph_.outputs()[1], other);
  graph_.verify();
}

// The usual rewrite: a new node takes a tensor and then stands between it and all its other consumers.
TEST_F(GraphTest, RerouteInsertsANodeBehindATensor) {
  const Output between = layers::identity(graph_, "between", x_);
  EXPECT_EQ(graph_.reroute(x_, between), 2);
  EXPECT_EQ(between.node->input(0), x_);
  EXPECT_EQ(relu_.node->input(0), between);
  EXPECT_EQ(sum_.node->input(1), between);
  EXPECT_EQ(x_.node->uses().size(), 1u);
  graph_.verify();
}

TEST_F(GraphTest, RerouteMovesOnlyTheChosenUses) {
  const Output between = layers::identity(graph_, "between", x_);
  graph_.set_outputs({x_});
  const std::vector<Use> chosen = {{sum_.node, 1}};
  EXPECT_EQ(graph_.reroute(x_, between, chosen), 1);
  EXPECT_EQ(sum_.node->input(1), between);
  EXPECT_EQ(relu_.node->input(0), x_);
  EXPECT_EQ(graph_.outputs().front(), x_);
  graph_.verify();
}

// The list of consumers shrinks while its members move.
TEST_F(GraphTest, RerouteTakesTheTensorsOwnListOfUses) {
  const Output other = placeholder(graph_, "y", {2, 3});
  layers::relu(graph_, "third", x_);
  layers::relu(graph_, "fourth", x_);
  EXPECT_EQ(graph_.reroute(x_, other, x_.node->uses()), 4);
  EXPECT_TRUE(x_.node->uses().empty());
  EXPECT_EQ(picture(graph_).find("<x"), std::string::npos);
  graph_.verify();
}

TEST_F(GraphTest, RerouteRefusesCycles) {
  expect_refused({"[Relu \"a/relu\"]", "last", "cycle"}, [&] { graph_.reroute(x_, last_); });
  const std::vector<Use> own = {{relu_.node, 0}};
  expect_refused({"[Relu \"a/relu\"]", "cycle"}, [&] { graph_.reroute(x_, relu_, own); });
  // One of two moves would be fine; neither must happen.
  const std::vector<Use> both = {{sum_.node, 1}, {relu_.node, 0}};
  expect_refused({"cycle"}, [&] { graph_.reroute(x_, relu_, both); });
}

TEST_F(GraphTest, RerouteRefusesAnotherShapeOrType) {
  const Output wide = placeholder(graph_, "wide", {2, 4});
  const Output labels = placeholder(graph_, "labels", {2, 3}, DType::kInt32);
  expect_refused({"x [2,3]", "wide [2,4]"}, [&] { graph_.reroute(x_, wide); });
  expect_refused({"x", "labels"}, [&] { graph_.reroute(x_, labels); });
}

TEST_F(GraphTest, RerouteRefusesUsesThatAreNone) {
  const Output other = placeholder(graph_, "y", {2, 3});
  Graph foreign;
  const Output stranger = layers::relu(foreign, "a/relu", placeholder(foreign, "x", {2, 3}));
  for (const Use use :
       {Use{last_.node, 0}, Use{relu_.node, 1}, Use{relu_.node, -1}, Use{nullptr, 0}, Use{stranger.node, 0}})
    expect_refused({"x"}, [&] { graph_.reroute(x_, other, std::vector<Use>{use}); });
  expect_refused({"not of this graph"}, [&] { graph_.reroute(stranger, x_); });
  expect_refused({"not of this graph"}, [&] { graph_.reroute(x_, stranger); });
}

TEST_F(GraphTest, ReplaceOpKeepsEdges) {
  graph_.replace_op(*relu_.node, layers::Relu6::make());
  EXPECT_EQ(relu_.node->type(), "Relu6");
  EXPECT_EQ(relu_.node->input(0), x_);
  EXPECT_EQ(relu_.node->uses().size(), 1u);
  graph_.verify();
}

TEST_F(GraphTest, ReplaceOpRefusesOtherShapesAndInputs) {
  expect_refused({"[Relu \"a/relu\"]", "Reshape", "[2,3]", "[3,2]"}, [&] {
    graph_.replace_op(*relu_.node, layers::Reshape::make(layers::ReshapeAttributes{.shape = {3, 2}}));
  });
  expect_refused({"\"a/relu\"", "2 inputs"}, [&] { graph_.replace_op(*relu_.node, layers::Add::make()); });
}

TEST_F(GraphTest, NoOpIsNoNode) {
  const std::string before = picture(graph_);
  const auto refused = [](const auto& action) { return error_of<std::invalid_argument>(action); };
  EXPECT_EQ(refused([&] { graph_.add("new", nullptr, {x_}); }), "the node \"new\" needs an op, got null");
  EXPECT_TRUE(mentions(refused([&] { graph_.replace_op(*relu_.node, nullptr); }), {"the node \"a/relu\" needs an op"}));
  EXPECT_EQ(picture(graph_), before);
}

TEST_F(GraphTest, EraseRefusesWhatIsStillNeeded) {
  expect_refused({"[Placeholder \"x\"]", "[Relu \"a/relu\"]"}, [&] { graph_.erase(*x_.node); });
  expect_refused({"[Relu \"last\"]", "output of the graph"}, [&] { graph_.erase(*last_.node); });
  Graph other;
  Node& stranger = *placeholder(other, "x", {2, 3}).node;
  expect_refused({"not of this graph"}, [&] { graph_.erase(stranger); });
}

TEST_F(GraphTest, EraseForgetsTheNodeAsConsumerAndByName) {
  graph_.set_outputs({relu_});
  graph_.erase(*last_.node);
  graph_.erase(*sum_.node);
  EXPECT_EQ(graph_.find("a/sum"), nullptr);
  EXPECT_EQ(x_.node->uses().size(), 1u);
  EXPECT_TRUE(relu_.node->uses().empty());
  graph_.verify();
  layers::relu(graph_, "a/sum", x_);
  graph_.verify();
}

TEST_F(GraphTest, NodesAreFoundByName) {
  EXPECT_EQ(&graph_.at("a/sum"), sum_.node);
  EXPECT_EQ(graph_.find("a/sun"), nullptr);
  EXPECT_TRUE(mentions(error_of([&] { graph_.at("a/sun"); }), {"\"a/sun\"", "did you mean \"a/sum\"?"}));
  EXPECT_EQ(error_of([&] { graph_.at("something else"); }).find("did you mean"), std::string::npos);
  EXPECT_EQ(graph_.output_at("a/sum:0"), sum_);
  for (const std::string name : {"a/sum:1", "a/sum:", "a/sum:-1", "a/sum:x", "a/sum:99999999999999999999", ":0"})
    EXPECT_NE(error_of([&] { graph_.output_at(name); }), "") << name;
  EXPECT_EQ(graph_.unique_name("new"), "new");
  layers::relu(graph_, "last_1", x_);
  EXPECT_EQ(graph_.unique_name("last"), "last_2");
}

TEST_F(GraphTest, OutputsOfANodeHaveNumbers) {
  Graph graph;
  const Output x = placeholder(graph, "x", {4, 3});
  const Output gamma = variable(graph, "gamma", {3});
  const Output y = layers::batch_norm(graph, "norm", x, gamma, variable(graph, "beta", {3}),
                                      variable(graph, "mean", {3}, {}, false), variable(graph, "var", {3}, {}, false));
  EXPECT_EQ(y.name(), "norm");
  EXPECT_EQ(y.node->output(2).name(), "norm:2");
  EXPECT_EQ(graph.output_at("norm:2"), y.node->output(2));
  const Output use = layers::relu(graph, "use", y.node->output(1));
  EXPECT_TRUE(y.node->uses(0).empty());
  EXPECT_EQ(y.node->uses(1).front(), (Use{use.node, 0}));
  EXPECT_EQ(graph.reroute(y.node->output(1), y.node->output(2)), 1);
  EXPECT_TRUE(y.node->uses(1).empty());
  graph.verify();
}

TEST_F(GraphTest, CloneIsEqualAndApart) {
  const Graph copy = graph_.clone();
  EXPECT_EQ(picture(copy), picture(graph_));
  copy.verify();
  EXPECT_NE(copy.find("x"), graph_.find("x"));
  layers::relu(graph_, "new", x_);
  EXPECT_EQ(copy.size(), 4u);
}

TEST_F(GraphTest, CloneKeepsAnOrderThatIsNotTopological) {
  graph_.reroute(x_, placeholder(graph_, "late", {2, 3}));
  EXPECT_EQ(names(graph_.clone().nodes()), names(graph_.nodes()));
}

TEST_F(GraphTest, NodeOrderIsThatOfAdditionAndTopologicalOrderRespectsEdges) {
  EXPECT_EQ(names(graph_.nodes()), (std::vector<std::string>{"x", "a/relu", "a/sum", "last"}));
  EXPECT_EQ(graph_.topological_order(), graph_.nodes());
  const Output late = placeholder(graph_, "late", {2, 3});
  graph_.reroute(x_, late, std::vector<Use>{{sum_.node, 1}});
  EXPECT_EQ(names(graph_.nodes()), (std::vector<std::string>{"x", "a/relu", "a/sum", "last", "late"}));
  EXPECT_EQ(names(graph_.topological_order()), (std::vector<std::string>{"x", "a/relu", "late", "a/sum", "last"}));
}

TEST_F(GraphTest, SetNodeOrderWantsAPermutation) {
  std::vector<Node*> order = graph_.nodes();
  std::ranges::reverse(order);
  graph_.set_node_order(order);
  EXPECT_EQ(graph_.nodes(), order);
  graph_.verify();
  EXPECT_EQ(names(graph_.topological_order()), (std::vector<std::string>{"x", "a/relu", "a/sum", "last"}));

  std::vector<Node*> twice = order;
  twice[0] = twice[1];
  expect_refused({"every node once"}, [&] { graph_.set_node_order(twice); });
  expect_refused({"every node once"}, [&] { graph_.set_node_order(std::span(order).first(2)); });
}

// A walk that recursed would overflow the stack here, one that searched lists would not come to an end.
TEST(GraphSizeTest, AChainOfAHundredThousandNodesIsHandled) {
  Graph graph;
  constexpr int kLength = 100000;
  const Output first = placeholder(graph, "x", {1});
  Output y = first;
  for (int i = 0; i < kLength; ++i) y = layers::relu(graph, concat("node", i), y);
  std::vector<Node*> order = graph.nodes();
  std::ranges::reverse(order);
  graph.set_node_order(order);
  const std::vector<Node*> sorted = graph.topological_order();
  ASSERT_EQ(sorted.size(), static_cast<std::size_t>(kLength + 1));
  EXPECT_EQ(sorted.front(), first.node);
  EXPECT_EQ(sorted.back(), y.node);
  EXPECT_NE(error_of([&] { graph.reroute(first, y); }), "");
  graph.verify();
  EXPECT_EQ(graph.clone().size(), graph.size());
}

/// An op whose shape can be changed behind the graph's back.
class Fickle final : public Op {
 public:
  explicit Fickle(const Shape* shape) : shape_(shape) {}
  std::string_view type() const override { return "Fickle"; }
  std::vector<TensorSpec> infer(std::span<const TensorSpec>) const override { return {{*shape_, DType::kFloat32}}; }
  void forward(const ForwardContext&) const override {}
  void reference_forward(const ForwardContext&) const override {}

 private:
  const Shape* shape_;
};

TEST(GraphVerifyTest, ReinfersEveryShape) {
  Graph graph;
  Shape shape{2};
  graph.add("fickle", std::make_unique<Fickle>(&shape), {});
  graph.verify();
  shape = Shape{3};
  EXPECT_TRUE(mentions(error_of([&] { graph.verify(); }), {"[Fickle \"fickle\"]", "[2]"}));
}

TEST_F(GraphTest, EveryMutationChangesTheRevision) {
  std::vector<std::uint64_t> seen = {graph_.revision()};
  const auto expect_new = [&] {
    EXPECT_EQ(std::ranges::find(seen, graph_.revision()), seen.end());
    seen.push_back(graph_.revision());
  };
  const Output copy = layers::identity(graph_, "copy", x_);
  expect_new();
  graph_.reroute(x_, copy);
  expect_new();
  graph_.reroute(copy, x_, std::vector<Use>{{sum_.node, 1}});
  expect_new();
  graph_.replace_op(*relu_.node, layers::Relu6::make());
  expect_new();
  graph_.set_outputs({sum_});
  expect_new();
  graph_.erase(*last_.node);
  expect_new();
  // A graph that takes another's place is another one, even after as many mutations.
  graph_ = graph_.clone();
  expect_new();
}

}  // namespace
}  // namespace miniqat::graph_test
