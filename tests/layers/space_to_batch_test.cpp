#include "layers/space_to_batch.h"

#include <gtest/gtest.h>

#include "core/engine/session.h"
#include "layers/layers.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::space_to_batch_test {
namespace {

using testing::random_tensor;

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
