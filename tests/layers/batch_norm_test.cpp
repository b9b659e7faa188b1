#include "layers/batch_norm.h"

#include <gtest/gtest.h>

#include "core/engine/session.h"
#include "core/graph/graph.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "layers/mean.h"
#include "tests/errors.h"
#include "tests/layers/op_runner.h"
#include "tests/sliced_session.h"

namespace miniqat::layers::batch_norm_test {
namespace {

using testing::expect_close;
using testing::expect_fast_is_reference;
using testing::expect_values;
using testing::inference_error;
using testing::random_tensor;
using testing::run_op;

Tensor channel(float value) { return Tensor::from<float>({1}, std::vector<float>{value}); }

/// x with gamma, beta, moving mean and moving variance of plausible values.
std::vector<Tensor> inputs_for(const Tensor& x) {
  const Shape channels{x.shape().channels()};
  return {x, random_tensor(channels, 2, 0.5f, 2), random_tensor(channels, 3), random_tensor(channels, 4),
          random_tensor(channels, 5, 0.1f, 3)};
}

TEST(BatchNorm, FastIsReference) {
  for (const Shape& shape : {Shape{2, 3}, Shape{1, 8}, Shape{300, 17}, Shape{4, 5, 3, 1}, Shape{3, 14, 14, 32},
                             Shape{2, 1, 1, 8}, Shape{6, 2, 17}, Shape{5}}) {
    const auto inputs = inputs_for(random_tensor(shape, 1));
    expect_fast_is_reference(BatchNorm::make(), inputs, concat(shape, " training"));
    expect_fast_is_reference(BatchNorm::make(), inputs, concat(shape, " evaluation"), false);
    expect_fast_is_reference(BatchNorm::make({.is_training = false}), inputs, concat(shape, " frozen"));
  }
}

TEST(BatchNorm, StatisticsSurviveALargeMean) {
  // In float32 a sum of squares would have lost this deviation altogether.
  Tensor x = random_tensor({64, 9, 9, 3}, 1);
  for (float& value : x.values<float>()) value += 3000;
  std::vector<Tensor> inputs = inputs_for(x);
  const auto fast = run_op(BatchNorm::make(), inputs);
  for (Tensor& input : inputs) input = input.to(DType::kFloat64);
  const auto exact = run_op(BatchNorm::make(), inputs, {}, Backend::kReference);
  expect_close(fast.outputs[1], exact.outputs[1], "mean", 1e-7);
  expect_close(fast.outputs[2], exact.outputs[2], "variance", 1e-5);
  // The mean is only known to half a unit in the last place of 3000.
  expect_close(fast.outputs[0], exact.outputs[0], "y", 1e-3);
}

TEST(BatchNorm, ByHand) {
  const Tensor x = Tensor::from<float>({4, 1}, std::vector<float>{1, 3, 5, 7});
  const std::vector<Tensor> inputs = {x, channel(2), channel(10), channel(100), channel(50)};
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    const auto result = run_op(BatchNorm::make({.epsilon = 4, .decay = 0.5}), inputs, {}, backend);
    // mean 4, biased variance 5, sigma 3.
    expect_close(result.outputs[0], Tensor::from<float>({4, 1}, std::vector<float>{8, 10 - 2 / 3.f, 10 + 2 / 3.f, 12}),
                 "y", 1e-6);
    expect_values(result.outputs[1], {4});
    expect_values(result.outputs[2], {5});
    // The moving variance takes 20 / 3.
    expect_values(result.updates[0], {52});
    expect_close(result.updates[1], channel(25 + 10 / 3.f), "moving variance", 1e-6);
    // The inputs keep their values until the session commits.
    expect_values(inputs[3], {100});
  }
}

TEST(BatchNorm, EvaluationUsesMovingStatisticsAndUpdatesNothing) {
  const Tensor x = Tensor::from<float>({2, 1}, std::vector<float>{1, 5});
  const std::vector<Tensor> inputs = {x, channel(2), channel(10), channel(3), channel(12)};
  for (const Backend backend : {Backend::kFast, Backend::kReference})
    for (const bool is_training : {false, true}) {
      // Frozen in a training run, or a training op in an evaluation run.
      const auto result =
          run_op(BatchNorm::make({.epsilon = 4, .is_training = is_training}), inputs, {}, backend, !is_training);
      expect_values(result.outputs[0], {9, 11});
      expect_values(result.outputs[1], {3});
      expect_values(result.outputs[2], {12});
      EXPECT_TRUE(result.updates.empty());
    }
}

TEST(BatchNorm, OneRowHasVarianceZero) {
  const std::vector<Tensor> inputs = {channel(7).reshaped({1, 1}), channel(2), channel(10), channel(3), channel(8)};
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    const auto result =
        run_op(BatchNorm::make({.decay = 0.5}), inputs, {channel(1).reshaped({1, 1}), Tensor(), Tensor()}, backend);
    expect_values(result.outputs[0], {10});
    expect_values(result.updates[0], {5});
    expect_values(result.updates[1], {4});
    expect_values(result.d_inputs[0], {0});
    expect_values(result.d_inputs[1], {0});
    expect_values(result.d_inputs[2], {1});
  }
}

