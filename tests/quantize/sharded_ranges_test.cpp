// What ops observe in a training step in slices: ranges and moving statistics are stored as of the whole batch.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "core/tensors/random.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "tests/sliced_session.h"

namespace miniqat::quantize::sharded_ranges_test {
namespace {

constexpr int kShards = 4;
constexpr std::int64_t kSlice = 6, kChannels = 3;

/// `body` makes a tensor of x [batch, 3]; the loss is the mean of it times w.
struct Net {
  Graph graph;
  Output x, w, loss;

  template <class Body>
  Net(std::int64_t batch, const Body& body) {
    x = placeholder(graph, "x", {batch, kChannels});
    w = variable(graph, "w", {kChannels, 2}, Initializer::constant(0.25));
    loss = layers::mean(graph, "loss", layers::matmul(graph, "yw", body(graph, x), w), {.axes = {0, 1}});
  }
  RunRequest step() const {
    return {.fetches = {loss}, .gradients_of = loss, .gradient_targets = {w}, .training = true};
  }
};

/// Numbers of which the second slice has the largest and the fourth the smallest.
Tensor batch_of(int step) {
  Tensor x({kShards * kSlice, kChannels});
  Random random(static_cast<std::uint64_t>(step));
  for (float& value : x.values<float>()) value = random.normal();
  x.data<float>()[kSlice * kChannels + 1] = 50.0f + static_cast<float>(step);
  x.data<float>()[3 * kSlice * kChannels + 5] = -40;
  return x;
}

/// Every variable after some steps, by name, in double.
template <class Body>
std::map<std::string, std::vector<double>> trained(const Body& body, const SessionOptions& options, int at_once,
                                                   int steps = 3) {
  const int slices = at_once == 0 ? 1 : kShards;
  Net net(kShards * kSlice / slices, body);
  testing::SlicedSession session(net.graph, slices, std::max(at_once, 1), options);
  for (int step = 1; step <= steps; ++step) session.run(net.step(), {{net.x, batch_of(step)}});
  std::map<std::string, std::vector<double>> values;
  for (const auto& [name, tensor] : session.variables()) {
    const Tensor wide = tensor.to(DType::kFloat64);
    values[name].assign(wide.values<double>().begin(), wide.values<double>().end());
  }
  return values;
}

/// Ranges and counts of `body` in slices are those of the whole batch, to the bit, on every backend.
template <class Body>
void expect_ranges_of_the_whole_batch(const Body& body) {
  for (const Backend backend : {Backend::kFast, Backend::kReference})
    for (const DType precision : {DType::kFloat32, DType::kFloat64}) {
      if (backend == Backend::kFast && precision == DType::kFloat64) continue;
      const SessionOptions options{.backend = backend, .precision = precision};
      const auto whole = trained(body, options, 0);
      for (const int at_once : {1, 2, 4}) EXPECT_EQ(trained(body, options, at_once), whole) << at_once;
    }
}

Output quantized(Graph& graph, Output x, FakeQuantAttributes attributes, int channel_axes = 0) {
  return fake_quant(graph, "q", x, attributes, {}, channel_axes);
}

TEST(ShardedRangesTest, AnOutlierInOneSliceWidensTheRangeAsInTheWholeBatch) {
  for (const RangeKind range : {RangeKind::kMovingAverage, RangeKind::kAllValues, RangeKind::kLastValue})
    for (const bool symmetric : {false, true}) {
      const FakeQuantAttributes attributes{.symmetric = symmetric, .range = range, .ema_decay = 0.9};
      const auto body = [&](Graph& graph, Output x) { return quantized(graph, x, attributes); };
      expect_ranges_of_the_whole_batch(body);
      if (range == RangeKind::kLastValue && !symmetric) {
        const auto last = trained(body, {}, 2);
        EXPECT_EQ(last.at("q/max").front(), 53);
        EXPECT_EQ(last.at("q/min").front(), -40);
      }
    }
}

TEST(ShardedRangesTest, PerChannelBeforeItsDelayAndInAChain) {
  expect_ranges_of_the_whole_batch(
      [](Graph& graph, Output x) { return quantized(graph, x, {.bits = 4, .ema_decay = 0.5}, 1); });
  expect_ranges_of_the_whole_batch([](Graph& graph, Output x) { return quantized(graph, x, {.delay = 2}); });
  expect_ranges_of_the_whole_batch([](Graph& graph, Output x) {
    const Output bias = variable(graph, "bias", {kChannels}, Initializer::constant(0.5));
    return quantized(graph, layers::relu(graph, "relu", layers::bias_add(graph, "sum", x, bias)), {.ema_decay = 0.9});
  });
  expect_ranges_of_the_whole_batch([](Graph& graph, Output x) {
    return quantized(graph, layers::add(graph, "sum", layers::relu(graph, "relu", x), x), {.ema_decay = 0.9});
  });
}

/// A quantizer that a batch with a NaN meets keeps its range, whichever slice has it.
TEST(ShardedRangesTest, ANanInOneSliceKeepsTheRange) {
  Net net(kSlice, [](Graph& graph, Output x) { return quantized(graph, x, {.range = RangeKind::kLastValue}); });
  testing::SlicedSession session(net.graph, kShards, 2);
  RunRequest step = net.step();
  session.run(step, {{net.x, batch_of(1)}});
  const float before = *session.variable("q/max").data<float>();
  EXPECT_EQ(before, 51);
  Tensor bad = batch_of(2);
  bad.data<float>()[2 * kSlice * kChannels] = NAN;
  session.run(step, {{net.x, bad}});
  EXPECT_EQ(*session.variable("q/max").data<float>(), before);
}

/// Weights that all slices see alike: each slice finds the same range, which is stored as it is. Dampening acts once.
TEST(ShardedRangesTest, WeightsAreCountedOnce) {
  const auto body = [](Graph& graph, Output x) {
    const Output weights = variable(graph, "weights", {kChannels}, Initializer::truncated_normal(1));
    const FakeQuantAttributes attributes{.range = RangeKind::kLastValue, .dampening = 0.1, .dampening_steps = 10};
    return layers::mul(graph, "product", x, quantized(graph, weights, attributes));
  };
  const auto whole = trained(body, {}, 0), sliced = trained(body, {}, 4);
  EXPECT_EQ(sliced.at("q/max"), whole.at("q/max"));
  EXPECT_EQ(sliced.at("q/num_dampened"), (std::vector<double>{3}));
}

/// Learned ranges and dampened weights: gradients of the whole batch, up to rounding.
TEST(ShardedRangesTest, GradientsOfRangesAndDampeningAreOfTheWholeBatch) {
  const auto gradients = [](int at_once) {
    std::vector<Output> targets;
    const int slices = at_once == 0 ? 1 : kShards;
    Net net(kShards * kSlice / slices, [&](Graph& graph, Output x) {
      const Output weights = variable(graph, "weights", {kChannels}, Initializer::truncated_normal(1));
      const Output y = fake_quant(graph, "a", x, {.bits = 4, .range = RangeKind::kLearned}, {-1.5, 2});
      const Output v = fake_quant(
          graph, "v", weights, {.bits = 3, .symmetric = true, .range = RangeKind::kLearned, .dampening = 0.3}, {-1, 1});
      targets = {weights, y.node->input(1), y.node->input(2), v.node->input(1), v.node->input(2)};
      return layers::mul(graph, "product", y, v);
    });
    testing::SlicedSession session(net.graph, slices, std::max(at_once, 1),
                                   {.backend = Backend::kReference, .precision = DType::kFloat64});
    const RunRequest request{
        .fetches = {net.loss}, .gradients_of = net.loss, .gradient_targets = targets, .training = true};
    return session.run(request, {{net.x, batch_of(1)}}).gradients;
  };
  const std::vector<Tensor> whole = gradients(0), sliced = gradients(2);
  for (std::size_t k = 0; k < whole.size(); ++k)
    for (std::int64_t i = 0; i < whole[k].elements(); ++i) {
      EXPECT_NE(whole[k].data<double>()[i], 0) << k;
      EXPECT_NEAR(sliced[k].data<double>()[i], whole[k].data<double>()[i], 1e-14) << k;
    }
}

Output normalised(Graph& graph, Output x, const layers::BatchNormAttributes& attributes) {
  const auto vector = [&](const char* name, double value) {
    return variable(graph, name, {kChannels}, Initializer::constant(value), false);
  };
  return layers::batch_norm(graph, "norm", x, vector("gamma", 1), vector("beta", 0), vector("mean", 0.5),
                            vector("variance", 2), attributes);
}

/// moving = decay * moving + (1 - decay) * (mean, and n / (n - 1) times the variance, of the whole batch).
TEST(ShardedRangesTest, MovingStatisticsAreOfTheWholeBatch) {
  constexpr double kDecay = 0.7;
  const auto body = [](Graph& graph, Output x) { return normalised(graph, x, {.decay = kDecay}); };
  const Tensor x = batch_of(1);
  constexpr std::int64_t kRows = kShards * kSlice;
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    const auto stored = trained(body, {.backend = backend}, 2, 1), whole = trained(body, {.backend = backend}, 0, 1);
    for (std::int64_t c = 0; c < kChannels; ++c) {
      double mean = 0, squares = 0;
      for (std::int64_t r = 0; r < kRows; ++r) mean += x.data<float>()[r * kChannels + c] / double{kRows};
      for (std::int64_t r = 0; r < kRows; ++r) squares += std::pow(x.data<float>()[r * kChannels + c] - mean, 2);
      const auto k = static_cast<std::size_t>(c);
      EXPECT_NEAR(stored.at("mean")[k], kDecay * 0.5 + (1 - kDecay) * mean, 1e-6);
      const double expected = kDecay * 2 + (1 - kDecay) * squares / (kRows - 1);
      EXPECT_NEAR(stored.at("variance")[k], expected, 1e-5 * expected);
      EXPECT_NEAR(stored.at("variance")[k], whole.at("variance")[k], 1e-5 * expected);
    }
  }
}

/// A batch norm and a quantizer in one chain; and one that is frozen from step 2 on.
TEST(ShardedRangesTest, BatchNormsInChainsAndFrozen) {
  const auto chain = [](std::int64_t freeze) {
    return [freeze](Graph& graph, Output x) {
      const Output y = normalised(graph, x, {.decay = 0.7, .freeze_delay = freeze});
      return quantized(graph, layers::relu(graph, "relu", y), {.ema_decay = 0.9});
    };
  };
  const auto whole = trained(chain(-1), {}, 0), sliced = trained(chain(-1), {}, 4);
  for (std::size_t c = 0; c < kChannels; ++c)
    EXPECT_NEAR(sliced.at("variance")[c], whole.at("variance")[c], 1e-5 * whole.at("variance")[c]);
  // Each slice is normalised by itself, so its range is another one; but it is counted as often.
  EXPECT_EQ(sliced.at("q/num_updates"), whole.at("q/num_updates"));
  EXPECT_EQ(trained(chain(-1), {}, 1), sliced);
  const auto frozen = trained(chain(2), {}, 2), one_step = trained(chain(2), {}, 2, 1);
  EXPECT_EQ(frozen.at("variance"), one_step.at("variance"));
  EXPECT_NE(one_step.at("variance").front(), 2);
}

/// Each slice is a step of its own with a batch norm: the gradient is the mean of theirs, to the bit.
TEST(ShardedRangesTest, GradientsAreTheMeanOfThoseOfTheSlices) {
  const auto make = [] {
    return Net(kSlice, [](Graph& graph, Output x) {
      const Output scaled =
          layers::mul(graph, "scaled", x, variable(graph, "factor", {kChannels}, Initializer::constant(1.5)));
      return quantized(graph, normalised(graph, scaled, {}), {.bits = 4});
    });
  };
  const auto gradient_of = [](Net& net, Session& session, const Tensor& x) {
    RunRequest request = net.step();
    request.gradient_targets = {net.graph.at("factor").output()};
    return session.run(request, {{net.x, x}}).gradients.front();
  };
  const Tensor x = batch_of(1);
  std::vector<Tensor> parts;
  for (std::int64_t slice = 0; slice < kShards; ++slice) {
    Net net = make();
    Session session(net.graph);
    const Shape shape{kSlice, kChannels};
    parts.push_back(gradient_of(net, session, x.slice(slice * shape.elements(), shape)));
  }
  Net net = make();
  testing::SlicedSession session(net.graph, kShards, 2);
  const Tensor mean = gradient_of(net, session, x);
  const auto part = [&](int slice, std::int64_t c) { return parts[static_cast<std::size_t>(slice)].data<float>()[c]; };
  for (std::int64_t c = 0; c < kChannels; ++c) {
    EXPECT_NE(mean.data<float>()[c], 0);
    EXPECT_EQ(mean.data<float>()[c], ((part(0, c) + part(1, c)) + (part(2, c) + part(3, c))) / 4);
  }
}

}  // namespace
}  // namespace miniqat::quantize::sharded_ranges_test
