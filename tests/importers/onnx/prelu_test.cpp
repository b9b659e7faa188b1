#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/source_ops.h"
#include "layers/activations.h"
#include "tests/importers/onnx/node_chain.h"
#include "tests/quantize/convert/trained_integers.h"

// PRelu, and the Sub of two branches: what is made of other ops, up to integers.

namespace miniqat::importers::import_test {
namespace {

using testing::mentions;

void set_floats(pb::Constant& constant, const std::vector<float>& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) constant.set_float_data(static_cast<int>(i), numbers[i]);
}

/// -8.5, -7.5, ...: both signs.
Tensor centred(const Shape& shape) {
  Tensor x = counted_images(shape);
  for (float& number : x.values<float>()) number -= 8.5F;
  return x;
}

float leaky(float x, float slope) { return x < 0 ? slope * x : x; }

/// Slopes that no float has exactly, of either sign, and 0.
const std::vector<float> kSlopes = {0.1F, -2.3F, 0};

TEST(ImportPRelu, ASlopeForEachChannel) {
  for (const std::vector<std::int64_t>& extents : {std::vector<std::int64_t>{3, 1, 1}, {1, 3, 1, 1}}) {
    NodeChain net({2, 3, 1, 3});
    set_floats(net.constant("act.weight", extents), kSlopes);
    net.add("PRelu", {"act.weight"});
    ImportedModel model = net.import();
    EXPECT_EQ(model.graph.outputs()[0].node->name(), "act/Add");
    const Node& slopes = model.graph.at("act/factors");
    ASSERT_TRUE(slopes.as<Variable>());
    EXPECT_TRUE(slopes.as<Variable>()->trainable);
    EXPECT_EQ(slopes.output().shape(), (Shape{1, 1, 1, 3}));
    EXPECT_EQ(values_of(model.variables.at("act/factors")), kSlopes);
    const Tensor x = centred({2, 1, 3, 3}), y = result_of(model, x);
    for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(values_of(y)[i], leaky(values_of(x)[i], kSlopes[i % 3])) << i;
  }
}

TEST(ImportPRelu, ASlopeForEachColumn) {
  NodeChain net({6, 3});
  set_floats(net.constant("slopes", {3}), kSlopes);
  net.add("PRelu", {"slopes"});
  ImportedModel model = net.import();
  const Tensor x = centred({6, 3}), y = result_of(model, x);
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(values_of(y)[i], leaky(values_of(x)[i], kSlopes[i % 3])) << i;
}

/// Columns of a flattened image lie in another order here than in the file.
TEST(ImportPRelu, SlopesOfAFlattenedImageFollowIt) {
  constexpr std::int64_t kChannels = 3, kPixels = 2;
  NodeChain net({3, kChannels, 1, kPixels});
  net.add("Flatten");
  std::vector<float> slopes;
  for (int i = 0; i < 6; ++i) slopes.push_back(0.5F * static_cast<float>(i) - 1);
  set_floats(net.constant("slopes", {6}), slopes);
  net.add("PRelu", {"slopes"});
  set_floats(net.constant("w", {6, 1}), {1, 2, 4, 8, 16, 32});
  net.add("MatMul", {"w"});
  ImportedModel model = net.import();
  const Tensor x = centred({3, 1, kPixels, kChannels}), y = result_of(model, x);
  for (std::int64_t n = 0; n < 3; ++n) {
    float sum = 0;
    for (std::int64_t c = 0; c < kChannels; ++c)
      for (std::int64_t p = 0; p < kPixels; ++p) {
        const std::int64_t column = c * kPixels + p;
        sum += leaky(x.data<float>()[(n * kPixels + p) * kChannels + c], slopes[static_cast<std::size_t>(column)]) *
               static_cast<float>(1 << column);
      }
    EXPECT_EQ(y.data<float>()[n], sum) << n;
  }
}

TEST(ImportPRelu, OneSlopeIsThatOfALeakyRelu) {
  for (const float slope : {0.25F, 0.0F, -0.25F})
    for (const std::vector<std::int64_t>& extents : {std::vector<std::int64_t>{}, {1}, {1, 1, 1}}) {
      NodeChain net({2, 3, 1, 3});
      set_floats(net.constant("slope", extents), {slope});
      net.add("PRelu", {"slope"});
      ImportedModel model = net.import();
      EXPECT_EQ(model.graph.outputs()[0].node->type(), slope > 0 ? "LeakyRelu" : slope < 0 ? "Add" : "Relu");
      const Tensor x = centred({2, 1, 3, 3}), y = result_of(model, x);
      for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(values_of(y)[i], leaky(values_of(x)[i], slope)) << i;
    }
}

TEST(ImportPRelu, OtherSlopesAreRefused) {
  const auto refusal = [](const std::vector<std::int64_t>& extents) {
    NodeChain net({2, 3, 4, 5});
    net.constant("slopes", extents);
    net.add("PRelu", {"slopes"});
    return net.refusal();
  };
  EXPECT_TRUE(mentions(refusal({4, 5}), {"[PRelu \"the_PRelu\"]", "[4,5] for [2,3,4,5]", "one for each channel"}));
  EXPECT_TRUE(mentions(refusal({3, 4, 5}), {"[PRelu \"the_PRelu\"]", "[3,4,5]", "one for each channel"}));
  EXPECT_TRUE(mentions(refusal({5}), {"[PRelu \"the_PRelu\"]", "[5] for", "one for each channel"}));
  EXPECT_TRUE(mentions(refusal({3}), {"[PRelu \"the_PRelu\"]", "[2,3,4,5] with a constant [1,1,1,3]"}))
      << "lies along the width, which is 5";
  EXPECT_TRUE(mentions(refusal({2, 1, 1, 1}), {"[PRelu \"the_PRelu\"]", "[2,1,1,1]"}));
  NodeChain computed({2, 3, 4, 5});
  computed.add("GlobalAveragePool");
  const std::string slopes = computed.last;
  computed.last = "x";
  computed.add("PRelu", {slopes});
  EXPECT_TRUE(mentions(computed.refusal(), {"[PRelu \"the_PRelu\"]", "needs constants as input 1"}));
  NodeChain whole({2, 3});
  whole.integers("slopes", {1, 2, 3});
  whole.add("PRelu", {"slopes"});
  EXPECT_TRUE(mentions(whole.refusal(), {"[PRelu \"the_PRelu\"]", "floats with integers"}));
}

/// Behind a layer, a residual sum and rows, whose slopes train; a group of channels; and one slope.
TEST(ImportPRelu, BecomesIntegers) {
  NodeChain net({4, 3, 8, 8});
  net.constant("w1", {6, 3, 3, 3}), net.constant("b1", {6}), net.constant("s1", {6, 1, 1});
  net.constant("w2", {6, 3, 1, 1}), net.constant("s2", {6, 1, 1}), net.constant("s3", {6, 1, 1});
  net.constant("w4", {6, 8}), net.constant("s4", {8}), net.constant("w5", {8, 5});
  set_floats(net.constant("s5", {1}), {0.25F});
  net.add("Conv", {"w1", "b1"});
  net.add("PRelu", {"s1"});
  const std::string before = net.last;
  set_int(net.add("Conv", {"w2"}), "group", 2);
  net.add("PRelu", {"s2"});
  net.add("Add", {before});
  net.add("PRelu", {"s3"});
  net.add("GlobalAveragePool");
  net.add("Flatten");
  net.add("MatMul", {"w4"});
  net.add("PRelu", {"s4"});
  net.add("MatMul", {"w5"});
  net.add("PRelu", {"s5"});
  const Graph graph = net.import().graph;
  EXPECT_EQ(std::ranges::count_if(graph.nodes(), [](const auto& node) { return node->type() == "Clip"; }), 4);
  testing::expect_trained_integers(graph);
}

TEST(ImportSub, OfTwoBranchesBecomesIntegers) {
  NodeChain net({4, 3, 8, 8});
  net.constant("w1", {6, 3, 3, 3}), net.constant("w2", {6, 3, 3, 3}), net.constant("dense", {6, 5});
  net.add("Conv", {"w1"});
  net.add("Relu");
  const std::string first = net.last;
  net.last = "x";
  net.add("Conv", {"w2"});
  net.add("Sub", {first});
  net.add("GlobalAveragePool");
  net.add("Flatten");
  net.add("MatMul", {"dense"});
  testing::expect_trained_integers(net.import().graph);
}

}  // namespace
}  // namespace miniqat::importers::import_test