TEST(BatchNorm, GradientsReachTheStatistics) {
  // d mean / dx = 1 / n and d variance / dx = 2 (x - mean) / n.
  const Tensor x = Tensor::from<float>({4, 1}, std::vector<float>{1, 3, 5, 7});
  const std::vector<Tensor> inputs = {x, channel(2), channel(10), channel(0), channel(1)};
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    const auto of_mean = run_op(BatchNorm::make(), inputs, {Tensor(), channel(8), Tensor()}, backend);
    expect_values(of_mean.d_inputs[0], {2, 2, 2, 2});
    expect_values(of_mean.d_inputs[1], {0});
    const auto of_variance = run_op(BatchNorm::make(), inputs, {Tensor(), Tensor(), channel(8)}, backend);
    expect_values(of_variance.d_inputs[0], {-12, -4, 4, 12});
    const auto frozen =
        run_op(BatchNorm::make({.is_training = false}), inputs, {Tensor(), channel(8), channel(8)}, backend);
    expect_values(frozen.d_inputs[0], {0, 0, 0, 0});
  }
}

TEST(BatchNorm, AnyGradientMayBeLeftOut) {
  const auto inputs = inputs_for(random_tensor({3, 4, 4, 8}, 1));
  const auto op = BatchNorm::make();
  const Tensor d_y = random_tensor({3, 4, 4, 8}, 7);
  const auto all = run_op(op, inputs, {d_y, Tensor(), Tensor()});
  Tensor y(inputs[0].shape());
  Tensor mean(Shape{8});
  Tensor variance(Shape{8});
  ForwardContext forward;
  for (const Tensor& input : inputs) forward.inputs.push_back(&input);
  forward.outputs = {&y, &mean, &variance};
  forward.training = true;
  std::vector<TensorSpec> specs;
  for (const Tensor& input : inputs) specs.push_back(input.spec());
  Tensor saved(saved_by(*op, specs).at(0));
  forward.saved = {&saved};
  op->forward(forward);
  for (int wanted = 0; wanted < 3; ++wanted) {
    Tensor d_input(inputs[wanted].shape());
    BackwardContext backward{.forward = &forward, .d_outputs = {&d_y, nullptr, nullptr}, .d_inputs = {}};
    backward.d_inputs.resize(5);
    backward.d_inputs[wanted] = &d_input;
    op->backward(backward);
    EXPECT_TRUE(std::ranges::equal(d_input.values<float>(), all.d_inputs[wanted].values<float>())) << wanted;
  }
}

