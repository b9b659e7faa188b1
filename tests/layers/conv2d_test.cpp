#include "layers/conv2d.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/tensors/random.h"
#include "core/text/error.h"
#include "tests/layers/convolution_case.h"
#include "tests/layers/op_runner.h"
#include "tests/thread_counts.h"

namespace miniqat::layers::conv2d_test {
namespace {

using testing::expect_fast_is_reference;
using testing::inference_error;
using testing::random_tensor;
using testing::run_op;
using testing::with_thread_counts;

using Case = testing::ConvolutionCase;

std::vector<Case> cases() {
  const auto valid = Padding::kValid;
  const auto exact = Padding::kExplicit;
  return {
      {{2, 7, 6}, {3, 3}, {}},
      {{1, 9, 9}, {5, 5}, {}},
      {{2, 8, 8}, {5, 5}, {.padding = valid}},
      {{2, 8, 7}, {3, 3}, {.strides = {2, 2}}},
      {{1, 9, 8}, {3, 2}, {.strides = {2, 3}, .padding = valid}},
      {{3, 5, 5}, {1, 1}, {}},
      {{1, 6, 6}, {1, 1}, {.strides = {2, 2}}},
      {{1, 7, 7}, {2, 2}, {.strides = {3, 3}}},
      {{2, 9, 9}, {3, 3}, {.dilations = {2, 2}}},
      {{1, 9, 7}, {2, 3}, {.padding = valid, .dilations = {3, 2}}},
      {{1, 9, 9}, {3, 3}, {.strides = {2, 2}, .dilations = {2, 2}}},
      {{4, 1, 1}, {1, 1}, {}},
      {{2, 1, 1}, {3, 3}, {}},
      {{1, 2, 3}, {7, 7}, {}},
      {{1, 2, 2}, {5, 5}, {.strides = {2, 2}}},
      {{2, 4, 1}, {3, 1}, {}},
      {{1, 3, 3}, {2, 4}, {}},
      {{2, 8, 6}, {3, 3}, {.strides = {2, 2}, .padding = exact, .pads = {1, 1, 1, 1}}},
      {{1, 6, 7}, {4, 3}, {.padding = exact, .pads = {3, 0, 2, 2}}},
      {{1, 7, 5}, {3, 2}, {.strides = {1, 3}, .padding = exact, .dilations = {2, 3}, .pads = {1, 3, 4, 0}}},
      {{2, 1, 2}, {5, 5}, {.padding = exact, .pads = {4, 3, 0, 3}}},
  };
}

using Channels = std::pair<std::int64_t, std::int64_t>;

/// Runs check(case, channels) on all cases with three of the channel pairs each, every time others: oneDNN
/// generates code for every combination, and all of them would take long.
template <class Check>
void for_each_case(const std::vector<Channels>& channels, const Check& check) {
  std::size_t next = 0;
  for (const Case& c : cases())
    for (int i = 0; i < 3; ++i) check(c, channels[next++ % channels.size()]);
}

TEST(Conv2d, FastIsReference) {
  for_each_case({{1, 8}, {3, 17}, {8, 1}, {17, 32}, {32, 3}}, [](const Case& c, const Channels& channels) {
    const auto [in, out] = channels;
    expect_fast_is_reference(Conv2d::make(c.attributes),
                             {random_tensor(c.x(in), 1), random_tensor(c.filter(in, out), 2)}, c.text(in, out));
  });
}

TEST(DepthwiseConv2d, FastIsReference) {
  for_each_case({{1, 1}, {3, 1}, {17, 1}, {32, 1}, {8, 2}, {3, 3}, {1, 8}},
                [](const Case& c, const Channels& channels) {
                  const auto [in, multiplier] = channels;
                  expect_fast_is_reference(DepthwiseConv2d::make(c.attributes),
                                           {random_tensor(c.x(in), 1), random_tensor(c.filter(in, multiplier), 2)},
                                           "depthwise " + c.text(in, multiplier));
                });
}

// A 1x1 filter with many channels over few pixels is a product of matrices.
TEST(Conv2d, LargePointwiseFiltersAreProducts) {
  for (const auto& [shape, in, out] : std::vector<std::tuple<std::array<std::int64_t, 3>, std::int64_t, std::int64_t>>{
           {{2, 2, 2}, 16, 3}, {{1, 1, 1}, 7, 33}, {{3, 2, 1}, 24, 40}, {{2, 3, 2}, 33, 16}})
    for (const std::int64_t stride : {1, 2})
      expect_fast_is_reference(
          Conv2d::make({.strides = {stride, stride}}),
          {random_tensor({shape[0], shape[1], shape[2], in}, 1), random_tensor({1, 1, in, out}, 2)},
          miniqat::concat(shape[0], "x", shape[1], "x", shape[2], ", ", in, " to ", out, ", stride ", stride));
}

// 3x3 filters of many channels over enough pictures take layers/kernels/winograd.h.
TEST(Conv2d, LargeFiltersOfManyPictures) {
  for (const auto& [shape, in, out] : std::vector<std::tuple<std::array<std::int64_t, 3>, std::int64_t, std::int64_t>>{
           {{4, 8, 8}, 32, 32}, {{9, 7, 7}, 64, 32}, {{3, 10, 8}, 16, 16}, {{2, 8, 8}, 32, 64}})
    for (const Padding padding : {Padding::kSame, Padding::kValid})
      expect_fast_is_reference(
          Conv2d::make({.padding = padding}),
          {random_tensor({shape[0], shape[1], shape[2], in}, 1), random_tensor({3, 3, in, out}, 2)},
          miniqat::concat(shape[0], "x", shape[1], "x", shape[2], ", ", in, " to ", out));
}

TEST(Conv2d, RepeatsBitwise) {
  const std::vector<Tensor> inputs = {random_tensor({8, 14, 14, 8}, 1), random_tensor({5, 5, 8, 16}, 2)};
  const Tensor d_y = random_tensor({8, 14, 14, 16}, 3);
  const auto first = run_op(Conv2d::make(), inputs, {d_y});
  const auto second = run_op(Conv2d::make(), inputs, {d_y});
  const auto same = [](const Tensor& a, const Tensor& b) {
    return std::ranges::equal(a.values<float>(), b.values<float>());
  };
  EXPECT_TRUE(same(first.outputs[0], second.outputs[0]));
  EXPECT_TRUE(same(first.d_inputs[0], second.d_inputs[0]));
  EXPECT_TRUE(same(first.d_inputs[1], second.d_inputs[1]));
}

TEST(Conv2d, AnyThreadCount) {
  with_thread_counts([] {
    expect_fast_is_reference(Conv2d::make(), {random_tensor({3, 6, 6, 8}, 1), random_tensor({3, 3, 8, 16}, 2)},
                             miniqat::concat(thread_count(), " threads"));
  });
}

TEST(Conv2d, PointwiseWithStridesOnSeveralThreads) {
  with_thread_counts([] {
    for (const auto& [in, out] : {std::pair(5, 3), std::pair(16, 32), std::pair(24, 40)})
      expect_fast_is_reference(Conv2d::make({.strides = {2, 2}}),
                               {random_tensor({13, 32, 32, in}, 1), random_tensor({1, 1, in, out}, 2)},
                               miniqat::concat(in, " to ", out, " channels, ", thread_count(), " threads"));
  });
}

struct PointwiseCase {
  int threads;
  Case c;
  std::int64_t in, out;
};

/// With these, oneDNN 2.6's gradient of the filter was wrong, wrote past its buffers or never ended: the first with
/// AVX2, the second with AVX-512, some with both.
std::vector<PointwiseCase> strided_pointwise_cases() {
  const auto valid = Padding::kValid;
  const std::array<std::int64_t, 2> one = {1, 1};
  return {
      {3, {{32, 14, 12}, one, {.strides = {2, 2}}}, 3, 64},
      {1, {{1, 16, 15}, one, {.strides = {2, 1}}}, 2, 5},
      {1, {{2, 5, 6}, one, {.strides = {1, 2}, .dilations = {3, 3}}}, 4, 32},
      {1, {{27, 12, 4}, one, {.strides = {2, 1}, .padding = valid, .dilations = {3, 1}}}, 1, 65},
      {2, {{4, 15, 12}, one, {.strides = {3, 3}, .padding = valid, .dilations = {3, 1}}}, 1, 8},
      {2, {{8, 9, 11}, one, {.strides = {2, 2}, .dilations = {2, 2}}}, 3, 16},
      {7, {{1, 11, 6}, one, {.strides = {1, 3}, .padding = valid}}, 3, 5},
      {8, {{6, 6, 11}, one, {.strides = {2, 1}}}, 1, 8},
      {2, {{5, 18, 15}, one, {.strides = {2, 1}, .padding = valid}}, 8, 32},
      {2, {{25, 28, 28}, one, {.strides = {2, 2}}}, 8, 16},
      {6, {{32, 14, 14}, one, {.strides = {2, 2}}}, 8, 16},
      {5, {{6, 4, 14}, one, {.strides = {1, 2}, .dilations = {2, 1}}}, 2, 3},
      {5, {{3, 10, 12}, one, {.strides = {2, 1}}}, 8, 1},
      {7, {{1, 16, 3}, one, {.strides = {2, 1}, .dilations = {1, 3}}}, 8, 1},
      {3, {{14, 9, 15}, one, {.strides = {3, 1}}}, 9, 33},
      {4, {{5, 17, 3}, one, {.strides = {1, 3}, .dilations = {3, 1}}}, 1, 2},
      // Extents of 1, of the images or of the window only.
      {4, {{7, 1, 13}, one, {.strides = {2, 2}}}, 8, 17},
      {4, {{7, 3, 3}, one, {.strides = {3, 3}}}, 3, 8},
      {8, {{5, 9, 13}, {1, 3}, {.strides = {2, 1}}}, 8, 16},
      {3, {{5, 9, 13}, {3, 1}, {.strides = {1, 2}, .dilations = {2, 3}}}, 3, 16},
  };
}

void on_threads(int threads, const std::function<void()>& body) {
  const int before = thread_count();
  set_thread_count(threads);
  body();
  set_thread_count(before);
}

TEST(Conv2d, StridedPointwiseCasesThatOneDnnGotWrong) {
  for (const auto& [threads, c, in, out] : strided_pointwise_cases())
    on_threads(threads, [&, &c = c, in = in, out = out] {
      expect_fast_is_reference(Conv2d::make(c.attributes),
                               {random_tensor(c.x(in), 1), random_tensor(c.filter(in, out), 2)}, c.text(in, out));
    });
}

TEST(DepthwiseConv2d, StridedPointwiseCasesThatOneDnnGotWrong) {
  for (const auto& [threads, c, in, out] : strided_pointwise_cases())
    for (const auto& [channels, multiplier] : {std::pair(std::int64_t{1}, out), std::pair(in, std::int64_t{1})})
      on_threads(threads, [&, &c = c, channels = channels, multiplier = multiplier] {
        expect_fast_is_reference(DepthwiseConv2d::make(c.attributes),
                                 {random_tensor(c.x(channels), 1), random_tensor(c.filter(channels, multiplier), 2)},
                                 "depthwise " + c.text(channels, multiplier));
      });
}

// Over odd shapes: the wrong kernels were right most of the time.
TEST(Conv2d, StridedPointwiseOverOddShapes) {
  constexpr std::array<std::int64_t, 10> kChannels = {1, 2, 3, 4, 5, 7, 8, 9, 16, 33};
  Random random(13);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
  for (int threads = 1; threads <= 8; ++threads)
    on_threads(threads, [&] {
      for (int i = 0; i < 6; ++i) {
        const Case c = {{1 + below(12), 1 + below(17), 1 + below(17)},
                        {1, 1},
                        {.strides = {1 + below(3), 2 + below(2)}, .dilations = {1 + below(3), 1}}};
        const std::int64_t in = kChannels[below(10)], out = kChannels[below(10)];
        expect_fast_is_reference(Conv2d::make(c.attributes),
                                 {random_tensor(c.x(in), 1), random_tensor(c.filter(in, out), 2)}, c.text(in, out));
      }
    });
}

TEST(Conv2d, CountsMultiplyAdds) {
  const std::vector<TensorSpec> specs = {{Shape{2, 28, 28, 8}}, {Shape{5, 5, 8, 16}}};
  EXPECT_EQ(multiply_adds_of(*Conv2d::make(), specs), 2 * 28 * 28 * 16 * 25 * 8);
  const std::vector<TensorSpec> depthwise = {{Shape{2, 28, 28, 8}}, {Shape{3, 3, 8, 2}}};
  EXPECT_EQ(multiply_adds_of(*DepthwiseConv2d::make({.strides = {2, 2}}), depthwise), 2 * 14 * 14 * 16 * 9);
}

TEST(Conv2d, RefusesMismatchedChannels) {
  const std::string text = "filter expects 16 input channels, input has 8; input [32,28,28,8], filter [5,5,16,32]";
  EXPECT_EQ(inference_error(Conv2d::make(), {{32, 28, 28, 8}, {5, 5, 16, 32}}), text);
  EXPECT_EQ(inference_error(DepthwiseConv2d::make(), {{32, 28, 28, 8}, {5, 5, 16, 32}}), text);
}

TEST(Conv2d, RefusesEmptyInputsAndTooSmallImages) {
  EXPECT_NE(inference_error(Conv2d::make(), {{0, 28, 28, 8}, {5, 5, 8, 16}}).find("empty"), std::string::npos);
  EXPECT_NE(inference_error(Conv2d::make(), {{1, 28, 28, 8}, {5, 5, 8, 0}}).find("empty"), std::string::npos);
  EXPECT_NE(
      inference_error(Conv2d::make({.padding = Padding::kValid}), {{1, 3, 3, 8}, {5, 5, 8, 16}}).find("[1,3,3,8]"),
      std::string::npos);
  EXPECT_NE(inference_error(Conv2d::make(), {{28, 28, 8}, {5, 5, 8, 16}}).find("rank 4"), std::string::npos);
}

}  // namespace
}  // namespace miniqat::layers::conv2d_test
