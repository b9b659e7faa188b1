// Layers that reach no output.

#include <gtest/gtest.h>

#include "core/engine/session.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::unused_layers_test {
namespace {

using testing::Names;
using testing::ToyGraph;

/// Two layers; a third, and a sum behind it, that nothing reads.
ToyGraph with_dead_layer(bool names_output = true) {
  ToyGraph toy;
  const Output a = toy.conv_relu("a", toy.images());
  const Output b = toy.conv_relu("b", a);
  layers::add(toy.graph, "dead/Add", toy.conv_relu("dead", a), b);
  if (names_output) toy.graph.set_outputs({b});
  return toy;
}

const Names kUsed = {"a/weights_quant", "a/act_quant", "b/weights_quant", "b/act_quant"};

TEST(UnusedLayers, GetNoQuantizer) {
  for (const bool training : {true, false}) {
    ToyGraph toy = with_dead_layer();
    const RewriteReport report = training ? create_training_graph(toy.graph) : create_eval_graph(toy.graph);
    EXPECT_EQ(report.inserted, kUsed);
    ASSERT_EQ(report.remarks.size(), 1u) << report.notes();
    EXPECT_EQ(report.remarks[0].substr(0, 43), "[Conv2D \"dead/Conv2D\"] reaches no output: l");
    EXPECT_NE(report.text().find("skipped  reaches no output"), std::string::npos) << report.text();
  }
}

/// Nobody can say that what a graph without outputs does is of no use.
TEST(UnusedLayers, AreUsedInAGraphWithoutOutputs) {
  ToyGraph toy = with_dead_layer(false);
  const RewriteReport report = create_training_graph(toy.graph);
  EXPECT_GT(report.inserted.size(), kUsed.size());
  EXPECT_TRUE(report.remarks.empty()) << report.notes();
}

TEST(UnusedLayers, AreNoFloatEdgesToStrict) {
  ToyGraph toy = with_dead_layer();
  EXPECT_NO_THROW(create_training_graph(toy.graph, {.strict = true}));
}

TEST(UnusedLayers, ALossUsesWhatItReads) {
  ToyGraph toy;
  const Output a = toy.conv_relu("a", toy.images());
  const Output b = toy.conv_relu("auxiliary", a);
  layers::mean(toy.graph, "loss", layers::square(toy.graph, "square", b), {.axes = {0, 1, 2, 3}});
  toy.graph.set_outputs({a});
  const RewriteReport report = create_training_graph(toy.graph);
  EXPECT_EQ(report.inserted.size(), 4u);
  EXPECT_TRUE(report.remarks.empty()) << report.notes();
}

TEST(UnusedLayers, RewritingTwiceIsRewritingOnce) {
  ToyGraph toy = with_dead_layer();
  create_training_graph(toy.graph);
  EXPECT_TRUE(create_training_graph(toy.graph).inserted.empty());
}

}  // namespace
}  // namespace miniqat::quantize::unused_layers_test
