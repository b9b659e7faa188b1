#include "layers/losses.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <optional>

#include "core/graph/losses.h"
#include "core/graph/registry.h"
#include "layers/layers.h"
#include "tests/errors.h"
#include "tests/layers/op_runner.h"
#include "tests/thread_counts.h"

namespace miniqat::layers::losses_test {
namespace {

using testing::error_of;
using testing::mentions;

std::vector<std::shared_ptr<Op>> float_losses() {
  return {MeanSquaredError::make(), Huber::make({.delta = 0.5}), SigmoidCrossEntropy::make()};
}

TEST(Losses, SayWhatTheyCompare) {
  register_ops();
  std::map<std::string, TargetValues> found;
  for (const std::string& type : registered_ops())
    if (const std::optional<LossInputs> loss = loss_inputs(*make_op(type))) {
      found[type] = loss->values;
      EXPECT_EQ(inputs_without_gradient(*make_op(type)), std::vector<int>{loss->target}) << type;
    }
  const std::map<std::string, TargetValues> expected = {{"SoftmaxCrossEntropy", TargetValues::kClasses},
                                                        {"SigmoidCrossEntropy", TargetValues::kProbabilities},
                                                        {"MeanSquaredError", TargetValues::kNumbers},
                                                        {"Huber", TargetValues::kNumbers}};
  EXPECT_EQ(found, expected);
}

TEST(Losses, AreFoundByTheirTargets) {
  Graph graph;
  const Output x = placeholder(graph, "x", {4, 3}), t = placeholder(graph, "t", {4, 3});
  const Output y = relu(graph, "y", x);
  const Output one = huber(graph, y, t, "one"), two = mean_squared_error(graph, t, t, "two"),
               three = sigmoid_cross_entropy(graph, t, x, "three");
  using Nodes = std::vector<const Node*>;
  EXPECT_EQ(losses_with_target(t, TargetValues::kNumbers), (Nodes{one.node, two.node}));
  EXPECT_EQ(losses_with_target(t, TargetValues::kProbabilities), Nodes{});
  EXPECT_EQ(losses_with_target(x, TargetValues::kProbabilities), Nodes{three.node});
  EXPECT_EQ(prediction_of(*one.node), y);
  EXPECT_EQ(target_of(*one.node), t);
  EXPECT_TRUE(is_loss(*one.node));
  EXPECT_FALSE(is_loss(*y.node));
  EXPECT_TRUE(is_target({one.node, 1}));
  EXPECT_FALSE(is_target({one.node, 0}));
  EXPECT_FALSE(is_target({y.node, 0}));
  EXPECT_TRUE(mentions(error_of([&] { prediction_of(*y.node); }), {"[Relu \"y\"]", "no loss"}));
  EXPECT_TRUE(mentions(error_of([&] { target_of(*y.node); }), {"[Relu \"y\"]", "no loss"}));
}

TEST(Losses, TargetsThatAreNoProbabilitiesAreErrorsThatNamePlaceAndValue) {
  const auto message = [](float target, Backend backend) {
    const Tensor logits = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
    const Tensor targets = Tensor::from<float>({2, 3}, {0, 1, 0.5F, 1, 0, target});
    return error_of([&] { testing::run_op(SigmoidCrossEntropy::make(), {logits, targets}, {}, backend); });
  };
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    EXPECT_TRUE(mentions(message(1.5F, backend), {"target 1.5 of row 1, column 2 is outside [0, 1]"}));
    EXPECT_TRUE(mentions(message(-0.25F, backend), {"target -0.25 of row 1, column 2 is outside [0, 1]"}));
    EXPECT_TRUE(mentions(message(std::numeric_limits<float>::quiet_NaN(), backend), {"target nan of row 1"}));
    EXPECT_EQ(message(1, backend), "");
    EXPECT_EQ(message(0, backend), "");
  }
}

/// A probability of 1 - 2e-9 is 1 in float32; its distance from a target of 1 is not 0.
TEST(Losses, ASureAnswerKeepsItsSmallGradient) {
  const Tensor logits = Tensor::from<float>({1, 2}, {20, -20}), targets = Tensor::from<float>({1, 2}, {1, 0});
  const Tensor arriving = Tensor::from<float>({}, {2});
  const Tensor d = testing::run_op(SigmoidCrossEntropy::make(), {logits, targets}, {arriving}).d_inputs[0];
  EXPECT_NEAR(d.data<float>()[0], -2.0611536e-9, 1e-15);
  EXPECT_NEAR(d.data<float>()[1], 2.0611536e-9, 1e-15);
}

/// Several blocks of the sum, over threads.
TEST(Losses, BitsDoNotDependOnThreads) {
  const Shape shape = {603, 67};
  const Tensor prediction = testing::random_tensor(shape, 1, -4, 4), target = testing::random_tensor(shape, 2, 0, 1);
  const Tensor arriving = Tensor::from<float>({}, {1});
  for (const std::shared_ptr<Op>& op : float_losses()) {
    std::vector<testing::OpResult> results;
    testing::with_thread_counts([&] { results.push_back(testing::run_op(op, {prediction, target}, {arriving})); });
    for (const testing::OpResult& result : results) {
      EXPECT_EQ(*result.outputs[0].data<float>(), *results[0].outputs[0].data<float>()) << op->type();
      EXPECT_TRUE(std::ranges::equal(result.d_inputs[0].values<float>(), results[0].d_inputs[0].values<float>()))
          << op->type();
    }
  }
}

}  // namespace
}  // namespace miniqat::layers::losses_test
