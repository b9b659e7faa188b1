#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/importers/onnx/node_chain.h"
#include "tests/quantize/convert/trained_integers.h"

// Where the numbers of images lie: orders of axes, borders, and the windows over them.
// Flattened images side by side: ONNX's columns are ours in another order.

namespace miniqat::importers::import_test {
namespace {

using testing::mentions;

TEST(ImportLayout, AnOutputKeepsItsAxesOrIsAnImage) {
  const auto refusal = [](const std::vector<std::int64_t>& input, const std::vector<std::int64_t>& perm) {
    NodeChain net(input);
    net.add("Relu");
    set_ints(net.add("Transpose"), "perm", perm);
    return net.refusal();
  };
  for (const std::vector<std::int64_t>& perm : {std::vector<std::int64_t>{0, 1, 3, 2}, {0, 2, 1, 3}, {0, 3, 2, 1}})
    EXPECT_TRUE(mentions(refusal({2, 3, 4, 4}, perm), {"\"t2\"", "[2,", "another order"}));
  EXPECT_EQ(refusal({2, 3, 4, 4}, {0, 2, 3, 1}), "");
  EXPECT_EQ(refusal({2, 3, 4, 4}, {0, 1, 2, 3}), "");
  // Axes of one number may be anywhere.
  EXPECT_EQ(refusal({2, 1, 4, 5}, {0, 2, 1, 3}), "");
  EXPECT_TRUE(mentions(refusal({2, 1, 4, 5}, {0, 3, 2, 1}), {"another order"}));

  NodeChain cube({2, 6});
  cube.integers("shape", {0, 3, 2});
  cube.add("Reshape", {"shape"});
  EXPECT_EQ(cube.refusal(), "");
  set_ints(cube.add("Transpose"), "perm", {0, 2, 1});
  EXPECT_TRUE(mentions(cube.refusal(), {"[2,2,3]", "another order"}));
}

/// Numbers that lie in the file's order have its shape, too, wherever the axes of one number went.
TEST(ImportLayout, AnOutputBehindATransposeHasTheShapeOfTheFile) {
  for (const std::vector<std::int64_t>& perm : {std::vector<std::int64_t>{0, 2, 1, 3}, {0, 2, 3, 1}, {0, 1, 2, 3}}) {
    NodeChain net({2, 1, 3, 4});
    net.add("Relu");
    set_ints(net.add("Transpose"), "perm", perm);
    ImportedModel model = net.import();
    const Tensor y = result_of(model, counted_images({2, 3, 4, 1}));
    EXPECT_EQ(y.shape(), perm[1] == 1 ? (Shape{2, 3, 4, 1}) : perm[2] == 1 ? (Shape{2, 3, 1, 4}) : (Shape{2, 3, 4, 1}));
    EXPECT_EQ(values_of(y), values_of(counted_images({2, 3, 4, 1})));
  }
}

TEST(ImportLayout, NotesNameWhatIsTheSameTensor) {
  NodeChain net({2, 5});
  net.add("Relu");
  net.add("Softmax");
  pb::Graph& graph = net.graph();
  ImportedModel model = net.import();
  EXPECT_EQ(model.report.notes.size(), 1U);
  graph.add_output()->set_name("t1");
  std::ofstream(net.path(), std::ios::binary) << net.model.SerializeAsString();
  model = import_onnx(net.path());
  ASSERT_EQ(model.report.notes.size(), 2U);
  EXPECT_TRUE(mentions(model.report.notes[1], {"\"t1\"", "same tensor as \"t2\""}));

  NodeChain images({2, 3, 4, 5});
  images.add("Relu");
  images.import();
  images.graph().add_output()->set_name("t1");
  std::ofstream(images.path(), std::ios::binary) << images.model.SerializeAsString();
  EXPECT_EQ(import_onnx(images.path()).report.notes.size(), 1U);
}

TEST(ImportLayout, AMeanIsOverSpaceInEitherOrder) {
  for (const bool keeps : {true, false}) {
    NodeChain net({1, 2, 3, 2});
    set_ints(net.add("Transpose"), "perm", {0, 2, 3, 1});
    net.add("Relu");
    pb::Node& mean = net.add("ReduceMean");
    set_ints(mean, "axes", {1, -2});
    set_int(mean, "keepdims", keeps ? 1 : 0);
    ImportedModel model = net.import();
    const Tensor y = result_of(model, counted_images({1, 3, 2, 2}));
    EXPECT_EQ(y.shape(), keeps ? (Shape{1, 1, 1, 2}) : (Shape{1, 2}));
    EXPECT_EQ(values_of(y), (std::vector<float>{5, 6}));
  }
  NodeChain wrong({1, 2, 3, 2});
  set_ints(wrong.add("Transpose"), "perm", {0, 2, 3, 1});
  set_ints(wrong.add("ReduceMean"), "axes", {2, 3});
  EXPECT_TRUE(mentions(wrong.refusal(), {"height and width"}));
}

TEST(ImportLayout, ABorderAtTheEndIsAPad) {
  NodeChain net({1, 1, 1, 2});
  net.integers("border", {0, 0, 1, 0, 0, 0, 0, 1});
  net.add("Pad", {"border"});
  ImportedModel model = net.import();
  const Tensor y = result_of(model, Tensor::from<float>({1, 1, 2, 1}, std::vector{7.0F, 8.0F}));
  EXPECT_EQ(y.shape(), (Shape{1, 2, 3, 1}));
  EXPECT_EQ(values_of(y), (std::vector<float>{0, 0, 0, 7, 8, 0}));
}

TEST(ImportLayout, WindowsOfNothingButZerosArePixels) {
  NodeChain net({1, 1, 1, 1});
  net.constant("w", {1, 1, 1, 1}).set_float_data(0, 2);
  set_ints(net.add("Conv", {"w"}), "pads", {1, 0, 0, 2});
  ImportedModel model = net.import();
  const Tensor y = result_of(model, Tensor::from<float>({1, 1, 1, 1}, std::vector{3.0F}));
  EXPECT_EQ(y.shape(), (Shape{1, 2, 3, 1}));
  EXPECT_EQ(values_of(y), (std::vector<float>{0, 0, 0, 6, 0, 0}));
}

TEST(ImportLayout, SameLowerAndCeilModeAreResolvedToPixels) {
  const auto text = [](pb::Node& node, const std::string& value) {
    pb::Attribute& attribute = *node.add_attribute();
    attribute.set_name("auto_pad");
    attribute.set_type(pb::Attribute::STRING);
    attribute.set_s(value);
  };
  const auto pooled = [&](const std::string& automatic, bool ceils) {
    NodeChain net({1, 1, 1, 4});
    pb::Node& pool = net.add("AveragePool");
    set_ints(pool, "kernel_shape", {1, 2});
    if (!automatic.empty()) text(pool, automatic);
    set_ints(pool, "strides", {1, automatic.empty() ? 3 : 1});
    if (ceils) set_int(pool, "ceil_mode", 1);
    ImportedModel model = net.import();
    return values_of(result_of(model, counted_images({1, 1, 4, 1})));
  };
  EXPECT_EQ(pooled("SAME_LOWER", false), (std::vector<float>{0, 0.5, 1.5, 2.5}));
  EXPECT_EQ(pooled("SAME_UPPER", false), (std::vector<float>{0.5, 1.5, 2.5, 3}));
  EXPECT_EQ(pooled("", false), (std::vector<float>{0.5}));
  EXPECT_EQ(pooled("", true), (std::vector<float>{0.5, 3}));

  NodeChain valid({1, 1, 4, 4});
  pb::Node& pool = valid.add("MaxPool");
  set_ints(pool, "kernel_shape", {2, 2});
  text(pool, "VALID");
  EXPECT_EQ(valid.refusal(), "");
  set_int(pool, "ceil_mode", 1);
  EXPECT_TRUE(mentions(valid.refusal(), {"ceil_mode", "VALID"}));
  NodeChain conv({1, 1, 4, 4});
  conv.constant("w", {1, 1, 2, 2});
  set_int(conv.add("Conv", {"w"}), "ceil_mode", 1);
  EXPECT_TRUE(mentions(conv.refusal(), {"\"ceil_mode\"", "does not know"}));
}

/// Of "x" [2, 2, 2, 3]: the means of its channels, itself, and the largest of each two of its columns, all flattened,
/// in one row of 2 + 12 + 4 columns.
void add_flat_pictures(NodeChain& net, std::int64_t axis) {
  net.add("GlobalAveragePool");
  net.add("Flatten");
  const std::string means = net.last;
  net.last = "x";
  set_ints(net.add("MaxPool"), "kernel_shape", {2, 2});
  net.add("Flatten");
  const std::string largest = net.last;
  net.last = "x";
  net.add("Flatten");
  pb::Node& joined = net.add("Concat");
  joined.clear_input();
  for (const std::string& part : {means, std::string("t5"), largest}) joined.add_input(part);
  set_int(joined, "axis", axis);
}

/// The same row by its definition, of one image of ours.
std::vector<float> flat_pictures(const float* image) {
  std::vector<float> row;
  const auto pixel = [&](int c, int y, int x) { return image[(y * 3 + x) * 2 + c]; };
  for (int c = 0; c < 2; ++c) {
    float sum = 0;
    for (int i = 0; i < 6; ++i) sum += pixel(c, i / 3, i % 3);
    row.push_back(sum / 6);
  }
  for (int c = 0; c < 2; ++c)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 3; ++x) row.push_back(pixel(c, y, x));
  for (int c = 0; c < 2; ++c)
    for (int x = 0; x < 2; ++x)
      row.push_back(std::max({pixel(c, 0, x), pixel(c, 0, x + 1), pixel(c, 1, x), pixel(c, 1, x + 1)}));
  return row;
}

/// Column j of the result is column j of the row, times the number of the column, or with it added.
TEST(ImportFlattened, AGemmBehindAConcatHasItsRowsInOrder) {
  for (const std::string between : {"nothing", "Add", "BatchNormalization"})
    for (const std::int64_t axis : {1, -1}) {
      NodeChain net({2, 2, 2, 3});
      add_flat_pictures(net, axis);
      pb::Constant& identity = net.constant("w", {18, 18});
      for (int i = 0; i < 18 * 18; ++i) identity.set_float_data(i, i % 19 == 0 ? 1 : 0);
      for (const char* name : {"numbers", "zero", "one"}) {
        pb::Constant& constant = net.constant(name, {18});
        for (int i = 0; i < 18; ++i)
          constant.set_float_data(i, name[0] == 'n' ? static_cast<float>(i + 1) : name[0] == 'o' ? 1 : 0);
      }
      if (between == "Add") net.add("Add", {"numbers"});
      if (between[0] == 'B') net.add(between, {"numbers", "zero", "zero", "one"});
      net.add("Gemm", {"w"});
      ImportedModel model = net.import();
      const Tensor images = counted_images({2, 2, 3, 2}), y = result_of(model, images);
      ASSERT_EQ(y.shape(), (Shape{2, 18}));
      for (int n = 0; n < 2; ++n) {
        const std::vector<float> row = flat_pictures(images.data<float>() + n * 12);
        for (int i = 0; i < 18; ++i) {
          const float number = row[static_cast<std::size_t>(i)], by = static_cast<float>(i + 1);
          const float wanted = between == "Add" ? number + by : between[0] == 'B' ? number * by : number;
          EXPECT_NEAR(y.data<float>()[n * 18 + i], wanted, 1e-4 * (1 + std::abs(wanted))) << between << " " << i;
        }
      }
    }
}

/// Concats of Concats, and the same tensor twice.
TEST(ImportFlattened, ConcatsOfConcats) {
  NodeChain net({1, 2, 1, 2});
  net.add("Flatten");
  for (int i = 0; i < 2; ++i) set_int(net.add("Concat", {net.last}), "axis", 1);
  pb::Constant& identity = net.constant("w", {16, 16});
  for (int i = 0; i < 16 * 16; ++i) identity.set_float_data(i, i % 17 == 0 ? 1 : 0);
  net.add("MatMul", {"w"});
  ImportedModel model = net.import();
  EXPECT_EQ(values_of(result_of(model, counted_images({1, 1, 2, 2}))),
            (std::vector<float>{0, 2, 1, 3, 0, 2, 1, 3, 0, 2, 1, 3, 0, 2, 1, 3}));
}

TEST(ImportFlattened, WhatNeedsOnnxsOrderIsRefused) {
  NodeChain output({2, 2, 2, 3});
  add_flat_pictures(output, 1);
  EXPECT_TRUE(mentions(output.refusal(), {"the output", "flattened image"}));
  NodeChain image({2, 2, 2, 3});
  add_flat_pictures(image, 1);
  image.integers("shape", {0, 2, 3, 3});
  image.add("Reshape", {"shape"});
  EXPECT_TRUE(mentions(image.refusal(), {"[Reshape \"the_Reshape\"]", "mixes channels and space"}));
  NodeChain sum({2, 2, 2, 3});
  add_flat_pictures(sum, 1);
  const std::string joined = sum.last;
  sum.add("Relu");
  pb::Node& reversed = sum.add("Concat");
  reversed.clear_input();
  for (const char* part : {"t4", "t5", "t2"}) reversed.add_input(part);
  set_int(reversed, "axis", 1);
  sum.add("Add", {joined});
  EXPECT_TRUE(mentions(sum.refusal(), {"[Add \"the_Add\"]", "another order"}));
  NodeChain batch({2, 2, 2, 3});
  batch.add("Flatten");
  set_int(batch.add("Concat", {batch.last}), "axis", 0);
  EXPECT_TRUE(mentions(batch.refusal(), {"[Concat \"the_Concat\"]", "batch axis"}));
}

TEST(ImportFlattened, BecomesIntegers) {
  NodeChain net({4, 3, 8, 8});
  net.constant("w", {4, 3, 3, 3}), net.constant("w2", {2, 3, 3, 3}), net.constant("dense", {144 + 18 + 4, 5});
  net.add("Conv", {"w"});
  net.add("Relu");
  const std::string first = net.last;
  net.add("Flatten");
  const std::string flat = net.last;
  net.last = first;
  net.add("GlobalAveragePool");
  net.add("Flatten");
  const std::string means = net.last;
  net.last = "x";
  set_ints(net.add("Conv", {"w2"}), "strides", {2, 2});
  net.add("Flatten");
  set_int(net.add("Concat", {flat, means}), "axis", 1);
  net.add("MatMul", {"dense"});
  testing::expect_trained_integers(net.import().graph);
}

}  // namespace

}  // namespace miniqat::importers::import_test
