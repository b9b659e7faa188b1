#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "layers/activations.h"
#include "quantize/quantize.h"
#include "tests/importers/onnx/node_chain.h"
#include "tests/quantize/convert/trained_integers.h"

// Ops by known numbers.
// Pools by their definition: which zeros around the image count, and how many windows there are.

namespace miniqat::importers::import_test {
namespace {

using testing::mentions;

TEST(ImportOps, LeakyReluHasItsSlope) {
  for (const float alpha : {0.25F, 0.0F}) {
    NodeChain net({1, 2, 1, 3});
    set_number(net.add("LeakyRelu"), "alpha", alpha);
    ImportedModel model = net.import();
    EXPECT_EQ(model.graph.outputs()[0].node->type(), alpha == 0 ? "Relu" : "LeakyRelu");
    const Tensor y =
        result_of(model, Tensor::from<float>({1, 1, 3, 2}, std::vector{-4.0F, 4.0F, -1.0F, 0.0F, 7.0F, -8.0F}));
    EXPECT_EQ(values_of(y), (std::vector<float>{-4 * alpha, 4, -1 * alpha, 0, 7, -8 * alpha}));
  }
  NodeChain usual({1, 2});
  usual.add("LeakyRelu");
  EXPECT_EQ(usual.import().graph.outputs()[0].node->as<layers::LeakyRelu>()->alpha, 0.01F);
  NodeChain negative({1, 2});
  set_number(negative.add("LeakyRelu"), "alpha", -0.5F);
  EXPECT_TRUE(mentions(negative.refusal(), {"[LeakyRelu \"the_LeakyRelu\"]", "alpha"}));
}

/// Number (n, c, h, w) of images that are [n, h, w, c] here.
float at(const Tensor& images, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  const Shape& shape = images.shape();
  return images.data<float>()[((n * shape[1] + h) * shape[2] + w) * shape[3] + c];
}

/// Number i of a constant of NodeChain.
float weight(std::int64_t i) { return static_cast<float>(i % 7) - 3; }

/// Conv of `groups` groups by its definition: kernels 3 x 2, strides 2 and 1, pads 1, 0, 0, 1.
float convolved(const Tensor& x, std::int64_t groups, std::int64_t outputs, std::int64_t n, std::int64_t o,
                std::int64_t h, std::int64_t w) {
  const std::int64_t inputs = x.shape()[3] / groups, first = o / (outputs / groups) * inputs;
  float sum = 0;
  for (std::int64_t c = 0; c < inputs; ++c)
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t j = 0; j < 2; ++j) {
        const std::int64_t row = 2 * h - 1 + i, column = w + j;
        if (row >= 0 && row < x.shape()[1] && column < x.shape()[2])
          sum += at(x, n, first + c, row, column) * weight(((o * inputs + c) * 3 + i) * 2 + j);
      }
  return sum;
}

/// With a bias, a batch norm or neither, and a function behind it: each group has its own of all.
TEST(ImportOps, AConvOfGroups) {
  for (const std::int64_t groups : {2, 3})
    for (const bool norm : {false, true}) {
      constexpr std::int64_t kOutputs = 12;
      NodeChain net({2, 6, 5, 3});
      net.constant("w", {kOutputs, 6 / groups, 3, 2});
      net.constant("bias", {kOutputs});
      for (const char* name : {"gamma", "beta", "mean"}) net.constant(name, {kOutputs});
      net.constant("variance", {kOutputs}).clear_float_data();
      for (int o = 0; o < kOutputs; ++o) net.graph().mutable_initializer(5)->add_float_data(3.0F);
      pb::Node& conv = net.add("Conv", {"w", "bias"});
      set_int(conv, "group", groups);
      set_ints(conv, "strides", {2, 1});
      set_ints(conv, "pads", {1, 0, 0, 1});
      if (norm) net.add("BatchNormalization", {"gamma", "beta", "mean", "variance"});
      set_number(net.add("LeakyRelu"), "alpha", 0.5F);
      net.add("Relu");
      ImportedModel model = net.import();
      const Node& joined = *model.graph.outputs()[0].node;
      EXPECT_EQ(joined.type(), "Concat") << "once, behind all that treats each channel by itself";
      ASSERT_EQ(joined.inputs().size(), static_cast<std::size_t>(groups));
      EXPECT_EQ(joined.input(0).node->type(), "Relu");
      Graph rewritten = model.graph.clone();
      const quantize::RewriteReport report = quantize::create_training_graph(rewritten, {});
      for (const quantize::BatchNormReport& each : report.batch_norms) EXPECT_TRUE(each.folded) << each.text;
      EXPECT_EQ(std::ssize(report.batch_norms), norm ? groups : 0);
      const Tensor x = counted_images({2, 5, 3, 6}), y = result_of(model, x);
      ASSERT_EQ(y.shape(), (Shape{2, 2, 3, kOutputs}));
      for (std::int64_t n = 0; n < 2; ++n)
        for (std::int64_t o = 0; o < kOutputs; ++o)
          for (std::int64_t h = 0; h < 2; ++h)
            for (std::int64_t w = 0; w < 3; ++w) {
              float sum = convolved(x, groups, kOutputs, n, o, h, w) + weight(o);
              if (norm) sum = (sum - weight(o)) / std::sqrt(3 + 1e-5F) * weight(o) + weight(o);
              ASSERT_NEAR(at(y, n, o, h, w), std::max(sum, 0.0F), 2e-5 * std::abs(sum) + 1e-3)
                  << groups << " groups, output " << o;
            }
    }
}

TEST(ImportOps, GroupsAreJoinedOnceForAllReaders) {
  NodeChain net({1, 4, 3, 3});
  net.constant("w", {4, 2, 1, 1});
  set_int(net.add("Conv", {"w"}), "group", 2);
  const std::string conv = net.last;
  net.add("Relu");
  net.add("Add", {conv});
  net.add("Mul", {conv});
  ImportedModel model = net.import();
  int joined = 0;
  for (const Node* node : model.graph.nodes()) joined += node->type() == "Concat" ? 1 : 0;
  EXPECT_EQ(joined, 2) << "the sums, and the Relus";
  const Tensor x = counted_images({1, 3, 3, 4}), y = result_of(model, x);
  for (std::int64_t o = 0; o < 4; ++o) {
    const std::int64_t first = o / 2 * 2;
    const float sum = at(x, 0, first, 2, 1) * weight(2 * o) + at(x, 0, first + 1, 2, 1) * weight(2 * o + 1);
    EXPECT_EQ(at(y, 0, o, 2, 1), (std::max(sum, 0.0F) + sum) * sum);
  }
}

TEST(ImportOps, LargestNumbersOfImages) {
  for (const char* type : {"GlobalMaxPool", "ReduceMax"}) {
    const bool reduces = type == std::string("ReduceMax");
    for (const std::int64_t opset : {13, 18}) {
      NodeChain net({2, 3, 5, 7}, opset);
      if (reduces && opset == 18) net.integers("axes", {-1, 2});
      pb::Node& node = reduces && opset == 18 ? net.add(type, {"axes"}) : net.add(type);
      if (reduces && opset == 13) set_ints(node, "axes", {2, 3});
      if (reduces) set_int(node, "keepdims", opset == 13 ? 1 : 0);
      ImportedModel model = net.import();
      Tensor x = counted_images({2, 5, 7, 3});
      x.data<float>()[3 * 17 + 1] = 1000;
      const Tensor y = result_of(model, x);
      EXPECT_EQ(y.shape(), reduces && opset == 18 ? (Shape{2, 3}) : (Shape{2, 1, 1, 3}));
      EXPECT_EQ(values_of(y), (std::vector<float>{102, 1000, 104, 207, 208, 209})) << type << " " << opset;
    }
  }
  NodeChain rows({2, 3});
  set_ints(rows.add("ReduceMax"), "axes", {1});
  EXPECT_TRUE(mentions(rows.refusal(), {"[ReduceMax \"the_ReduceMax\"]", "height and width"}));
}

struct PoolCase {
  std::int64_t window, stride;
  /// Top, left, bottom, right.
  std::array<std::int64_t, 4> pads;
  bool ceils, counts;
};

/// Along one axis. With ceil_mode a last window that is not whole is one, too, unless it begins behind the image.
std::int64_t windows_of(const PoolCase& c, std::int64_t size, std::int64_t before, std::int64_t after) {
  std::int64_t windows = 0;
  for (std::int64_t start = -before; start <= size + after; start += c.stride) {
    const bool whole = start + c.window <= size + after;
    if (whole || (c.ceils && start < size && start + c.window - c.stride < size + after)) ++windows;
  }
  return windows;
}

/// One mean of x [1, h, w, 1].
float mean_of(const PoolCase& c, const Tensor& x, std::int64_t top, std::int64_t left) {
  const std::int64_t h = x.shape()[1], w = x.shape()[2];
  double sum = 0, count = 0;
  for (std::int64_t y = top; y < top + c.window; ++y)
    for (std::int64_t z = left; z < left + c.window; ++z) {
      const bool in_image = y >= 0 && y < h && z >= 0 && z < w;
      const bool in_border = y >= -c.pads[0] && y < h + c.pads[2] && z >= -c.pads[1] && z < w + c.pads[3];
      if (in_image) sum += x.data<float>()[y * w + z];
      if (c.counts ? in_border : in_image) ++count;
    }
  return static_cast<float>(sum / count);
}

void expect_means(const PoolCase& c) {
  NodeChain net({1, 1, 10, 12});
  pb::Node& pool = net.add("AveragePool");
  set_ints(pool, "kernel_shape", {c.window, c.window});
  set_ints(pool, "strides", {c.stride, c.stride});
  set_ints(pool, "pads", {c.pads.begin(), c.pads.end()});
  set_int(pool, "ceil_mode", c.ceils ? 1 : 0);
  set_int(pool, "count_include_pad", c.counts ? 1 : 0);
  ImportedModel model = net.import();
  const Tensor x = counted_images({1, 10, 12, 1}), y = result_of(model, x);
  const std::int64_t rows = windows_of(c, 10, c.pads[0], c.pads[2]), columns = windows_of(c, 12, c.pads[1], c.pads[3]);
  ASSERT_EQ(y.shape(), (Shape{1, rows, columns, 1}));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      ASSERT_NEAR(y.data<float>()[i * columns + j], mean_of(c, x, i * c.stride - c.pads[0], j * c.stride - c.pads[1]),
                  1e-4)
          << i << " " << j;
}

TEST(ImportPools, AveragesOverEveryPaddingAndRounding) {
  for (const bool ceils : {false, true})
    for (const bool counts : {false, true})
      for (const auto& [window, stride] : {std::pair{3, 2}, {2, 2}, {2, 3}, {3, 4}, {5, 3}})
        for (const std::array<std::int64_t, 4>& pads :
             {std::array<std::int64_t, 4>{0, 0, 0, 0}, {1, 1, 1, 1}, {1, 0, 0, 1}, {0, 0, 1, 0}}) {
          SCOPED_TRACE(concat("window ", window, " stride ", stride, " pads ", pads[0], pads[1], pads[2], pads[3],
                              ceils ? " ceil_mode" : "", counts ? " count_include_pad" : ""));
          expect_means({window, stride, pads, ceils, counts});
        }
}

/// As pixels of no image, nothing may be made of attributes that change nothing.
TEST(ImportPools, WithoutPadsNothingIsPadded) {
  for (const bool ceils : {false, true}) {
    NodeChain net({1, 1, 10, 12});
    pb::Node& pool = net.add("AveragePool");
    set_ints(pool, "kernel_shape", {3, 3});
    set_ints(pool, "strides", {2, 2});
    set_int(pool, "ceil_mode", ceils ? 1 : 0);
    set_int(pool, "count_include_pad", 1);
    const ImportedModel model = net.import();
    EXPECT_EQ(model.graph.size(), 2U);
    EXPECT_EQ(model.graph.outputs()[0].shape(), ceils ? (Shape{1, 5, 6, 1}) : (Shape{1, 4, 5, 1}));
  }
}

TEST(ImportPools, AveragesBecomeIntegers) {
  for (const bool padded : {false, true}) {
    NodeChain net({4, 3, 8, 8});
    net.constant("w", {6, 3, 3, 3}), net.constant("dense", {6, 5});
    net.add("Conv", {"w"});
    pb::Node& pool = net.add("AveragePool");
    set_ints(pool, "kernel_shape", {3, 3});
    set_ints(pool, "strides", {2, 2});
    if (padded) set_ints(pool, "pads", {1, 0, 0, 0});
    set_int(pool, "ceil_mode", 1);
    set_int(pool, "count_include_pad", 1);
    net.add("GlobalAveragePool");
    net.add("Flatten");
    net.add("MatMul", {"dense"});
    testing::expect_trained_integers(net.import().graph);
  }
}

}  // namespace

}  // namespace miniqat::importers::import_test
