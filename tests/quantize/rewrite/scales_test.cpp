// RewriteOptions::scales: powers of two in every quantizer and in graph JSON.

#include <gtest/gtest.h>

#include "core/graph/graph_json.h"
#include "quantize/quantizers.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::scales_test {
namespace {

using testing::ToyGraph;

const RewriteOptions kPowers = {.scales = ScaleChoice::kPowerOfTwo};

ToyGraph net() {
  ToyGraph toy;
  layers::register_ops();
  register_ops();
  const Output x = toy.conv_relu("conv1", toy.images());
  toy.graph.set_outputs({toy.conv_relu("conv2", x)});
  return toy;
}

std::size_t count(const Graph& graph, bool power_of_two) {
  std::size_t found = 0;
  for (const Node* node : graph.nodes())
    if (const auto* quantizer = node->as<FakeQuant>(); quantizer != nullptr)
      found += quantizer->power_of_two == power_of_two ? 1 : 0;
  return found;
}

TEST(Scales, AllQuantizersHaveThemOrNone) {
  ToyGraph any = net(), powers = net();
  create_training_graph(any.graph, {});
  create_training_graph(powers.graph, kPowers);
  EXPECT_EQ(count(any.graph, true), 0u);
  EXPECT_EQ(count(powers.graph, false), 0u);
  EXPECT_EQ(count(powers.graph, true), count(any.graph, false));
  EXPECT_EQ(quantization_of(powers.graph).label(), "W8A8 power-of-two");
}

TEST(Scales, GraphJsonNamesThemOnlyWhereTheyAre) {
  ToyGraph any = net(), powers = net();
  create_training_graph(any.graph, {});
  create_training_graph(powers.graph, kPowers);
  EXPECT_EQ(graph_to_json(any.graph).find("power_of_two"), std::string::npos);
  EXPECT_NE(graph_to_json(any.graph).find("\"narrow_range\": false"), std::string::npos) << "which others write always";
  const Graph read = graph_from_json(graph_to_json(powers.graph), "powers");
  EXPECT_EQ(count(read, true), count(powers.graph, true));
}

TEST(Scales, ASecondRewriteWithOthersIsAConflict) {
  ToyGraph toy = net();
  create_training_graph(toy.graph, kPowers);
  create_training_graph(toy.graph, kPowers);
  const std::vector<SettingConflict> conflicts = create_training_graph(toy.graph, {}).conflicts;
  EXPECT_EQ(conflicts.size(), count(toy.graph, true));
  for (const SettingConflict& conflict : conflicts) EXPECT_EQ(conflict.setting, "scales");
}

}  // namespace
}  // namespace miniqat::quantize::scales_test
