// Training steps in slices: losses, gradients, errors. What ops observe: tests/quantize/sharded_ranges_test.cpp.

#include "core/engine/sharded_steps.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "core/engine/profile.h"
#include "core/engine/session.h"
#include "core/engine/shard_exchange.h"
#include "core/engine/sweep.h"
#include "core/tensors/random.h"
#include "layers/layers.h"
#include "optim/sgd.h"
#include "tests/core/observer_op.h"
#include "tests/core/thread_exchange.h"
#include "tests/errors.h"
#include "tests/sliced_session.h"

namespace miniqat::sharded_steps_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::SlicedSession;

/// loss = mean(x w): the gradient of w in a slice is its x.
class OneNumberTest : public ::testing::Test {
 protected:
  Graph graph_;
  Output x_ = placeholder(graph_, "x", {1, 1});
  Output w_ = variable(graph_, "w", {1, 1}, Initializer::constant(1));
  Output loss_ = layers::mean(graph_, "loss", layers::matmul(graph_, "xw", x_, w_), {.axes = {0, 1}});
  RunRequest request_ = {.fetches = {loss_}, .gradients_of = loss_, .gradient_targets = {w_}, .training = true};
};

/// Numbers whose sum depends on the brackets.
TEST_F(OneNumberTest, AddsGradientsInTheTreeAndTakesTheMean) {
  const float big = 1 << 24;
  const std::vector<float> x = {big, 1, 1, 1, 1, 1, -big, 1};
  const float tree = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
  float in_a_row = 0;
  for (const float value : x) in_a_row += value;
  ASSERT_NE(tree, in_a_row);
  for (const int at_once : {1, 2, 3, 4, 5, 8, 20}) {
    SlicedSession session(graph_, 8, at_once);
    for (int step = 0; step < 3; ++step) {
      const RunResult result = session.run(request_, {{x_, Tensor::from<float>({8, 1}, x)}});
      EXPECT_EQ(*result.gradients[0].data<float>(), tree / 8) << at_once;
      EXPECT_EQ(*result.fetched[0].data<float>(), 6.0f / 8) << at_once;
    }
    EXPECT_EQ(session.step(), 3);
  }
}

TEST_F(OneNumberTest, RefusesOptionsAndFeedsThatDoNotFit) {
  Session session(graph_);
  LoneExchange six(6), four(4);
  const auto refusal = [&](const ShardOptions& options) { return error_of([&] { session.set_shards(options); }); };
  EXPECT_TRUE(mentions(refusal({.exchange = six}), {"power of two", "6"}));
  EXPECT_TRUE(mentions(refusal({.exchange = four, .threads = 0}), {"at least 1 thread", "0"}));
  EXPECT_TRUE(mentions(refusal({.exchange = four, .at_once = 0}), {"at least 1 slice", "0"}));
  session.set_shards({.exchange = four});
  const auto run = [&](const RunRequest& request, const Tensor& x) {
    return error_of([&] { session.run(request, {{x_, x}}); });
  };
  EXPECT_TRUE(mentions(run(request_, Tensor({3, 1})), {"\"x\"", "4 slices", "[1,1]", "[3,1]"}));
  EXPECT_TRUE(mentions(run({.fetches = {loss_}, .training = true}, Tensor({4, 1})), {"gradients"}));
  StepObserver observer;
  session.set_observer(&observer);
  EXPECT_TRUE(mentions(error_of([&] {
                         session.train_step(loss_, optim::Sgd({}), {{x_, Tensor({4, 1})}});
                       }),
                       {"observed"}));
  EXPECT_EQ(session.step(), 0);
  // Without training it is a session like any other.
  session.set_observer(nullptr);
  session.run({.fetches = {loss_}}, {{x_, Tensor({1, 1})}});
}

TEST_F(OneNumberTest, NamesTheSliceOfANanAndKeepsNothing) {
  SlicedSession session(graph_, 4, 2);
  const std::vector<float> x = {1, 2, std::numeric_limits<float>::quiet_NaN(), 4};
  const std::string text = error_of([&] {
    session.train_step(loss_, optim::Sgd({}), {{x_, Tensor::from<float>({4, 1}, x)}});
  });
  EXPECT_TRUE(mentions(text, {"NaN", "step 1", "\"x\"", "of slice 2"}));
  EXPECT_EQ(session.step(), 0);
  EXPECT_EQ(*session.variable("w").data<float>(), 1);
}

