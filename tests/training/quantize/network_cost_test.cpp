#include "training/quantize/network_cost.h"

#include <gtest/gtest.h>

#include "core/graph/graph_json.h"
#include "layers/layers.h"
#include "quantize/quantize.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::training::network_cost_test {
namespace {

// The classifier of tests/cli/tiny_task.h: 36 weights and 4 channels over 8x8 pixels, then 64 x 10 weights.
constexpr std::int64_t kConvWork = 8 * 8 * 36, kDenseWork = 640;

Graph tiny(bool batch_norm = false) {
  layers::register_ops();
  quantize::register_ops();
  return graph_from_json(batch_norm ? testing::tiny_classifier_with_batch_norm() : testing::tiny_classifier());
}

NetworkCost quantized(const quantize::RewriteOptions& options, bool batch_norm = false) {
  Graph graph = tiny(batch_norm);
  quantize::create_eval_graph(graph, options);
  return cost_of(graph, 4);
}

TEST(NetworkCost, OfAFloatNetwork) {
  for (const bool batch_norm : {false, true}) {
    const NetworkCost cost = cost_of(tiny(batch_norm), 4);
    EXPECT_EQ(cost.parameter_bytes, 4 * (36 + 4 + 640 + 10));
    EXPECT_EQ(cost.bit_operations, (kConvWork + kDenseWork) * 32 * 32);
  }
}

TEST(NetworkCost, CountsTheBitsOfWeightsAndOfWhatTheyMeet) {
  for (const bool batch_norm : {false, true}) {
    const NetworkCost cost = quantized({.weight_bits = 3, .activation_bits = 5}, batch_norm);
    // 36 x 3 bits are 13.5 bytes.
    EXPECT_EQ(cost.parameter_bytes, 14 + 640 * 3 / 8 + 4 * (4 + 10));
    // The pictures are bytes; behind the pool and the reshaping there are 5 bits.
    EXPECT_EQ(cost.bit_operations, kConvWork * 3 * 8 + kDenseWork * 3 * 5);
  }
}

TEST(NetworkCost, CountsAQuantizedInputWithItsBits) {
  const NetworkCost cost = quantized({.weight_bits = 4, .activation_bits = 4, .quantize_input = true});
  EXPECT_EQ(cost.bit_operations, (kConvWork + kDenseWork) * 4 * 4);
}

/// A block whose two layers read 3 bits, whatever the sum keeps: the first one beside it, the last one behind.
TEST(NetworkCost, CountsWhatLayersReadOfAResidualSum) {
  Graph graph;
  Output x = layers::placeholder(graph, "images", {4, 8, 8, 2});
  const auto layer = [&](const std::string& name) {
    return layers::conv2d(graph, name, x, layers::variable(graph, name + "_weights", {1, 1, 2, 2}));
  };
  x = layer("in/a");
  x = layers::add(graph, "sum", layer("block/b"), x);
  x = layers::add(graph, "next", layer("block/c"), x);
  graph.set_outputs({layer("out/d")});
  for (const auto sums : {std::optional<std::int64_t>(), std::optional<std::int64_t>(8)}) {
    Graph rewritten = graph.clone();
    quantize::create_eval_graph(rewritten, {.weight_bits = 2, .activation_bits = 3, .sums_bits = sums});
    EXPECT_EQ(cost_of(rewritten, 4).bit_operations, 8 * 8 * 4 * 2 * (8 + 3 * 3));
  }
}

TEST(NetworkCost, CountsAFloatLayerWith32Bits) {
  const NetworkCost cost = quantized({.weight_bits = 4, .activation_bits = 4, .scope = "fc"});
  EXPECT_EQ(cost.parameter_bytes, 4 * 36 + 640 / 2 + 4 * (4 + 10));
  EXPECT_EQ(cost.bit_operations, kConvWork * 32 * 32 + kDenseWork * 4 * 32);
}

}  // namespace
}  // namespace miniqat::training::network_cost_test
