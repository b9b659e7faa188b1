#include "layers/parts.h"

#include <gtest/gtest.h>

#include "tests/importers/onnx/node_chain.h"

// Slice and Split of what the network computes.

namespace miniqat::importers::import_test {
namespace {

using testing::mentions;

/// ONNX's Slice as inputs, or as attributes before opset 10.
struct Cuts {
  std::vector<std::int64_t> starts, ends, axes = {}, steps = {};
};

NodeChain& add_slice(NodeChain& net, const Cuts& cuts, bool as_inputs) {
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> lists = {
      {"starts", cuts.starts}, {"ends", cuts.ends}, {"axes", cuts.axes}, {"steps", cuts.steps}};
  std::vector<std::string> names;
  for (const auto& [name, list] : lists) {
    if (as_inputs && !list.empty()) net.integers(name, list);
    names.push_back(list.empty() ? "" : name);
  }
  pb::Node& node = as_inputs ? net.add("Slice", names) : net.add("Slice");
  for (const auto& [name, list] : lists)
    if (!as_inputs && !list.empty()) set_ints(node, name, list);
  return net;
}

TEST(ImportParts, ASliceOfImages) {
  // Channels 1 and 3 of 5, columns 3 and 2 from the end.
  const Cuts cuts = {.starts = {1, -3}, .ends = {INT64_MAX, -1}, .axes = {1, 3}, .steps = {2, 1}};
  NodeChain net({2, 5, 2, 4}, 13);
  ImportedModel model = add_slice(net, cuts, true).import();
  const Tensor y = result_of(model, counted_images({2, 2, 4, 5}));
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2, 2}));
  EXPECT_EQ(values_of(y), (std::vector<float>{6, 8, 11, 13, 26, 28, 31, 33, 46, 48, 51, 53, 66, 68, 71, 73}));
  EXPECT_EQ(model.graph.outputs()[0].node->as<layers::Slice>()->axes, (std::vector<std::int64_t>{3, 2}));
}

TEST(ImportParts, ASliceWithAttributesAndOneOfEverything) {
  for (const bool all : {false, true}) {
    NodeChain net({0, 6}, 9);
    ImportedModel model =
        add_slice(net, {.starts = {0, all ? 0 : 2}, .ends = {INT32_MAX, all ? 6 : -1}}, false).import(3);
    EXPECT_EQ(model.graph.outputs()[0].node->type(), all ? "Placeholder" : "Slice");
    const Tensor y = result_of(model, counted_images({3, 6}));
    const std::vector<float> middle = {2, 3, 4, 8, 9, 10, 14, 15, 16};
    EXPECT_EQ(values_of(y), all ? values_of(counted_images({3, 6})) : middle);
  }
}

TEST(ImportParts, SlicesThatAreRefused) {
  const auto refusal = [](const Cuts& cuts) {
    NodeChain net({2, 5, 2, 4});
    return add_slice(net, cuts, true).refusal();
  };
  EXPECT_TRUE(mentions(refusal({{0}, {1}}), {"[Slice \"the_Slice\"]", "cuts the batch"}));
  EXPECT_TRUE(mentions(refusal({{4}, {0}, {1}, {-1}}), {"turns axis 1 around"}));
  EXPECT_TRUE(mentions(refusal({{3}, {3}, {1}}), {"leaves nothing of axis 1"}));
  EXPECT_TRUE(mentions(refusal({{0}, {1}, {4}}), {"the axis 4"}));
  EXPECT_TRUE(mentions(refusal({{0, 0}, {1, 1}, {1, -3}}), {"the axis -3 twice"}));
  EXPECT_TRUE(mentions(refusal({{0}, {1}, {1}, {0}}), {"the step 0"}));
  EXPECT_TRUE(mentions(refusal({{0}, {1, 2}}), {"different lengths"}));
  NodeChain open({0, 5});
  EXPECT_TRUE(mentions(add_slice(open, {{0}, {1}}, true).refusal(), {"cuts the batch"}));
  NodeChain flat({1, 2, 2, 2});
  flat.add("Flatten");
  EXPECT_TRUE(mentions(add_slice(flat, {{0}, {4}, {1}}, true).refusal(), {"flattened image"}));
}

/// The sizes as ONNX's opsets give them; the last part, or `only`, is the output.
ImportedModel split(NodeChain& net, const std::vector<std::int64_t>& sizes, int parts, std::int64_t axis, int only) {
  const bool as_input = net.model.opset_import(0).version() >= 13;
  if (as_input && !sizes.empty()) net.integers("sizes", sizes);
  pb::Node& node = as_input && !sizes.empty() ? net.add("Split", {"sizes"}) : net.add("Split");
  if (!as_input && !sizes.empty()) set_ints(node, "split", sizes);
  if (net.model.opset_import(0).version() >= 18 && sizes.empty()) set_int(node, "num_outputs", parts);
  if (axis != 0) set_int(node, "axis", axis);
  for (int i = 1; i < parts; ++i) node.add_output("part" + std::to_string(i));
  if (only > 0) net.last = "part" + std::to_string(only);
  return net.import();
}

