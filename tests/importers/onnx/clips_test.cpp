#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/graph/source_ops.h"
#include "layers/activations.h"
#include "tests/importers/onnx/node_chain.h"
#include "tests/quantize/convert/trained_integers.h"

// Ops that are made of others, or of which others are made: Clip, Relu6, HardSwish, PRelu, the Sub of two branches.

namespace miniqat::importers::clips_test {
namespace {

using import_test::counted_images, import_test::NodeChain, import_test::result_of, import_test::set_int,
    import_test::set_number, import_test::values_of, testing::mentions;

/// A node that only makes a constant, as PyTorch writes right before its reader.
void add_constant_node(NodeChain& net, const std::string& name, float value) {
  pb::Node& node = *net.graph().add_node();
  node.set_op_type("Constant");
  node.add_output(name);
  pb::Attribute& attribute = *node.add_attribute();
  attribute.set_name("value");
  attribute.set_type(pb::Attribute::TENSOR);
  attribute.mutable_t()->set_data_type(pb::FLOAT);
  attribute.mutable_t()->add_float_data(value);
}

void add_clip(NodeChain& net, float low, float high) {
  if (net.model.opset_import(0).version() >= 11) {
    add_constant_node(net, "low", low), add_constant_node(net, "high", high);
    net.add("Clip", {"low", "high"});
    return;
  }
  pb::Node& clip = net.add("Clip");
  if (std::isfinite(low)) set_number(clip, "min", low);
  set_number(clip, "max", high);
}

std::vector<std::string> types_of(const Graph& graph) {
  std::vector<std::string> types;
  for (const Node* node : graph.nodes()) types.emplace_back(node->type());
  return types;
}

void expect_clipped_to_6(ImportedModel& model) {
  const std::vector<float> x = {-7.5F, -0.0F, 0.0F, 3.25F, 6.0F, 8.0F};
  const Tensor y = result_of(model, Tensor::from<float>({1, 6}, x));
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y.data<float>()[i], std::clamp(x[i], 0.0F, 6.0F)) << x[i];
}

/// x * relu6(x + 3) / 6 in four nodes is one op, unless something else reads a part of it.
TEST(ImportClips, HardSwishIsFoundInItsParts) {
  for (const bool divides : {true, false})
    for (const bool part_is_read : {true, false}) {
      NodeChain net({1, 2});
      net.number("three", 3), net.number("low", 0), net.number("high", 6), net.number("last", divides ? 6 : 1.0F / 6);
      net.add("Add", {"three"});
      net.add("Clip", {"low", "high"});
      net.add("Mul", {"x"});
      const std::string product = net.last;
      net.add(divides ? "Div" : "Mul", {"last"});
      if (part_is_read) net.add("Add", {product});
      ImportedModel model = net.import();
      EXPECT_EQ(model.graph.outputs()[0].node->type(), part_is_read ? "Add" : "HardSwish");
      EXPECT_EQ(model.report.nodes[1].becomes == "part of a HardSwish", !part_is_read);
      const Tensor y = result_of(model, Tensor::from<float>({1, 2}, std::vector{-1.0F, 2.0F}));
      const float whole = part_is_read ? 7 : 1;
      EXPECT_NEAR(y.data<float>()[0], whole * -1.0F * 2 / 6, 1e-6);
      EXPECT_NEAR(y.data<float>()[1], whole * 2.0F * 5 / 6, 1e-6);
    }
}

/// The same as PyTorch's exporter writes it: with nodes for constants, a Relu before the Clip, the division first.
TEST(ImportClips, HardSwishIsFoundInPartsOfPyTorch) {
  for (const std::int64_t opset : {9, 13})
    for (const bool relu : {false, true})
      for (const bool divides_first : {false, true})
        for (const bool divides : {false, true})
          for (const bool part_is_read : {false, true}) {
            NodeChain net({1, 4}, opset);
            add_constant_node(net, "three", 3);
            net.add("Add", {"three"});
            if (relu) net.add("Relu");
            const std::string part = net.last;
            add_clip(net, relu && opset == 9 ? -INFINITY : 0, 6);
            if (!divides_first) net.add("Mul", {"x"});
            add_constant_node(net, "last", divides ? 6 : 1.0F / 6);
            net.add(divides ? "Div" : "Mul", {"last"});
            if (divides_first) net.add("Mul", {"x"});
            const std::string product = net.last;
            if (part_is_read) net.add("Add", {part});
            ImportedModel model = net.import();
            EXPECT_EQ(model.report.nodes[0].op, "Constant");
            if (!part_is_read)
              EXPECT_EQ(types_of(model.graph), (std::vector<std::string>{"Placeholder", "HardSwish"}));
            else
              EXPECT_EQ(std::ranges::count(types_of(model.graph), "HardSwish"), 0);
            const std::vector<float> x = {-4, -1, 2, 5};
            const Tensor y = result_of(model, Tensor::from<float>({1, 4}, x));
            for (std::size_t i = 0; i < x.size(); ++i) {
              const float read = part_is_read ? (relu ? std::max(x[i] + 3, 0.0F) : x[i] + 3) : 0;
              EXPECT_NEAR(y.data<float>()[i], x[i] * std::clamp(x[i] + 3, 0.0F, 6.0F) / 6 + read, 1e-5) << x[i];
            }
          }
}

/// Other bounds, another divisor and another factor are no HardSwish.
TEST(ImportClips, OtherPartsAreNoHardSwish) {
  for (const int change : {0, 1, 2, 3}) {
    NodeChain net({1, 4});
    add_constant_node(net, "three", 3), add_constant_node(net, "last", change == 1 ? 5 : 6);
    net.add("Add", {"three"});
    const std::string sum = net.last;
    add_clip(net, 0, change == 2 ? INFINITY : 6);
    net.add("Div", {"last"});
    net.add("Mul", {change == 3 ? "last" : "x"});
    EXPECT_EQ(std::ranges::count(types_of(net.import().graph), "HardSwish"), change == 0) << change;
  }
}

/// The groups of a convolution are joined before a HardSwish reads them.
TEST(ImportClips, AHardSwishReadsAllGroups) {
  NodeChain net({1, 4, 2, 1});
  net.constant("w", {4, 2, 1, 1});
  set_int(net.add("Conv", {"w"}), "group", 2);
  const Tensor x = Tensor::from<float>({1, 2, 1, 4}, std::vector{0.5F, -1.0F, 2.0F, 0.25F, -0.5F, 1.0F, 3.0F, -2.0F});
  ImportedModel convolved = net.import();
  const Tensor sums = result_of(convolved, x);
  const std::string group_sums = net.last;
  net.number("three", 3), net.number("low", 0), net.number("high", 6), net.number("six", 6);
  net.add("Add", {"three"});
  net.add("Clip", {"low", "high"});
  net.add("Mul", {group_sums});
  net.add("Div", {"six"});
  ImportedModel model = net.import();
  EXPECT_EQ(model.graph.outputs()[0].node->type(), "HardSwish");
  const Tensor y = result_of(model, x);
  for (std::int64_t i = 0; i < sums.elements(); ++i) {
    const float s = sums.data<float>()[i];
    EXPECT_NEAR(y.data<float>()[i], s * std::clamp(s + 3, 0.0F, 6.0F) / 6, 1e-5) << i;
  }
}

/// PyTorch writes relu6() as Relu and Clip.
TEST(ImportClips, AReluAndAClipTo6AreARelu6) {
  for (const std::int64_t opset : {9, 13})
    for (const float low : {-INFINITY, -1.0F, 0.0F})
      for (const bool relu_is_read : {false, true}) {
        NodeChain net({1, 6}, opset);
        net.add("Relu");
        const std::string relu = net.last;
        add_clip(net, low, 6);
        const std::string clipped = net.last;
        if (relu_is_read) net.add("Add", {relu}), net.add("Sub", {relu});
        ImportedModel model = net.import();
        std::vector<std::string> types = {"Placeholder", "Relu6"};
        if (relu_is_read) types = {"Placeholder", "Relu", "Relu6", "Add", "Sub"};
        EXPECT_EQ(types_of(model.graph), types) << opset << " " << low;
        expect_clipped_to_6(model);
      }
  // Groups stay apart.
  NodeChain groups({1, 4, 2, 1}, 9);
  groups.constant("w", {4, 2, 1, 1});
  set_int(groups.add("Conv", {"w"}), "group", 2);
  groups.add("Relu");
  const std::string relu = groups.last;
  add_clip(groups, -INFINITY, 6);
  groups.add("Add", {relu});
  EXPECT_EQ(std::ranges::count(types_of(groups.import().graph), "Relu6"), 2);
}

TEST(ImportClips, OtherBoundsAreAClip) {
  for (const std::int64_t opset : {9, 13})
    for (const auto& [low, high] : {std::pair{-1.0F, 1.0F}, {-INFINITY, 6.0F}, {0.0F, 4.0F}, {0.5F, INFINITY}}) {
      NodeChain net({1, 6}, opset);
      add_clip(net, low, high);
      ImportedModel model = net.import();
      EXPECT_EQ(types_of(model.graph), (std::vector<std::string>{"Placeholder", "Clip"}));
      const std::vector<float> x = {-7.5F, -0.5F, 0.0F, 0.75F, 5.0F, 8.0F};
      const Tensor y = result_of(model, Tensor::from<float>({1, 6}, x));
      for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y.data<float>()[i], std::clamp(x[i], low, high)) << x[i];
    }
  NodeChain none({1, 2});
  add_clip(none, -INFINITY, INFINITY);
  EXPECT_EQ(types_of(none.import().graph), (std::vector<std::string>{"Placeholder"}));
}

TEST(ImportClips, OtherBoundsAreRefused) {
  for (const float high : {-1.0F, 0.0F, NAN}) {
    NodeChain net({1, 2});
    add_clip(net, 0, high);
    EXPECT_NE(net.refusal(), "") << high;
  }
  NodeChain one({1, 2});
  add_clip(one, 0.5F, 0.5F);
  EXPECT_TRUE(mentions(one.refusal(), {"[Clip \"the_Clip\"]", "[0.5, 0.5]", "one number"}));
  NodeChain two({1, 2});
  two.constant("low", {2});
  two.add("Clip", {"low"});
  EXPECT_TRUE(mentions(two.refusal(), {"not one float"}));
}

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

}  // namespace miniqat::importers::clips_test
