#include <gtest/gtest.h>

#include <functional>

#include "tests/importers/onnx/node_chain.h"
#include "tests/quantize/convert/trained_integers.h"

// Reshape, Transpose, Reshape: a channel shuffle.

namespace miniqat::importers::import_test {
namespace {

using testing::mentions;

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