/// The two workers' errors: that of the lower slices is thrown. Then the session is as good as before.
TEST_F(OneNumberTest, AnErrorInAWorkerReachesTheCaller) {
  Graph graph;
  const Output logits = placeholder(graph, "logits", {1, 2}), labels = placeholder(graph, "labels", {1}, DType::kInt32);
  const Output w = variable(graph, "w", {2, 2});
  const Output loss = layers::softmax_cross_entropy(graph, layers::matmul(graph, "xw", logits, w), labels);
  SlicedSession session(graph, 2, 2);
  const auto step = [&](std::vector<std::int32_t> classes) {
    session.train_step(loss, optim::Sgd({}),
                       {{logits, Tensor({2, 2})}, {labels, Tensor::from<std::int32_t>({2}, classes)}});
  };
  EXPECT_TRUE(mentions(error_of([&] { step({7, 9}); }), {"label 7 of row 0 "}));
  EXPECT_TRUE(mentions(error_of([&] { step({0, 9}); }), {"label 9 of row 1 "}));
  EXPECT_EQ(session.step(), 0);
  step({0, 1});
  EXPECT_EQ(session.step(), 1);
}

/// A convolution, pool, dense layers and dropout, for `batch` pictures.
struct SmallNet {
  Graph graph;
  Output images, labels, loss;
  std::vector<Output> variables;

  explicit SmallNet(std::int64_t batch) {
    images = placeholder(graph, "images", {batch, 6, 6, 1});
    labels = placeholder(graph, "labels", {batch}, DType::kInt32);
    Output y = layers::conv2d(graph, "conv", images, add("filter", {3, 3, 1, 4}), {});
    y = layers::relu(graph, "relu", layers::bias_add(graph, "bias_add", y, add("bias", {4})));
    y = layers::max_pool(graph, "pool", y, {.window = {2, 2}, .strides = {2, 2}});
    y = layers::dropout(graph, "dropout", layers::reshape(graph, "flat", y, {.shape = {batch, -1}}), {.rate = 0.4});
    y = layers::matmul(graph, "dense", y, add("weights", {y.shape()[1], 3}));
    loss = layers::softmax_cross_entropy(graph, y, labels, "loss", {.label_smoothing = 0.1});
  }
  Output add(const std::string& name, const Shape& shape) {
    variables.push_back(variable(graph, name, shape, Initializer::truncated_normal(0.5)));
    return variables.back();
  }
  RunRequest gradients() const {
    return {.fetches = {loss}, .gradients_of = loss, .gradient_targets = variables, .training = true};
  }
};

TEST(ShardedStepsTest, GradientsAreThoseOfTheWholeBatch) {
  constexpr std::int64_t kBatch = 16;
  Random random(5);
  Tensor images({kBatch, 6, 6, 1}), labels(Shape{kBatch}, DType::kInt32);
  for (float& pixel : images.values<float>()) pixel = random.normal();
  for (std::int32_t& label : labels.values<std::int32_t>()) label = static_cast<std::int32_t>(random.below(3));
  SmallNet whole(kBatch);
  const SessionOptions exact{.seed = 3, .backend = Backend::kReference, .precision = DType::kFloat64};
  Session at_once(whole.graph, exact);
  const RunResult expected = at_once.run(whole.gradients(), {{whole.images, images}, {whole.labels, labels}});
  for (const int shards : {2, 8, 16}) {
    SmallNet slice(kBatch / shards);
    SlicedSession session(slice.graph, shards, 2, exact);
    const RunResult result = session.run(slice.gradients(), {{slice.images, images}, {slice.labels, labels}});
    EXPECT_NEAR(*result.fetched[0].data<double>(), *expected.fetched[0].data<double>(), 1e-12);
    for (std::size_t k = 0; k < expected.gradients.size(); ++k)
      for (std::int64_t i = 0; i < expected.gradients[k].elements(); ++i)
        ASSERT_NEAR(result.gradients[k].data<double>()[i], expected.gradients[k].data<double>()[i], 1e-13)
            << whole.variables[k].name() << " " << i << " in " << shards;
  }
}