TEST(ImportParts, ASplitOfEveryOpset) {
  for (const std::int64_t opset : {11, 13, 18}) {
    NodeChain sized({1, 6, 1, 2}, opset);
    ImportedModel model = split(sized, {1, 3, 2}, 3, 1, 1);
    EXPECT_EQ(values_of(result_of(model, counted_images({1, 1, 2, 6}))), (std::vector<float>{1, 2, 3, 7, 8, 9}));
    EXPECT_EQ(model.graph.size(), 2U) << "parts that nobody reads are not made";
    NodeChain equal({1, 6, 1, 2}, opset);
    model = split(equal, {}, 3, -3, 2);
    EXPECT_EQ(values_of(result_of(model, counted_images({1, 1, 2, 6}))), (std::vector<float>{4, 5, 10, 11}));
  }
  NodeChain uneven({1, 7}, 18);
  ImportedModel model = split(uneven, {}, 3, 1, 2);
  EXPECT_EQ(values_of(result_of(model, counted_images({1, 7}))), (std::vector<float>{6}));
}

TEST(ImportParts, SplitsThatAreRefused) {
  const auto refusal = [](const std::vector<std::int64_t>& sizes, int parts, std::int64_t axis, std::int64_t opset) {
    NodeChain net({2, 7, 1, 2}, opset);
    return testing::error_of([&] { split(net, sizes, parts, axis, 0); });
  };
  EXPECT_EQ(refusal({3, 4}, 2, 1, 13), "");
  EXPECT_TRUE(mentions(refusal({3, 3}, 2, 1, 13), {"[Split \"the_Split\"]", "7 into parts"}));
  EXPECT_TRUE(mentions(refusal({3, 4}, 3, 1, 11), {"3 outputs"}));
  EXPECT_TRUE(mentions(refusal({7, 0}, 2, 1, 13), {"empty"}));
  EXPECT_TRUE(mentions(refusal({INT64_MAX, -INT64_MAX, 7}, 3, 1, 13), {"parts"}));
  EXPECT_TRUE(mentions(refusal({}, 2, 1, 13), {"2 equal parts"}));
  EXPECT_TRUE(mentions(refusal({}, 9, 1, 18), {"7 into parts"}));
  EXPECT_TRUE(mentions(refusal({}, 2, 0, 13), {"cuts the batch"}));
  EXPECT_TRUE(mentions(refusal({}, 2, 4, 13), {"the axis 4"}));
  NodeChain both({2, 7}, 18);
  both.integers("sizes", {3, 4});
  pb::Node& node = both.add("Split", {"sizes"});
  node.add_output("other");
  set_int(node, "axis", 1);
  set_int(node, "num_outputs", 2);
  EXPECT_TRUE(mentions(both.refusal(), {"num_outputs beside sizes"}));
}

/// Of a constant: known while reading, as its Slice is.
TEST(ImportParts, ASplitOfAConstantIsKnown) {
  NodeChain net({1, 2});
  net.constant("w", {2, 5});
  pb::Node& node = *net.graph().add_node();
  node.set_op_type("Split");
  node.add_input("w");
  node.add_input("sizes");
  node.add_output("left");
  node.add_output("right");
  set_int(node, "axis", 1);
  net.integers("sizes", {2, 3});
  net.add("MatMul", {"right"});
  ImportedModel model = net.import();
  // Rows of the constant: -3 -2 -1 0 1, 2 3 -3 -2 -1.
  EXPECT_EQ(values_of(result_of(model, Tensor::from<float>({1, 2}, std::vector{1.0F, 10.0F}))),
            (std::vector<float>{-31, -20, -9}));
}

TEST(ImportLayout, AnInputWithAnotherNameIsNoted) {
  NodeChain net({1, 2});
  net.graph().mutable_input(0)->set_name("data.1");
  net.last = "data.1";
  net.add("Relu");
  const ImportedModel model = net.import();
  ASSERT_EQ(model.report.notes.size(), 1U);
  EXPECT_TRUE(mentions(model.report.notes[0], {"\"data.1\"", "\"data/1\""}));
  NodeChain same({1, 2});
  same.add("Relu");
  EXPECT_TRUE(same.import().report.notes.empty());
}

}  // namespace
}  // namespace miniqat::importers::import_test
