// Slice among integers.

#include <gtest/gtest.h>

#include "quantize/calibrate/channel_pairs.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"

namespace miniqat::quantize::slice_test {
namespace {

using testing::EvalNet;
using testing::mentions;

TEST(ConvertSlice, MovesIntegersOnTheGridOfItsInput) {
  EvalNet net;
  const Output x = net.quantizer("x", net.conv("a", net.images(), 6), {-4, 5});
  const Output y =
      layers::slice(net.graph, "y", x, {.axes = {2, -1}, .starts = {1, 4}, .ends = {6, 6}, .steps = {2, 1}});
  const integer::Model model = net.faithful(y);
  EXPECT_EQ(testing::operations_of(model).back(), "Slice y -> y");
  EXPECT_EQ(model.tensors.back().grid, model.tensors[1].grid);
  const auto& slice = std::get<integer::Slice>(model.operations.back().action);
  EXPECT_EQ(slice.starts, (std::vector<std::int64_t>{0, 1, 4}));
  EXPECT_EQ(slice.steps, (std::vector<std::int64_t>{1, 2, 1}));
}

TEST(ConvertSlice, TheBatchIsNotCut) {
  EvalNet net;
  const Output x = net.quantizer("x", net.conv("a", net.images()), {-4, 5});
  const Output y = layers::slice(net.graph, "y", x, {.axes = {0}, .starts = {0}, .ends = {1}});
  EXPECT_TRUE(mentions(net.refusal(y), {"[Slice \"y\"]", "cannot cut the batch"}));
}

/// Behind a Reshape the channels of a layer take turns; a part of them may begin with another one.
TEST(ChannelPairs, DoNotReachOverASliceOfTheLastAxis) {
  for (const bool of_columns : {false, true}) {
    Graph graph;
    Output x = layers::placeholder(graph, "images", {4, 4, 2, 3});
    x = layers::relu(graph, "first/Relu", testing::conv_bias(graph, "first", x, 3, 2));
    if (!of_columns) x = layers::slice(graph, "Slice", x, {.axes = {1}, .starts = {1}, .ends = {3}});
    x = layers::reshape(graph, "Reshape", x, {.shape = {4, -1}});
    if (of_columns) x = layers::slice(graph, "Slice", x, {.axes = {1}, .starts = {1}, .ends = {9}});
    x = layers::matmul(graph, "second/MatMul", x, layers::variable(graph, "second/weights", {8, 5}));
    graph.set_outputs({x});
    EXPECT_EQ(find_channel_pairs(graph).pairs.size(), of_columns ? 0U : 1U);
  }
}

}  // namespace
}  // namespace miniqat::quantize::slice_test