TEST(BatchNorm, RefusesBadUses) {
  EXPECT_EQ(inference_error(BatchNorm::make(), {{2, 4, 4, 8}, {8}, {4}, {8}, {8}}),
            "beta must have the shape [8] of the input's channels; input [2,4,4,8], beta [4]");
  EXPECT_NE(inference_error(BatchNorm::make({.epsilon = -1}), {{2, 8}, {8}, {8}, {8}, {8}}).find("epsilon"),
            std::string::npos);
  EXPECT_NE(inference_error(BatchNorm::make({.decay = NAN}), {{2, 8}, {8}, {8}, {8}, {8}}).find("decay"),
            std::string::npos);
  EXPECT_NE(inference_error(BatchNorm::make(), {{0, 8}, {8}, {8}, {8}, {8}}).find("empty"), std::string::npos);
  EXPECT_NE(inference_error(BatchNorm::make(), {{2, 8}, {8}}).find("5 inputs"), std::string::npos);
}

/// A BatchNorm of random parameters behind a placeholder.
struct Normalised {
  Graph graph;
  Output x, y;

  explicit Normalised(const Shape& shape, const BatchNormAttributes& attributes = {}) {
    x = placeholder(graph, "x", shape);
    const auto vector = [&](const std::string& name, double value, bool trainable) {
      return variable(graph, name, {shape.channels()}, Initializer::constant(value), trainable);
    };
    y = batch_norm(graph, "bn", x, vector("gamma", 2, true), vector("beta", 1, true), vector("moving_mean", 0, false),
                   vector("moving_variance", 1, false), attributes);
  }
  std::string refusal(bool training = true, Backend backend = Backend::kFast) {
    Session session(graph, {.backend = backend});
    return testing::error_of([&] {
      session.run({.fetches = {y}, .training = training}, {{x, random_tensor(x.shape(), 1)}});
    });
  }
};

/// The output would be beta whatever x is: a network of such batch norms learns nothing.
TEST(BatchNorm, ASessionRefusesToTrainOnOneNumberAChannel) {
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    for (const Shape& one : {Shape{1, 3}, Shape{1, 1, 1, 3}})
      EXPECT_TRUE(testing::mentions(Normalised(one).refusal(true, backend),
                                    {"[BatchNorm \"bn\"] sees one number a channel", one.str(), "a batch of 1"}));
    EXPECT_TRUE(testing::mentions(Normalised({3}).refusal(true, backend), {"[BatchNorm \"bn\"]", "input [3]"}));
    for (const Shape& more : {Shape{2, 3}, Shape{1, 1, 2, 3}, Shape{1, 2, 1, 3}})
      EXPECT_EQ(Normalised(more).refusal(true, backend), "") << more;
    EXPECT_EQ(Normalised({1, 3}).refusal(false, backend), "") << "in evaluation";
    EXPECT_EQ(Normalised({1, 3}, {.is_training = false}).refusal(true, backend), "");
    EXPECT_EQ(Normalised({1, 3}, {.freeze_delay = 1}).refusal(true, backend), "") << "frozen in the first step";
    EXPECT_NE(Normalised({1, 3}, {.freeze_delay = 2}).refusal(true, backend), "");
  }
}

TEST(BatchNorm, ASliceOfOneIsOneNumber) {
  Normalised net({1, 3});
  const Output loss = mean(net.graph, "loss", net.y, {.axes = {0, 1}});
  testing::SlicedSession session(net.graph, 2);
  const RunRequest request{
      .fetches = {loss}, .gradients_of = loss, .gradient_targets = {net.graph.output_at("gamma")}, .training = true};
  for (const char* attempt : {"first", "second"})
    EXPECT_TRUE(testing::mentions(testing::error_of([&] {
                                    session.run(request, {{net.x, random_tensor({2, 3}, 1)}});
                                  }),
                                  {"[BatchNorm \"bn\"]", "a batch of 1"}))
        << attempt;
}

}  // namespace
}  // namespace miniqat::layers::batch_norm_test