/// A slice's loss is a mean over its elements, and counts as one part of the whole.
TEST(ShardedStepsTest, LossesOfNumbersAreThoseOfTheWholeBatch) {
  constexpr std::int64_t kBatch = 16;
  Random random(6);
  Tensor x({kBatch, 4}), targets({kBatch, 3}), weights({4, 3});
  for (float& value : x.values<float>()) value = random.normal();
  for (float& value : targets.values<float>()) value = random.uniform();
  for (float& value : weights.values<float>()) value = random.normal();
  int number = 0;
  for (const std::shared_ptr<Op>& op :
       {layers::MeanSquaredError::make(), layers::Huber::make(), layers::SigmoidCrossEntropy::make()}) {
    SCOPED_TRACE(concat("loss ", number++));
    const auto run = [&](int shards) {
      Graph graph;
      const std::int64_t rows = kBatch / shards;
      const Output fed = placeholder(graph, "x", {rows, 4}), target = placeholder(graph, "target", {rows, 3});
      const Output w = variable(graph, "w", {4, 3});
      const Output loss = graph.add("loss", op, {layers::matmul(graph, "y", fed, w), target}).output();
      SlicedSession session(graph, shards, 2, {.backend = Backend::kReference, .precision = DType::kFloat64});
      session.set_variable("w", weights);
      return session.run({.fetches = {loss}, .gradients_of = loss, .gradient_targets = {w}, .training = true},
                         {{fed, x}, {target, targets}});
    };
    const RunResult whole = run(1);
    for (const int shards : {2, 4, 16}) {
      const RunResult result = run(shards);
      EXPECT_NEAR(*result.fetched[0].data<double>(), *whole.fetched[0].data<double>(), 1e-13) << shards;
      for (std::int64_t i = 0; i < 12; ++i)
        EXPECT_NEAR(result.gradients[0].data<double>()[i], whole.gradients[0].data<double>()[i], 1e-13) << shards;
    }
  }
}

TEST(ShardedStepsTest, ABadTargetHasItsRowOfTheWholeBatch) {
  Graph graph;
  const Output x = placeholder(graph, "x", {2, 3}), targets = placeholder(graph, "targets", {2, 3});
  const Output w = variable(graph, "w", {3, 3});
  const Output loss = layers::sigmoid_cross_entropy(graph, layers::matmul(graph, "y", x, w), targets);
  Tensor fed({8, 3});
  fed.data<float>()[5 * 3 + 1] = 2;
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    SlicedSession session(graph, 4, 2, {.backend = backend});
    const auto step = [&] { session.train_step(loss, optim::Sgd({}), {{x, Tensor({8, 3})}, {targets, fed}}); };
    EXPECT_TRUE(mentions(error_of(step), {"target 2 of row 5, column 1 is outside"}));
  }
}

TEST(ShardedStepsTest, ARunWhoseStatisticsOverflowKeepsNothing) {
  Graph graph;
  const auto vector = [&](const char* name, double value) {
    return variable(graph, name, {1}, Initializer::constant(value), false);
  };
  const Output x = placeholder(graph, "x", {2, 1}), gamma = vector("gamma", 1);
  const Output y =
      layers::batch_norm(graph, "bn", x, gamma, vector("beta", 0), vector("mean", 0), vector("variance", 1));
  const Output loss = layers::mean(graph, "loss", y, {.axes = {0, 1}});
  SlicedSession session(graph, 2);
  const auto run = [&](float one) {
    session.run({.fetches = {loss}, .gradients_of = loss, .gradient_targets = {gamma}, .training = true},
                {{x, Tensor::from<float>({4, 1}, {1, 2, 3, one})}});
  };
  EXPECT_THROW(run(std::numeric_limits<float>::infinity()), NonFiniteUpdate);
  EXPECT_EQ(session.step(), 0);
  EXPECT_EQ(*session.variable("mean").data<float>(), 0);
  run(4);
  EXPECT_EQ(session.step(), 1);
}

/// A step that fails in one process before its exchange says so; here no other process waits.
TEST_F(OneNumberTest, AFailedStepIsAbandoned) {
  testing::ThreadGroup group(1);
  group.run(2, [&](ShardExchange& exchange, int) {
    Session session(graph_);
    session.set_shards({.exchange = exchange});
    session.run(request_, {{x_, Tensor({2, 1})}});
    EXPECT_EQ(group.abandoned(), 0);
    EXPECT_NE(error_of([&] { session.run(request_, {}); }), "");
    EXPECT_EQ(group.abandoned(), 1);
    EXPECT_NE(error_of([&] { session.run(request_, {{x_, Tensor({3, 1})}}); }), "");
    EXPECT_EQ(group.abandoned(), 2);
  });
}

/// Which slice's value it would store is not defined.
TEST(ShardedStepsTest, RefusesAnOpThatUpdatesFromItsSliceAlone) {
  Graph graph;
  const Output x = placeholder(graph, "x", {1, 1}), w = variable(graph, "w", {1, 1});
  const Output seen = testing::observer(graph, "seen", layers::matmul(graph, "xw", x, w));
  const Output loss = layers::mean(graph, "loss", seen, {.axes = {0, 1}});
  SlicedSession session(graph, 2);
  const auto step = [&] { session.train_step(loss, optim::Sgd({}), {{x, Tensor({2, 1})}}); };
  EXPECT_TRUE(mentions(error_of(step), {"[Observer \"seen\"]", "slices"}));
}

