#include <gtest/gtest.h>

#include "tests/importers/onnx/node_chain.h"

// Where the numbers of images lie: orders of axes, borders, and the windows over them.

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

}  // namespace
}  // namespace miniqat::importers::import_test
