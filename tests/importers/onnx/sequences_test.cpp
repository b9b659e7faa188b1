// Networks over [n, channels, steps]: they become images of width 1, and take and give [n, steps, channels].

#include <gtest/gtest.h>

#include <functional>

#include "tests/importers/onnx/node_chain.h"
#include "tests/quantize/convert/trained_integers.h"

namespace miniqat::importers::import_test {
namespace {

using testing::mentions;

/// Number (n, c, s) of sequences that are [n, steps, c] here.
double number_at(const Tensor& x, std::int64_t n, std::int64_t c, std::int64_t s) {
  return double{x.data<float>()[(n * x.shape()[1] + s) * x.shape()[2] + c]};
}

/// Number i of a constant of NodeChain.
double constant_at(std::int64_t i) { return static_cast<double>(i % 7) - 3; }

struct Conv1dCase {
  std::int64_t channels, outputs, groups, kernel, stride, dilation, before, after;
};

/// One number by the definition of ONNX's Conv.
double convolved_steps(const Conv1dCase& c, const Tensor& x, std::int64_t n, std::int64_t o, std::int64_t step) {
  const std::int64_t each = c.channels / c.groups, first = o / (c.outputs / c.groups) * each;
  double sum = 0;
  for (std::int64_t i = 0; i < each; ++i)
    for (std::int64_t k = 0; k < c.kernel; ++k) {
      const std::int64_t s = step * c.stride + k * c.dilation - c.before;
      if (s >= 0 && s < x.shape()[1]) sum += number_at(x, n, first + i, s) * constant_at((o * each + i) * c.kernel + k);
    }
  return sum;
}

TEST(ImportSequences, ConvolutionsByTheirDefinition) {
  for (const Conv1dCase& c : {Conv1dCase{3, 4, 1, 3, 1, 1, 0, 0},
                              {3, 4, 1, 3, 2, 1, 1, 1},
                              {4, 4, 4, 5, 1, 1, 2, 2},
                              {4, 8, 4, 3, 1, 1, 0, 0},
                              {4, 6, 2, 3, 1, 2, 4, 0},
                              {2, 3, 1, 1, 1, 1, 0, 0}}) {
    NodeChain net({2, c.channels, 9});
    net.constant("w", {c.outputs, c.channels / c.groups, c.kernel});
    net.constant("b", {c.outputs});
    pb::Node& conv = net.add("Conv", {"w", "b"});
    set_int(conv, "group", c.groups);
    set_ints(conv, "kernel_shape", {c.kernel});
    set_ints(conv, "strides", {c.stride});
    set_ints(conv, "dilations", {c.dilation});
    set_ints(conv, "pads", {c.before, c.after});
    ImportedModel model = net.import();
    const Tensor x = counted_images({2, 9, c.channels}), y = result_of(model, x);
    const std::int64_t steps = (9 + c.before + c.after - (c.kernel - 1) * c.dilation - 1) / c.stride + 1;
    ASSERT_EQ(y.shape(), (Shape{2, steps, c.outputs}));
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t o = 0; o < c.outputs; ++o)
        for (std::int64_t s = 0; s < steps; ++s)
          EXPECT_EQ(number_at(y, n, o, s), convolved_steps(c, x, n, o, s) + constant_at(o)) << c.groups << " " << s;
    EXPECT_TRUE(mentions(model.report.notes.at(0), {"[n, steps, c] in the graph"}));
  }
}

TEST(ImportSequences, PoolsAndMeansByTheirDefinition) {
  const auto pooled = [](const std::string& type, bool counts, bool ceils) {
    NodeChain net({1, 2, 5});
    pb::Node& pool = net.add(type);
    set_ints(pool, "kernel_shape", {3});
    set_ints(pool, "strides", {2});
    set_ints(pool, "pads", {1, 0});
    if (counts) set_int(pool, "count_include_pad", 1);
    if (ceils) set_int(pool, "ceil_mode", 1);
    ImportedModel model = net.import();
    return values_of(result_of(model, counted_images({1, 5, 2})));
  };
  EXPECT_EQ(pooled("MaxPool", false, false), (std::vector<float>{2, 3, 6, 7}));
  EXPECT_EQ(pooled("MaxPool", false, true), (std::vector<float>{2, 3, 6, 7, 8, 9}));
  EXPECT_EQ(pooled("AveragePool", false, false), (std::vector<float>{1, 2, 4, 5}));
  EXPECT_EQ(pooled("AveragePool", true, false), (std::vector<float>{2.0F / 3, 4.0F / 3, 4, 5}));

  for (const auto& [type, wanted] : {std::pair{"GlobalAveragePool", std::vector<float>{4, 5}},
                                     {"GlobalMaxPool", {8, 9}},
                                     {"ReduceMean", {4, 5}},
                                     {"ReduceMax", {8, 9}}}) {
    NodeChain net({1, 2, 5});
    pb::Node& node = net.add(type);
    const bool reduces = node.op_type().starts_with("Reduce");
    if (reduces) set_ints(node, "axes", {-1}), set_int(node, "keepdims", 0);
    ImportedModel model = net.import();
    const Tensor y = result_of(model, counted_images({1, 5, 2}));
    EXPECT_EQ(y.shape(), reduces ? (Shape{1, 2}) : (Shape{1, 2, 1})) << type;
    EXPECT_EQ(values_of(y), wanted) << type;
  }
}

/// A filter of one dimension after [n, features] became one channel, as after a Transpose from steps first: one network
/// in three files.
TEST(ImportSequences, WhereverTheChannelsStandBefore) {
  const auto answer = [](const std::vector<std::int64_t>& input, const Shape& ours,
                         const std::function<void(NodeChain&)>& begin) {
    NodeChain net(input);
    net.integers("row", {0, 1, 6}), net.integers("axis", {1}), net.integers("turned", {-1, 1, 6});
    net.constant("w", {2, 1, 3});
    begin(net);
    net.add("Conv", {"w"});
    net.add("Relu");
    net.add("Flatten");
    net.constant("dense", {8, 2});
    net.add("MatMul", {"dense"});
    ImportedModel model = net.import();
    EXPECT_EQ(model.graph.at("x").output().shape(), ours);
    return values_of(result_of(model, counted_images(ours)));
  };
  const std::vector<float> wanted = answer({1, 1, 6}, {1, 6, 1}, [](NodeChain&) {});
  EXPECT_EQ(answer({1, 6}, {1, 6}, [](NodeChain& net) { net.add("Reshape", {"row"}); }), wanted);
  EXPECT_EQ(answer({1, 6}, {1, 6}, [](NodeChain& net) { net.add("Unsqueeze", {"axis"}); }), wanted);
  EXPECT_EQ(answer({1, 6, 1}, {1, 6, 1},
                   [](NodeChain& net) {
                     set_ints(net.add("Transpose"), "perm", {0, 2, 1});
                   }),
            wanted);
  // What exporters write for that Transpose.
  EXPECT_EQ(answer({1, 6, 1}, {1, 6, 1}, [](NodeChain& net) { net.add("Reshape", {"turned"}); }), wanted);
}

/// As Keras's exporter writes a Conv1D: steps become pixels before the Transpose.
TEST(ImportSequences, StepsOfChannelsThatBecomePixelsFirst) {
  NodeChain net({1, 5, 2});
  net.integers("axis", {2}), net.integers("back", {3});
  net.constant("w", {3, 2, 2, 1});
  net.add("Unsqueeze", {"axis"});
  set_ints(net.add("Transpose"), "perm", {0, 3, 1, 2});
  net.add("Conv", {"w"});
  net.add("Squeeze", {"back"});
  set_ints(net.add("Transpose"), "perm", {0, 2, 1});
  ImportedModel model = net.import();
  const Tensor x = counted_images({1, 5, 2}), y = result_of(model, x);
  ASSERT_EQ(y.shape(), (Shape{1, 4, 3}));
  const Conv1dCase c = {2, 3, 1, 2, 1, 1, 0, 0};
  for (std::int64_t o = 0; o < 3; ++o)
    for (std::int64_t s = 0; s < 4; ++s) EXPECT_EQ(number_at(y, 0, o, s), convolved_steps(c, x, 0, o, s));
}

/// The float export writes no Transpose where the numbers lie in the right order without one.
TEST(ImportSequences, OfMiniqatHaveTheirStepsFirst) {
  NodeChain rows({1, 4, 2});
  rows.model.set_producer_name("miniqat");
  rows.integers("flat", {0, 8});
  rows.constant("w", {8, 1});
  rows.add("Reshape", {"flat"});
  rows.add("Gemm", {"w"});
  ImportedModel model = rows.import();
  ASSERT_EQ(model.graph.at("x").output().shape(), (Shape{1, 4, 2}));
  double sum = 0;
  for (std::int64_t i = 0; i < 8; ++i) sum += static_cast<double>(i) * constant_at(i);
  EXPECT_EQ(values_of(result_of(model, counted_images({1, 4, 2}))), (std::vector<float>{static_cast<float>(sum)}));

  NodeChain images({1, 4, 1});
  images.model.set_producer_name("miniqat");
  images.integers("image", {0, 1, 4, 1}), images.integers("back", {0, 1, 3});
  images.constant("w", {1, 1, 2, 1});
  images.add("Reshape", {"image"});
  images.add("Conv", {"w"});
  images.add("Reshape", {"back"});
  model = images.import();
  EXPECT_EQ(model.graph.at("x").output().shape(), (Shape{1, 4, 1}));
  EXPECT_EQ(model.graph.outputs()[0].shape(), (Shape{1, 1, 3}));
}

TEST(ImportSequences, AnOutputOfOneChannelHasItsStepsFirst) {
  NodeChain net({2, 3, 9});
  net.constant("w", {1, 3, 3});
  net.add("Conv", {"w"});
  const ImportedModel model = net.import();
  EXPECT_EQ(model.graph.outputs()[0].shape(), (Shape{2, 7, 1}));
  ASSERT_EQ(model.report.notes.size(), 1U);
  EXPECT_TRUE(mentions(model.report.notes[0], {"[n, steps, c] in the graph"}));
  // A network with its channels last makes one step of 6 channels.
  NodeChain last({1, 5, 2});
  last.integers("step", {0, 1, 6});
  last.constant("w", {10, 6});
  set_ints(last.add("Transpose"), "perm", {0, 2, 1});
  last.add("Flatten");
  last.add("MatMul", {"w"});
  last.add("Reshape", {"step"});
  EXPECT_EQ(last.import().graph.outputs()[0].shape(), (Shape{1, 1, 6}));
}

TEST(ImportSequences, ConstantsBordersPartsAndSums) {
  NodeChain net({1, 2, 4});
  net.integers("border", {0, 0, 1, 0, 0, 1});
  net.constant("factors", {2, 1}), net.constant("slopes", {2, 1});
  net.constant("w", {2, 2, 3});
  net.add("Mul", {"factors"});
  net.add("PRelu", {"slopes"});
  const std::string steps = net.last;
  net.add("Pad", {"border"});
  net.add("Conv", {"w"});
  net.add("Add", {steps});
  set_int(net.add("Concat", {steps}), "axis", 1);
  ImportedModel model = net.import();
  const Tensor x = counted_images({1, 4, 2}), y = result_of(model, x);
  ASSERT_EQ(y.shape(), (Shape{1, 4, 4}));
  Tensor curved(x.shape(), DType::kFloat32);
  for (std::int64_t s = 0; s < 4; ++s)
    for (std::int64_t c = 0; c < 2; ++c) {
      const double scaled = number_at(x, 0, c, s) * constant_at(c);
      curved.data<float>()[s * 2 + c] = static_cast<float>(scaled < 0 ? scaled * constant_at(c) : scaled);
    }
  const Conv1dCase c = {2, 2, 1, 3, 1, 1, 1, 1};
  for (std::int64_t s = 0; s < 4; ++s)
    for (std::int64_t o = 0; o < 2; ++o) {
      EXPECT_EQ(number_at(y, 0, o, s), convolved_steps(c, curved, 0, o, s) + number_at(curved, 0, o, s)) << s;
      EXPECT_EQ(number_at(y, 0, o + 2, s), number_at(curved, 0, o, s));
    }
}

TEST(ImportSequences, BecomeIntegers) {
  NodeChain net({4, 3, 20});
  net.constant("w", {6, 3, 3}), net.constant("deep", {6, 1, 5}), net.constant("point", {8, 3, 1});
  net.constant("dense", {8 * 4, 5});
  for (const char* name : {"gamma", "beta", "mean"}) net.constant(name, {6});
  pb::Constant& variance = net.constant("variance", {6});
  for (int i = 0; i < 6; ++i) variance.set_float_data(i, 2);
  net.add("Conv", {"w"});
  net.add("BatchNormalization", {"gamma", "beta", "mean", "variance"});
  net.add("Relu");
  set_int(net.add("Conv", {"deep"}), "group", 6);
  net.add("Relu");
  pb::Node& grouped = net.add("Conv", {"point"});
  set_int(grouped, "group", 2);
  set_ints(grouped, "pads", {0, 0});
  pb::Node& pool = net.add("MaxPool");
  set_ints(pool, "kernel_shape", {3});
  set_ints(pool, "strides", {3});
  net.add("Flatten");
  net.add("MatMul", {"dense"});
  const ImportedModel model = net.import();
  EXPECT_EQ(model.graph.at("x").output().shape(), (Shape{4, 20, 3}));
  testing::expect_trained_integers(model.graph);
}

TEST(ImportSequences, OpenStepsAreGiven) {
  for (const bool steps_first : {false, true}) {
    NodeChain net(steps_first ? std::vector<std::int64_t>{0, 0, 2} : std::vector<std::int64_t>{0, 2, 0});
    net.constant("w", {3, 2, 3});
    if (steps_first) set_ints(net.add("Transpose"), "perm", {0, 2, 1});
    net.add("Conv", {"w"});
    net.add("GlobalAveragePool");
    EXPECT_TRUE(mentions(net.refusal(),
                         {steps_first ? "axis 1 open" : "axis 2 open", "--image-size HxW (of sequences STEPSx1)"}));
    const ImportedModel model = import_onnx(net.path(), {.batch_size = 4, .height = 30});
    EXPECT_EQ(model.graph.at("x").output().shape(), (Shape{4, 30, 2}));
  }
  // No flag gives the channels.
  NodeChain channels({0, 0, 8});
  channels.add("Relu");
  EXPECT_TRUE(mentions(channels.refusal(), {"axis 1 open"}));
  EXPECT_FALSE(mentions(channels.refusal(), {"--image-size"}));
}

TEST(ImportSequences, WhatIsNoSequenceIsRefused) {
  const auto refusal = [](const std::vector<std::int64_t>& input, const std::vector<std::int64_t>& filter,
                          const std::function<void(NodeChain&, pb::Node&)>& change = {}) {
    NodeChain net(input);
    net.constant("w", filter);
    pb::Node& conv = net.add("Conv", {"w"});
    if (change) change(net, conv);
    return net.refusal();
  };
  EXPECT_EQ(refusal({2, 3, 8}, {4, 3, 3}), "");
  EXPECT_TRUE(mentions(refusal({2, 3, 8}, {4, 3, 3, 1}), {"[4,3,3,1] for an input [2,3,8]"}));
  EXPECT_TRUE(mentions(refusal({2, 3, 8, 8}, {4, 3, 3}), {"[4,3,3] for an input [2,3,8,8]"}));
  EXPECT_TRUE(mentions(refusal({2, 3, 8}, {4, 2, 3}), {"a filter for 2 channels, its input has 3"}));
  EXPECT_TRUE(mentions(refusal({2, 3, 8}, {4, 3, 9}), {"9"}));
  EXPECT_TRUE(mentions(refusal({2, 3}, {4, 3, 3}), {"images [n, c, h, w] or sequences [n, c, steps], gets [2,3]"}));
  EXPECT_TRUE(mentions(refusal({2, 3, 4, 8, 8}, {4, 3, 3, 3, 3}), {"the input", "sequences [n, c, steps] or rows"}));
  EXPECT_TRUE(mentions(refusal({2, 3, 8}, {4, 3, 3},
                               [](NodeChain&, pb::Node& conv) {
                                 set_ints(conv, "pads", {0, 0, 0, 0});
                               }),
                       {"has 4 numbers as pads, needs 2 for its input"}));
  EXPECT_TRUE(mentions(refusal({2, 3, 8}, {4, 3, 3},
                               [](NodeChain&, pb::Node& conv) {
                                 set_ints(conv, "strides", {1, 1});
                               }),
                       {"has 2 numbers as strides, needs 1 for its input"}));
  EXPECT_TRUE(mentions(refusal({2, 3, 8}, {4, 3, 3},
                               [](NodeChain&, pb::Node& conv) {
                                 set_ints(conv, "pads", {-1, 0});
                               }),
                       {"has pads out of 0.."}));

  NodeChain turned({2, 3, 8});
  turned.add("Relu");
  set_ints(turned.add("Transpose"), "perm", {0, 2, 1});
  turned.constant("w", {4, 8, 1});
  turned.add("Conv", {"w"});
  EXPECT_TRUE(mentions(turned.refusal(), {"sequences", "[2,8,3] with its axes in another order"}));
  NodeChain channels({2, 3, 8});
  set_ints(channels.add("ReduceMean"), "axes", {1});
  EXPECT_TRUE(mentions(channels.refusal(), {"the steps of sequences"}));
  NodeChain dense({2, 3, 8});
  dense.constant("w", {8, 4});
  dense.add("MatMul", {"w"});
  EXPECT_TRUE(mentions(dense.refusal(), {"miniqat's MatMul takes matrices"}));
}

}  // namespace
}  // namespace miniqat::importers::import_test
