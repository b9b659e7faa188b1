#include "quantize/graph_matcher.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::graph_matcher_test {
namespace {

using testing::Names;
using testing::ToyGraph;

Names names_of(const std::vector<Match>& matches, const PatternRef& pattern) {
  Names names;
  for (const Match& match : matches) names.push_back(match.node(pattern) ? match.node(pattern)->name() : "-");
  return names;
}

TEST(GraphMatcher, FindsTypesInTopologicalOrder) {
  ToyGraph toy;
  toy.conv_relu("b", toy.conv_relu("a", toy.images()));
  const PatternRef relu = op({"Relu", "Relu6"});
  EXPECT_EQ(names_of(GraphMatcher(toy.graph).find(relu), relu), (Names{"a/Relu", "b/Relu"}));
}

TEST(GraphMatcher, BindsEveryPartOfAMatch) {
  ToyGraph toy;
  toy.conv_relu("a", toy.images());
  const PatternRef weights = op({"Variable"});
  const PatternRef conv = op({"Conv2D"}, {anything(), weights});
  const PatternRef bias = op({"BiasAdd"}, {conv, anything()});
  const PatternRef absent = op({"Relu6"});
  const std::vector<Match> matches = GraphMatcher(toy.graph).find(op({"Relu"}, {bias}));
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0].node(conv), &toy.graph.at("a/Conv2D"));
  EXPECT_EQ(matches[0].tensor(weights), toy.graph.output_at("a/weights"));
  EXPECT_EQ(matches[0].node(absent), nullptr);
}

TEST(GraphMatcher, OrderedInputsKeepTheirPlaces) {
  ToyGraph toy;
  const Output x = toy.images();
  layers::add(toy.graph, "sum", layers::relu(toy.graph, "relu", x), x);
  const PatternRef relu = op({"Relu"});
  const PatternRef placeholder = op({"Placeholder"});
  EXPECT_EQ(GraphMatcher(toy.graph).find(op({"Add"}, {relu, placeholder})).size(), 1u);
  EXPECT_EQ(GraphMatcher(toy.graph).find(op({"Add"}, {placeholder, relu})).size(), 0u);
  EXPECT_EQ(GraphMatcher(toy.graph).find(op_unordered({"Add"}, {placeholder, relu})).size(), 1u);
}

TEST(GraphMatcher, UnorderedInputsGiveEveryWay) {
  ToyGraph toy;
  const Output x = toy.images();
  layers::add(toy.graph, "sum", toy.conv("a", x), toy.conv("b", x));
  const PatternRef conv = op({"Conv2D"});
  EXPECT_EQ(names_of(GraphMatcher(toy.graph).find(op_unordered({"Add"}, {conv, anything()})), conv),
            (Names{"a/Conv2D", "b/Conv2D"}));
}

TEST(GraphMatcher, AlternativesComeInTheirOrder) {
  ToyGraph toy;
  toy.conv_bias("a", toy.images());
  const PatternRef wide = op({"BiasAdd"});
  const PatternRef narrow = op({"BiasAdd"}, {op({"Conv2D"}), anything()});
  const PatternRef either = one_of({narrow, wide});
  const std::vector<Match> matches = GraphMatcher(toy.graph).find(either);
  EXPECT_EQ(names_of(matches, narrow), (Names{"a/BiasAdd", "-"}));
  EXPECT_EQ(names_of(matches, wide), (Names{"-", "a/BiasAdd"}));
  EXPECT_EQ(names_of(matches, either), (Names{"a/BiasAdd", "a/BiasAdd"}));
}

TEST(GraphMatcher, NumberOfInputsMustFit) {
  ToyGraph toy;
  toy.conv("a", toy.images());
  EXPECT_TRUE(GraphMatcher(toy.graph).find(op({"Conv2D"}, {anything()})).empty());
  EXPECT_TRUE(GraphMatcher(toy.graph).find(op_unordered({"Conv2D"}, {anything(), anything(), anything()})).empty());
  EXPECT_EQ(GraphMatcher(toy.graph).find(op({"Conv2D"})).size(), 1u);
}

TEST(GraphMatcher, AllInputsMustFitWhereAllAreAsked) {
  ToyGraph toy;
  const Output a = toy.filter("a"), b = toy.filter("b"), c = toy.filter("c");
  layers::concat(toy.graph, "three", {a, b, c});
  layers::concat(toy.graph, "mixed", {a, layers::relu(toy.graph, "relu", b)});
  const PatternRef concat = op_over_all({"Concat"}, op({"Variable"}));
  EXPECT_EQ(names_of(GraphMatcher(toy.graph).find(concat), concat), (Names{"three"}));
}

TEST(GraphMatcher, RankIsALimit) {
  ToyGraph toy;
  toy.filter("filter");
  toy.vector("vector");
  const PatternRef vector = rank_up_to(1, op({"Variable"}));
  EXPECT_EQ(names_of(GraphMatcher(toy.graph).find(vector), vector), (Names{"vector"}));
}

TEST(GraphMatcher, LooksThroughTransparentNodes) {
  ToyGraph toy;
  const Output conv = toy.conv("a", toy.images());
  const Output twice = fake_quant(toy.graph, "q2", fake_quant(toy.graph, "q1", conv, {}), {});
  layers::relu(toy.graph, "relu", twice);
  const PatternRef conv_pattern = op({"Conv2D"});
  const PatternRef relu = op({"Relu"}, {conv_pattern});
  EXPECT_TRUE(GraphMatcher(toy.graph).find(relu).empty());
  const GraphMatcher through(toy.graph, {"FakeQuant"});
  ASSERT_EQ(through.find(relu).size(), 1u);
  EXPECT_EQ(through.find(relu)[0].tensor(conv_pattern), conv);
  EXPECT_EQ(through.find(anything()).size(), toy.graph.size() - 2) << "transparent nodes are no roots";
}

TEST(GraphMatcher, SourceAndUsesThroughNodes) {
  ToyGraph toy;
  const Output x = toy.images();
  const Output copy = layers::identity(toy.graph, "copy", x);
  const Output again = layers::identity(toy.graph, "again", copy);
  layers::relu(toy.graph, "relu", again);
  layers::relu6(toy.graph, "relu6", x);
  constexpr std::array<std::string_view, 1> kIdentity = {"Identity"};
  EXPECT_EQ(source_through(again, kIdentity), x);
  EXPECT_EQ(source_through(x, kIdentity), x);
  Names users;
  for (const Use& use : uses_through(x, kIdentity)) users.push_back(use.node->name());
  EXPECT_EQ(users, (Names{"copy", "relu6", "again", "relu"}));
}

TEST(GraphMatcher, UsesThroughFollowOnlyTheFirstInput) {
  ToyGraph toy;
  const Output x = toy.images();
  const Output range = layers::variable(toy.graph, "range", {});
  Node& quantizer =
      toy.graph.add("q", FakeQuant::make(FakeQuantAttributes{.range = RangeKind::kFixed}), {x, range, range});
  layers::relu(toy.graph, "relu", quantizer.output());
  constexpr std::array<std::string_view, 1> kQuantizer = {"FakeQuant"};
  EXPECT_EQ(uses_through(range, kQuantizer).size(), 2u) << "min and max are no data";
  EXPECT_EQ(uses_through(x, kQuantizer).size(), 2u);
}

}  // namespace
}  // namespace miniqat::quantize::graph_matcher_test
