// A batch norm over one number a channel, whatever way it is folded.

#include <gtest/gtest.h>

#include "core/engine/session.h"
#include "layers/layers.h"
#include "quantize/quantize.h"
#include "tests/errors.h"

namespace miniqat::quantize::one_number_test {
namespace {

Graph dense_with_batch_norm(std::int64_t batch) {
  Graph graph;
  const Output x = layers::placeholder(graph, "x", {batch, 6});
  const Output y = layers::matmul(graph, "fc/MatMul", x, layers::variable(graph, "fc/weights", {6, 4}));
  const auto vector = [&](const std::string& name, double value, bool trainable) {
    return layers::variable(graph, "fc/" + name, {4}, Initializer::constant(value), trainable);
  };
  graph.set_outputs({layers::batch_norm(graph, "fc/BatchNorm", y, vector("gamma", 1, true), vector("beta", 0, true),
                                        vector("mean", 0, false), vector("variance", 1, false))});
  return graph;
}

std::string refusal_of_a_step(Graph& graph) {
  Session session(graph);
  const Output x = graph.output_at("x");
  Tensor batch(x.shape());
  Initializer::truncated_normal(1).fill(batch, 1);
  return testing::error_of([&] { session.run({.fetches = graph.outputs(), .training = true}, {{x, batch}}); });
}

TEST(OneNumber, EveryFoldingRefusesToTrainOnIt) {
  for (const BnFold fold : {BnFold::kTf, BnFold::kSingle, BnFold::kLate})
    for (const std::int64_t delay : {0, 5}) {
      SCOPED_TRACE(concat("folding ", static_cast<int>(fold), ", delay ", delay));
      const RewriteOptions options{.per_channel = true, .quant_delay = delay, .bn_fold = fold};
      Graph one = dense_with_batch_norm(1), two = dense_with_batch_norm(2), still = dense_with_batch_norm(1);
      create_training_graph(one, options);
      create_training_graph(two, options);
      create_eval_graph(still, {.per_channel = true, .bn_fold = fold});
      EXPECT_TRUE(testing::mentions(refusal_of_a_step(one), {"[BatchNorm \"fc/", "one number a channel", "[1,4]"}));
      EXPECT_EQ(refusal_of_a_step(two), "");
      EXPECT_EQ(refusal_of_a_step(still), "");
    }
}

TEST(OneNumber, FrozenStatisticsDoNotMindIt) {
  Graph graph = dense_with_batch_norm(1);
  create_training_graph(graph, {.freeze_bn_delay = 0});
  EXPECT_EQ(refusal_of_a_step(graph), "");
}

}  // namespace
}  // namespace miniqat::quantize::one_number_test
