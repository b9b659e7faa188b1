#include "layers/sequences.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/engine/session.h"
#include "core/tensors/random.h"
#include "layers/layers.h"
#include "tests/errors.h"

namespace miniqat::layers::sequences_test {
namespace {

constexpr std::int64_t kBatch = 2, kSteps = 11, kIn = 3;

Tensor random_numbers(const Shape& shape, std::uint64_t seed) {
  Tensor numbers(shape);
  Random random(seed);
  for (float& value : numbers.values<float>()) value = random.uniform(-1, 1);
  return numbers;
}

struct Net {
  Graph graph;
  Output x = placeholder(graph, "x", {kBatch, kSteps, kIn});

  Output filter(const std::string& name, const Shape& shape) { return variable(graph, name, shape); }
  Tensor run(Output y) {
    Session session(graph, {.seed = 3});
    return session.run({.fetches = {y}}, {{x, random_numbers(x.shape(), 1)}}).fetched[0];
  }
  Tensor value(Output variable) {
    Session session(graph, {.seed = 3});
    return session.run({.fetches = {variable}}, {}).fetched[0];
  }
};

struct Axis {
  std::int64_t stride, before, dilation;
  std::int64_t source(std::int64_t step, std::int64_t k) const { return step * stride - before + k * dilation; }
};

constexpr bool is_step(std::int64_t step) { return step >= 0 && step < kSteps; }

TEST(Sequences, ConvolutionsSumOverSteps) {
  struct Case {
    Conv1dAttributes attributes;
    std::int64_t steps, before;
  };
  for (const auto& [attributes, steps, before] :
       {Case{{}, 11, 1}, Case{{.stride = 2}, 6, 1}, Case{{.padding = Padding::kValid, .dilation = 3}, 5, 0},
        Case{{.padding = Padding::kExplicit, .dilation = 2, .pads = {4, 0}}, 11, 4}}) {
    Net net;
    const Output w = net.filter("w", {3, 1, kIn, 4});
    const Tensor y = net.run(conv1d(net.graph, "y", net.x, w, attributes));
    ASSERT_EQ(y.shape(), (Shape{kBatch, steps, 4}));
    const Tensor x = random_numbers(net.x.shape(), 1), filter = net.value(w);
    const Axis axis = {attributes.stride, before, attributes.dilation};
    for (std::int64_t n = 0; n < kBatch; ++n)
      for (std::int64_t step = 0; step < steps; ++step)
        for (std::int64_t o = 0; o < 4; ++o) {
          double sum = 0;
          for (std::int64_t k = 0; k < 3; ++k)
            for (std::int64_t i = 0; i < kIn; ++i)
              if (const std::int64_t from = axis.source(step, k); is_step(from))
                sum += double{x.data<float>()[(n * kSteps + from) * kIn + i]} *
                       double{filter.data<float>()[(k * kIn + i) * 4 + o]};
          EXPECT_NEAR(y.data<float>()[(n * steps + step) * 4 + o], sum, 1e-5);
        }
  }
}

TEST(Sequences, DepthwiseConvolutionsKeepTheirChannel) {
  Net net;
  const Output w = net.filter("w", {3, 1, kIn, 2});
  const Tensor y = net.run(depthwise_conv1d(net.graph, "y", net.x, w, {.padding = Padding::kValid}));
  ASSERT_EQ(y.shape(), (Shape{kBatch, 9, 6}));
  const Tensor x = random_numbers(net.x.shape(), 1), filter = net.value(w);
  for (std::int64_t n = 0; n < kBatch; ++n)
    for (std::int64_t step = 0; step < 9; ++step)
      for (std::int64_t o = 0; o < 6; ++o) {
        double sum = 0;
        for (std::int64_t k = 0; k < 3; ++k)
          sum +=
              double{x.data<float>()[(n * kSteps + step + k) * kIn + o / 2]} * double{filter.data<float>()[k * 6 + o]};
        EXPECT_NEAR(y.data<float>()[(n * 9 + step) * 6 + o], sum, 1e-5);
      }
}

TEST(Sequences, PoolsTakeWindowsOfSteps) {
  Net net;
  const Output largest = max_pool1d(net.graph, "largest", net.x, {.window = 3, .stride = 2});
  const Output mean = avg_pool1d(net.graph, "mean", net.x, {.window = 4});
  const Tensor x = random_numbers(net.x.shape(), 1), most = net.run(largest), middle = net.run(mean);
  ASSERT_EQ(most.shape(), (Shape{kBatch, 5, kIn}));
  ASSERT_EQ(middle.shape(), (Shape{kBatch, 2, kIn}));
  const auto at = [&](std::int64_t n, std::int64_t step, std::int64_t c) {
    return x.data<float>()[(n * kSteps + step) * kIn + c];
  };
  for (std::int64_t n = 0; n < kBatch; ++n)
    for (std::int64_t c = 0; c < kIn; ++c) {
      for (std::int64_t s = 0; s < 5; ++s)
        EXPECT_EQ(most.data<float>()[(n * 5 + s) * kIn + c],
                  std::max({at(n, 2 * s, c), at(n, 2 * s + 1, c), at(n, 2 * s + 2, c)}));
      for (std::int64_t s = 0; s < 2; ++s)
        EXPECT_NEAR(middle.data<float>()[(n * 2 + s) * kIn + c],
                    (at(n, 4 * s, c) + at(n, 4 * s + 1, c) + at(n, 4 * s + 2, c) + at(n, 4 * s + 3, c)) / 4, 1e-6);
    }
}

TEST(Sequences, ReshapesDoNotPileUp) {
  Net net;
  const Output a = conv1d(net.graph, "a", net.x, net.filter("v", {3, 1, kIn, kIn}));
  const Output b = max_pool1d(net.graph, "b", a);
  EXPECT_EQ(a.name(), "a/steps");
  EXPECT_EQ(b.name(), "b/steps");
  EXPECT_EQ(net.graph.at("a").input(0).name(), "a/image");
  EXPECT_EQ(net.graph.at("b").input(0).name(), "a");
  EXPECT_EQ(net.graph.find("b/image"), nullptr);
  // Another function of the steps stays between.
  const Output c = avg_pool1d(net.graph, "c", relu(net.graph, "relu", b));
  EXPECT_EQ(net.graph.at("c").input(0).name(), "c/image");
  // And so does a Reshape of something else.
  const Output other = reshape(net.graph, "other", c, {.shape = {-1, 1, 2 * kIn}});
  max_pool1d(net.graph, "d", other, {.window = 1});
  EXPECT_EQ(net.graph.at("d").input(0).name(), "d/image");
}

TEST(Sequences, OthersAreRefused) {
  Net net;
  const Output images = placeholder(net.graph, "images", {2, 4, 4, 3}), w = net.filter("w", {3, 1, kIn, 4});
  const auto refusal = [&](const auto& build) { return testing::error_of(build); };
  EXPECT_EQ(refusal([&] { conv1d(net.graph, "y", images, w); }),
            "\"y\" takes a sequence [n, steps, channels], got images [2,4,4,3]");
  EXPECT_EQ(refusal([&] {
              depthwise_conv1d(net.graph, "y", net.x, net.filter("flat", {3, kIn, 4}));
            }),
            "\"y\" takes a filter [k, 1, in, out], got flat [3,3,4]");
  EXPECT_EQ(refusal([&] {
              conv1d(net.graph, "y", net.x, net.filter("square", {3, 3, kIn, 4}));
            }),
            "\"y\" takes a filter [k, 1, in, out], got square [3,3,3,4]");
  // Nothing is left of what the op refuses.
  EXPECT_EQ(refusal([&] { conv1d(net.graph, "y", net.x, w, {.stride = 0}); }).substr(0, 12), "[Conv2D \"y\"]");
  EXPECT_EQ(net.graph.find("y/image"), nullptr);
}

}  // namespace
}  // namespace miniqat::layers::sequences_test
