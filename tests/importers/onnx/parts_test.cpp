#include "layers/parts.h"

#include <gtest/gtest.h>

#include <functional>
#include <tuple>

#include "tests/importers/onnx/node_chain.h"
#include "tests/quantize/convert/trained_integers.h"

// Slice and Split of what the network computes.
// Reshape, Transpose, Reshape: a channel shuffle.

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

TEST(ImportParts, AnOpenBatchIsNoPlaceToCutAt) {
  const auto refusal = [](const char* start, const char* end, std::int64_t axis) {
    NodeChain net({0, 5});
    net.integers("zero", {0}), net.integers("far", {INT32_MAX}), net.integers("axis", {axis});
    for (const auto& [type, inputs, output] :
         {std::tuple{"Shape", std::vector{"x"}, "shape"}, {"Gather", {"shape", "zero"}, "batch"}}) {
      pb::Node& node = *net.graph().add_node();
      node.set_op_type(type);
      for (const char* input : inputs) node.add_input(input);
      node.add_output(output);
    }
    net.add("Slice", {start, end, "axis"});
    return net.refusal();
  };
  EXPECT_EQ(refusal("zero", "batch", 0), "");
  for (const std::string& text : {refusal("zero", "batch", 1), refusal("batch", "far", 1), refusal("batch", "far", 0)})
    EXPECT_TRUE(mentions(text, {"[Slice \"the_Slice\"]", "the size of the batch, which is open"})) << text;
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

/// Of the last tensor, [n, groups * each, h, w].
void add_shuffle(NodeChain& net, std::int64_t groups, std::int64_t each, std::int64_t h, std::int64_t w) {
  net.integers("split", {0, groups, each, h, w});
  net.integers("back", {0, -1, h, w});
  net.add("Reshape", {"split"});
  set_ints(net.add("Transpose"), "perm", {0, 2, 1, 3, 4});
  net.add("Reshape", {"back"});
}

TEST(ImportShuffle, IsAPermutationOfChannels) {
  struct Case {
    std::int64_t groups, each;
    std::size_t nodes;
  };
  // The nodes are few whatever is larger, and none where nothing moves.
  for (const auto& [groups, each, nodes] :
       {Case{2, 3, 4}, {3, 2, 3}, {2, 20, 6}, {20, 2, 3}, {3, 7, 8}, {3, 8, 8}, {1, 6, 0}, {6, 1, 0}}) {
    const std::int64_t channels = groups * each;
    NodeChain net({0, channels, 2, 3});
    add_shuffle(net, groups, each, 2, 3);
    ImportedModel model = net.import(2);
    EXPECT_EQ(model.graph.size(), 1 + nodes) << groups << " groups of " << each;
    const Tensor x = counted_images({2, 2, 3, channels}), y = result_of(model, x);
    ASSERT_EQ(y.shape(), x.shape());
    for (std::int64_t pixel = 0; pixel < 2 * 2 * 3; ++pixel)
      for (std::int64_t group = 0; group < groups; ++group)
        for (std::int64_t i = 0; i < each; ++i)
          ASSERT_EQ(y.data<float>()[pixel * channels + i * groups + group],
                    x.data<float>()[pixel * channels + group * each + i])
              << groups << " groups of " << each;
  }
}

/// The sizes computed of the image's own shape, as PyTorch writes them; the constants lie behind the first Reshape.
TEST(ImportShuffle, SizesMayComeFromTheShape) {
  NodeChain net({0, 6, 2, 3});
  net.integers("rest", {2, 3, 2, 3}), net.integers("channels", {6, 2, 3}), net.integers("zero", {0});
  const auto known = [&](const char* type, const std::vector<std::string>& inputs, const char* output) -> pb::Node& {
    pb::Node& node = *net.graph().add_node();
    node.set_op_type(type);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  };
  known("Shape", {"x"}, "shape");
  known("Gather", {"shape", "zero"}, "batch");
  set_int(known("Concat", {"batch", "rest"}, "split"), "axis", 0);
  net.add("Reshape", {"split"});
  set_ints(net.add("Transpose"), "perm", {0, 2, 1, 3, 4});
  set_int(known("Concat", {"batch", "channels"}, "back"), "axis", 0);
  net.add("Reshape", {"back"});
  ImportedModel model = net.import(1);
  const std::vector<float> y = values_of(result_of(model, counted_images({1, 2, 3, 6})));
  EXPECT_EQ(std::vector(y.begin(), y.begin() + 6), (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

/// Any other step is refused with the words of a Reshape that moves numbers.
TEST(ImportShuffle, OtherStepsAreRefused) {
  const auto refusal = [](const std::function<void(NodeChain&)>& steps) {
    NodeChain net({2, 6, 3, 4});
    net.integers("split", {2, 2, 3, 3, 4}), net.integers("back", {2, 6, 3, 4}), net.integers("flat", {2, 72});
    net.integers("other", {2, 3, 6, 4}), net.integers("mixed", {2, 2, 3, 4, 3}), net.integers("six", {2, 3, 2, 3, 4});
    steps(net);
    return net.refusal();
  };
  const auto turn = [](NodeChain& net, const std::vector<std::int64_t>& perm) {
    set_ints(net.add("Transpose"), "perm", perm);
  };
  const std::vector<std::int64_t> swap = {0, 2, 1, 3, 4};
  const std::vector<std::string> reshape = {"[Reshape \"the_Reshape\"] makes [2,2,3,3,4] of [2,6,3,4]",
                                            "mixes channels and space"};
  const auto expect = [&](const std::string& text, const std::string& reader) {
    std::vector<std::string> words = reshape;
    words.push_back(reader);
    EXPECT_TRUE(mentions(text, words));
  };
  expect(refusal([&](NodeChain& net) { net.add("Reshape", {"split"}); }), "outputs");
  expect(refusal([&](NodeChain& net) { net.add("Reshape", {"split"}), net.add("Relu"); }), "[Relu");
  expect(refusal([&](NodeChain& net) { net.add("Reshape", {"split"}), net.add("Reshape", {"back"}); }), "[Reshape");
  expect(refusal([&](NodeChain& net) { net.add("Reshape", {"split"}), turn(net, {0, 2, 1, 4, 3}); }), "[Transpose");
  expect(refusal([&](NodeChain& net) {
           net.add("Reshape", {"split"}), turn(net, swap), turn(net, swap), net.add("Reshape", {"back"});
         }),
         "[Transpose");
  for (const char* shape : {"other", "flat", "six"})
    expect(
        refusal([&](NodeChain& net) { net.add("Reshape", {"split"}), turn(net, swap), net.add("Reshape", {shape}); }),
        "[Reshape");
  expect(refusal([&](NodeChain& net) { net.add("Reshape", {"split"}), turn(net, swap), net.add("Identity"); }),
         "outputs");
  // A second reader beside the shuffle.
  expect(refusal([&](NodeChain& net) {
           net.add("Reshape", {"split"}), turn(net, swap), net.add("Sigmoid");
           net.last = "t2";
           net.add("Reshape", {"back"}), net.add("Add", {"t3"});
         }),
         "[Sigmoid");
  EXPECT_TRUE(mentions(refusal([&](NodeChain& net) { net.add("Reshape", {"mixed"}); }),
                       {"[Reshape \"the_Reshape\"] makes [2,2,3,4,3] of [2,6,3,4]", "mixes channels and space"}));
}

TEST(ImportShuffle, OfVeryManyGroupsIsRefused) {
  NodeChain net({1, 257 * 300, 1, 2});
  add_shuffle(net, 257, 300, 1, 2);
  EXPECT_TRUE(mentions(net.refusal(), {"[Reshape \"the_Reshape\"]", "257 groups of 300 channels", "300 Slices"}));
}

/// Both ways to build it, from ONNX to integers.
TEST(ImportShuffle, BecomesIntegers) {
  for (const std::int64_t groups : {2, 3}) {
    NodeChain net({4, 3, 8, 8});
    net.constant("w", {12, 3, 3, 3}), net.constant("v", {6, 12, 3, 3}), net.constant("dense", {6, 5});
    net.add("Conv", {"w"});
    net.add("Relu");
    add_shuffle(net, groups, 12 / groups, 6, 6);
    net.add("Conv", {"v"});
    net.add("Relu");
    net.add("GlobalAveragePool");
    net.add("Flatten");
    net.add("MatMul", {"dense"});
    testing::expect_trained_integers(net.import().graph);
  }
}

}  // namespace

}  // namespace miniqat::importers::import_test
