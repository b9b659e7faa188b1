#include "layers/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/engine/session.h"
#include "core/text/error.h"
#include "layers/kernels/broadcast.h"
#include "layers/layers.h"

namespace miniqat::elementwise_test {
namespace {

struct ValueAndGradient {
  std::vector<float> y;
  std::vector<float> d_x;
};

/// Runs one op on a vector and differentiates the sum of its output.
template <class Build>
ValueAndGradient evaluate(const std::vector<float>& values, Backend backend, const Build& build) {
  Graph graph;
  const Output x = layers::placeholder(graph, "x", {static_cast<std::int64_t>(values.size())});
  const Output y = build(graph, x);
  Session session(graph, {.backend = backend});
  const RunResult run = session.run({.fetches = {y}, .gradients_of = y, .gradient_targets = {x}, .training = true},
                                    {{x, Tensor::from(x.shape(), values)}});
  const auto vector = [](const Tensor& tensor) {
    const std::span<const float> span = tensor.values<float>();
    return std::vector<float>(span.begin(), span.end());
  };
  return {vector(run.fetched[0]), vector(run.gradients[0])};
}

class BackendTest : public ::testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(Both, BackendTest, ::testing::Values(Backend::kFast, Backend::kReference));

// Both operands are one tensor: the gradients of both uses must be added, also when the op runs in place.
TEST_P(BackendTest, SameTensorTwice) {
  const std::vector<float> x = {-2, 0, 3};
  const auto run = [&](const auto& builder) {
    return evaluate(x, GetParam(), [&](Graph& graph, Output input) {
      const Output shifted = layers::add(graph, "shifted", input, layers::constant(graph, "one", {}, {1}));
      return builder(graph, "op", shifted, shifted);
    });
  };
  EXPECT_EQ(run(layers::mul).y, (std::vector<float>{1, 1, 16}));
  EXPECT_EQ(run(layers::mul).d_x, (std::vector<float>{-2, 2, 8}));
  EXPECT_EQ(run(layers::add).d_x, (std::vector<float>{2, 2, 2}));
  EXPECT_EQ(run(layers::sub).d_x, (std::vector<float>{0, 0, 0}));
}

TEST(BroadcastShapesTest, FollowsNumPy) {
  EXPECT_EQ(layers::broadcast_shapes({}, {}), Shape{});
  EXPECT_EQ(layers::broadcast_shapes({3}, {}), Shape({3}));
  EXPECT_EQ(layers::broadcast_shapes({8, 1, 6, 1}, {7, 1, 5}), Shape({8, 7, 6, 5}));
  EXPECT_EQ(layers::broadcast_shapes({0, 3}, {1, 3}), Shape({0, 3}));
  EXPECT_EQ(layers::broadcast_shapes({1}, {0}), Shape({0}));
}

TEST(BroadcastShapesTest, RefusesOthersWithBothShapes) {
  try {
    layers::broadcast_shapes({2, 3}, {2, 4});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "shapes don't broadcast: axis 1 is 3 in one and 4 in the other; inputs [2,3], [2,4]");
  }
  EXPECT_THROW(layers::broadcast_shapes({2}, {3}), Error);
  EXPECT_THROW(layers::broadcast_shapes({0}, {2}), Error);
  EXPECT_THROW(layers::broadcast_shapes({1 << 20, 1}, {1 << 20}), Error) << "more elements than a tensor may have";
}

// Cutting the walk anywhere must give the same pairs of elements: threads cut it in the middle of rows.
TEST(BroadcastLoopTest, StretchesMayBeginAnywhere) {
  const layers::BroadcastLoop loop({2, 1, 3, 4}, {5, 3, 1});
  std::vector<std::pair<std::int64_t, std::int64_t>> whole(loop.elements());
  const auto walk = [&](std::int64_t begin, std::int64_t end, auto& pairs) {
    loop.with_steps([&](auto a_step, auto b_step) {
      loop.stretches(begin, end, [&](std::int64_t i, std::int64_t a, std::int64_t b, std::int64_t length) {
        for (std::int64_t k = 0; k < length; ++k) pairs[i + k] = {a + k * a_step, b + k * b_step};
      });
    });
  };
  walk(0, loop.elements(), whole);
  EXPECT_EQ(loop.elements(), 2 * 5 * 3 * 4);
  EXPECT_EQ(whole[0], std::make_pair(std::int64_t{0}, std::int64_t{0}));
  EXPECT_EQ(whole.back(), std::make_pair(std::int64_t{23}, std::int64_t{14}));
  EXPECT_EQ(whole[60 + 12 + 4 + 1], std::make_pair(std::int64_t{12 + 4 + 1}, std::int64_t{3 + 1}))
      << "element [1,1,1,1]";
  for (std::int64_t cut = 0; cut <= loop.elements(); ++cut) {
    auto pieces = whole;
    std::ranges::fill(pieces, std::make_pair(std::int64_t{-1}, std::int64_t{-1}));
    walk(0, cut, pieces);
    walk(cut, loop.elements(), pieces);
    ASSERT_EQ(pieces, whole) << "cut at " << cut;
  }
}

// A float sum of many equal numbers stops growing; ours may not.
TEST(ElementwiseTest, GradientOfAStretchedScalarIsAccurate) {
  constexpr std::int64_t kCount = 20'000'000;
  Graph graph;
  const Output x = layers::placeholder(graph, "x", {kCount});
  const Output s = layers::placeholder(graph, "s", {});
  const Output y = layers::add(graph, "y", x, s);
  Session session(graph);
  const RunResult run = session.run({.fetches = {}, .gradients_of = y, .gradient_targets = {s}},
                                    {{x, Tensor(Shape{kCount})}, {s, Tensor::scalar(0.0f)}});
  EXPECT_EQ(*run.gradients[0].data<float>(), static_cast<float>(kCount));
}

}  // namespace
}  // namespace miniqat::elementwise_test
