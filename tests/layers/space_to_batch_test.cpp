#include "layers/space_to_batch.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/engine/session.h"
#include "layers/layers.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::space_to_batch_test {
namespace {

using testing::expect_values;
using testing::random_tensor;
using testing::run_op;

Tensor counted(const Shape& shape) {
  Tensor tensor(shape);
  std::iota(tensor.values<float>().begin(), tensor.values<float>().end(), 1.0f);
  return tensor;
}

TEST(SpaceToBatch, OffsetsComeBeforeImages) {
  // Two images of 2x4 pixels, 1..8 and 9..16.
  const Tensor x = counted({2, 2, 4, 1});
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    const Tensor y = run_op(SpaceToBatchNd::make({.block_shape = {2, 2}}), {x}, {}, backend).outputs[0];
    EXPECT_EQ(y.shape(), (Shape{8, 1, 2, 1}));
    expect_values(y, {1, 3, 9, 11, 2, 4, 10, 12, 5, 7, 13, 15, 6, 8, 14, 16});
    expect_values(run_op(BatchToSpaceNd::make({.block_shape = {2, 2}}), {y}, {}, backend).outputs[0],
                  {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  }
}

TEST(SpaceToBatch, ChannelsStayTogether) {
  const Tensor x = counted({1, 2, 2, 3});
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    const Tensor y = run_op(SpaceToBatchNd::make({.block_shape = {1, 2}}), {x}, {}, backend).outputs[0];
    EXPECT_EQ(y.shape(), (Shape{2, 2, 1, 3}));
    expect_values(y, {1, 2, 3, 7, 8, 9, 4, 5, 6, 10, 11, 12});
  }
}

TEST(SpaceToBatch, PaddingsAreZerosAndCropsUndoThem) {
  const Tensor x = counted({1, 2, 3, 1});
  const auto deal = SpaceToBatchNd::make({.block_shape = {3, 2}, .paddings = {{1, 0}, {0, 1}}});
  const auto collect = BatchToSpaceNd::make({.block_shape = {3, 2}, .crops = {{1, 0}, {0, 1}}});
  for (const Backend backend : {Backend::kFast, Backend::kReference}) {
    const auto dealt = run_op(deal, {x}, {counted({6, 1, 2, 1})}, backend);
    expect_values(dealt.outputs[0], {0, 0, 0, 0, 1, 3, 2, 0, 4, 6, 5, 0});
    expect_values(dealt.d_inputs[0], {5, 7, 6, 9, 11, 10});
    const auto collected = run_op(collect, {dealt.outputs[0]}, {x}, backend);
    expect_values(collected.outputs[0], {1, 2, 3, 4, 5, 6});
    expect_values(collected.d_inputs[0], {0, 0, 0, 0, 1, 3, 2, 0, 4, 6, 5, 0});
  }
}

/// Both ways to convolve with holes, on the same variables; the two weighted sums are differentiated.
struct Atrous {
  Atrous(const Shape& image, std::int64_t kernel, std::int64_t rate) {
    images = placeholder(graph, "images", image);
    filter = variable(graph, "filter", {kernel, kernel, image[3], 5});
    dilated = conv2d(graph, "dilated", images, filter, {.dilations = {rate, rate}});
    // SAME for the filter with its holes, and below and right what the blocks need to come out even.
    const std::int64_t same = (kernel - 1) * rate;
    std::vector<std::array<std::int64_t, 2>> paddings;
    std::vector<std::array<std::int64_t, 2>> crops;
    for (const std::int64_t extent : {image[1], image[2]}) {
      const std::int64_t extra = (rate - (extent + same) % rate) % rate;
      paddings.push_back({same / 2, same - same / 2 + extra});
      crops.push_back({0, extra});
    }
    const Output blocks = space_to_batch(graph, "deal", images, {.block_shape = {rate, rate}, .paddings = paddings});
    const Output convolved = conv2d(graph, "convolve", blocks, filter, {.padding = Padding::kValid});
    atrous = batch_to_space(graph, "collect", convolved, {.block_shape = {rate, rate}, .crops = crops});
    weights = placeholder(graph, "weights", dilated.shape());
  }

  Graph graph;
  Output images, filter, dilated, atrous, weights;
};

TEST(SpaceToBatch, AtrousConvolutionIsTheDilatedOne) {
  for (const std::int64_t rate : {1, 2, 3})
    for (const std::int64_t kernel : {2, 3})
      for (const Backend backend : {Backend::kFast, Backend::kReference}) {
        const std::string what = miniqat::concat("rate ", rate, ", kernel ", kernel);
        Atrous net({2, 9, 8, 4}, kernel, rate);
        ASSERT_EQ(net.atrous.shape(), net.dilated.shape()) << what;
        const Feeds feeds = {{net.images, random_tensor(net.images.shape(), 1)},
                             {net.weights, random_tensor(net.weights.shape(), 2)}};
        const Output sums[] = {mul(net.graph, "sum", net.dilated, net.weights),
                               mul(net.graph, "atrous_sum", net.atrous, net.weights)};
        Session session(net.graph, {.backend = backend});
        RunResult results[2];
        for (int k = 0; k < 2; ++k)
          results[k] = session.run({.fetches = {k == 0 ? net.dilated : net.atrous},
                                    .gradients_of = sums[k],
                                    .gradient_targets = {net.images, net.filter}},
                                   feeds);
        testing::expect_close(results[1].fetched[0], results[0].fetched[0], what + ", forward", 1e-5);
        testing::expect_close(results[1].gradients[0], results[0].gradients[0], what + ", d_images", 1e-5);
        testing::expect_close(results[1].gradients[1], results[0].gradients[1], what + ", d_filter", 1e-5);
      }
}

}  // namespace
}  // namespace miniqat::layers::space_to_batch_test