TEST(ShardedStepsTest, TheProfileTimesTheCallingThread) {
  SmallNet net(2);
  SlicedSession session(net.graph, 4, 2);
  Profile profile;
  session.set_profile(&profile);
  const Tensor labels(Shape{8}, DType::kInt32);
  for (int step = 0; step < 4; ++step)
    session.train_step(net.loss, optim::Sgd({}), {{net.images, Tensor({8, 6, 6, 1})}, {net.labels, labels}});
  EXPECT_EQ(profile.steps(), 2);
  const auto conv = std::ranges::find_if(profile.parts(), [](const auto& part) { return part.name == "conv"; });
  ASSERT_NE(conv, profile.parts().end());
  // Two of the four slices, forward and backward.
  EXPECT_EQ(conv->calls, 2 * 2 * 2);
}

/// Plain loops over the levels.
float tree_sum(std::vector<float> values) {
  for (; values.size() > 1; values.resize(values.size() / 2))
    for (std::size_t i = 0; i < values.size() / 2; ++i) values[i] = values[2 * i] + values[2 * i + 1];
  return values.front();
}

/// Any order of the slices gives the same bits. A gradient whose memory does not stay may be overwritten at once.
TEST(GradientTreeTest, TheOrderDoesNotMatter) {
  Random random(1);
  for (const int leaves : {1, 2, 4, 8, 16}) {
    GradientTree tree(leaves, 2);
    for (int round = 0; round < 20; ++round) {
      std::vector<float> values(static_cast<std::size_t>(leaves));
      for (float& value : values) value = random.normal() * static_cast<float>(1 << random.below(20));
      std::vector<int> order(values.size());
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
      tree.begin();
      for (const int leaf : order) {
        Tensor gradient = Tensor::from<float>({1}, {values[static_cast<std::size_t>(leaf)]});
        const bool stays = random.below(2) == 0;
        auto halves = tree.add(1, leaf, gradient, stays);
        if (!stays && leaves > 1) *gradient.data<float>() = 1e30f;
        ASSERT_EQ(halves.has_value(), leaf == order.back());
        if (!halves) continue;
        EXPECT_EQ(halves->right.defined(), leaves > 1);
        if (leaves > 1) add_to(halves->left, halves->right);
        EXPECT_EQ(*halves->left.data<float>(), tree_sum(values)) << leaves;
      }
    }
  }
}

struct Normalised {
  Graph graph;
  Output vector(const std::string& name, double value) {
    return variable(graph, name, {2}, Initializer::constant(value), false);
  }
  Output y = layers::batch_norm(graph, "bn", placeholder(graph, "x", {4, 2}), vector("gamma", 1), vector("beta", 0),
                                vector("mean", 0), vector("variance", 1));
};

Tensor pair(float first, float second) { return Tensor::from<float>({2}, std::vector{first, second}); }

TEST(Variances, ANegativeOneIsRefusedAndNothingChanges) {
  Normalised net;
  Session session(net.graph);
  const std::vector<std::string> parts = {"\"variance\"", "-0.5", "[BatchNorm \"bn\"]", "cannot be negative"};
  EXPECT_TRUE(mentions(error_of([&] { session.set_variable("variance", pair(1, -0.5f)); }), parts));
  for (const Session::Restore mode :
       {Session::Restore::kExact, Session::Restore::kVariables, Session::Restore::kByName}) {
    Safetensors content = session.checkpoint();
    content.tensors["variance"] = pair(2, -0.5f);
    content.tensors["mean"] = pair(3, 3);
    EXPECT_TRUE(mentions(error_of([&] { session.restore(content, mode, "file"); }), parts));
    EXPECT_TRUE(mentions(error_of([&] { session.restore(content, mode, "file"); }), {"file: variable"}));
    EXPECT_EQ(session.variable("variance").data<float>()[0], 1);
    EXPECT_EQ(session.variable("mean").data<float>()[0], 0);
  }
}

TEST(Variances, ZeroAndOtherVariablesAreFree) {
  Normalised net;
  Session session(net.graph);
  session.set_variable("variance", pair(0, 3));
  session.set_variable("variance", pair(-1e-12f, 3));
  session.set_variable("mean", pair(-4, -5));
  EXPECT_EQ(session.variable("mean").data<float>()[1], -5);
}

}  // namespace

}  // namespace miniqat::sharded_steps_test
