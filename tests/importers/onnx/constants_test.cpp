#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>

#include "importers/onnx/literal.h"
#include "tests/importers/onnx/node_chain.h"
#include "tests/quantize/convert/trained_integers.h"

// Numbers that are known while a model is read: what is folded, and what no file may hold.

namespace miniqat::importers::import_test {
namespace {

using testing::mentions;

constexpr float kInfinity = INFINITY;

pb::Node& add_known(NodeChain& net, const std::string& type, const std::vector<std::string>& inputs,
                    const std::string& output) {
  pb::Node& node = *net.graph().add_node();
  node.set_op_type(type);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

TEST(ImportConstants, AnEmptyConstantIsNotCombined) {
  for (const std::int64_t other : {0, 1, 2}) {
    NodeChain net({1, 3});
    net.integers("empty", {});
    net.integers("other", std::vector<std::int64_t>(static_cast<std::size_t>(other), 1));
    add_known(net, "Add", {"empty", "other"}, "sum");
    net.add("Relu");
    EXPECT_TRUE(mentions(net.refusal(), {"[Add \"sum\"]", "empty"})) << other;
  }
}

TEST(ImportConstants, NoFileOfExternalDataMayBreakTheReader) {
  NodeChain net({1, 1});
  pb::Constant& w = net.constant("w", {1, 2});
  w.set_data_location(1);
  w.add_external_data()->set_key("location");
  net.add("MatMul", {"w"});
  w.mutable_external_data(0)->set_value(std::string(300, 'a'));
  EXPECT_TRUE(mentions(net.refusal(), {"\"w\"", "keeps its data in", "too long"}));
  std::filesystem::create_symlink("b", net.directory.path() / "a");
  std::filesystem::create_symlink("a", net.directory.path() / "b");
  w.mutable_external_data(0)->set_value("a");
  EXPECT_TRUE(mentions(net.refusal(), {"\"w\"", "keeps its data in \"a\""}));
}

TEST(ImportConstants, WeightsAreFinite) {
  NodeChain net({1, 3});
  net.constant("w", {3, 2}).set_float_data(1, -kInfinity);
  net.add("MatMul", {"w"});
  EXPECT_TRUE(mentions(net.refusal(), {"\"w\"", "infinite"}));

  NodeChain scaled({1, 3});
  scaled.constant("w", {3, 2});
  set_number(scaled.add("Gemm", {"w"}), "alpha", NAN);
  EXPECT_TRUE(mentions(scaled.refusal(), {"[Gemm \"the_Gemm\"] cannot be built", "\"w\"", "finite"}));

  for (const float number : {kInfinity, -kInfinity}) {
    NodeChain product({1, 3});
    product.number("c", number);
    product.add("Mul", {"c"});
    EXPECT_TRUE(mentions(product.refusal(), {"[Mul \"the_Mul\"]", "infinite"}));
  }
  NodeChain nan({1, 3});
  set_number(add_known(nan, "Constant", {}, "c"), "value_float", NAN);
  nan.add("Add", {"c"});
  EXPECT_TRUE(mentions(nan.refusal(), {"[Add \"the_Add\"]", "NaN"}));

  NodeChain clip({1, 3});
  clip.number("low", 0);
  clip.number("high", kInfinity);
  clip.add("Clip", {"low", "high"});
  EXPECT_EQ(clip.refusal(), "");
}

TEST(ImportConstants, AHardSigmoidHasANumberAsItsSlope) {
  NodeChain net({1, 3});
  pb::Node& node = net.add("HardSigmoid");
  set_number(node, "alpha", NAN);
  EXPECT_TRUE(mentions(net.refusal(), {"[HardSigmoid \"the_HardSigmoid\"]", "alpha"}));
  node.mutable_attribute(0)->set_f(1.0F / 6);
  ImportedModel model = net.import();
  const Tensor y = result_of(model, Tensor::from<float>({1, 3}, std::vector{-9.0F, 0.0F, 1.5F}));
  EXPECT_NEAR(y.data<float>()[0], 0, 1e-6);
  EXPECT_NEAR(y.data<float>()[1], 0.5, 1e-6);
  EXPECT_NEAR(y.data<float>()[2], 0.75, 1e-6);
  // By its own input it is a HardSwish.
  net.add("Mul", {"x"});
  EXPECT_EQ(net.import().graph.outputs()[0].node->type(), "HardSwish");
}

TEST(ImportConstants, ExtentsDoNotWrapAround) {
  // 3 times the second factor is 20 modulo 2^64.
  for (const std::vector<std::int64_t>& extents : {std::vector<std::int64_t>{2, 3, 6148914691236517212},
                                                   {2, 1, 3, 6148914691236517212},
                                                   {2, INT64_MAX, INT64_MAX}}) {
    NodeChain net({2, 20});
    net.integers("shape", extents);
    net.add("Reshape", {"shape"});
    EXPECT_TRUE(mentions(net.refusal(), {"[Reshape \"the_Reshape\"]", "too large"})) << extents.size();
  }
  NodeChain empty({2, 20});
  empty.constant("c", {0, 1}).set_dims(1, INT64_MAX);
  empty.graph().mutable_initializer(0)->add_dims(INT64_MAX);
  add_known(empty, "Transpose", {"c"}, "turned");
  empty.add("Relu");
  EXPECT_EQ(empty.refusal(), "");
  NodeChain least({2, 20});
  least.integers("shape", {INT64_MIN, 20});
  least.add("Reshape", {"shape"});
  EXPECT_TRUE(mentions(least.refusal(), {"\"shape\"", "-2^63"}));
}

TEST(ImportConstants, BorderOfPyTorchIsFolded) {
  // How torch.onnx writes nn.ZeroPad2d((1, 2, 3, 0)) since opset 11: left, right, top, bottom; then zeros, reversed.
  NodeChain net({1, 1, 1, 1});
  net.integers("pad", {1, 2, 3, 0});
  net.integers("four", {4});
  net.integers("pairs", {-1, 2});
  net.integers("minus_one", {-1});
  net.integers("least", {-INT64_MAX});
  net.integers("zero", {0});
  pb::Node& zeros = add_known(net, "ConstantOfShape", {"four"}, "zeros");
  pb::Attribute& value = *zeros.add_attribute();
  value.set_name("value");
  value.set_type(pb::Attribute::TENSOR);
  value.mutable_t()->set_data_type(pb::INT64);
  value.mutable_t()->add_dims(1);
  value.mutable_t()->add_int64_data(0);
  set_int(add_known(net, "Concat", {"pad", "zeros"}, "all"), "axis", 0);
  add_known(net, "Reshape", {"all", "pairs"}, "table");
  add_known(net, "Slice", {"table", "minus_one", "least", "zero", "minus_one"}, "reversed");
  set_ints(add_known(net, "Transpose", {"reversed"}, "turned"), "perm", {1, 0});
  add_known(net, "Reshape", {"turned", "minus_one"}, "flat");
  set_int(add_known(net, "Cast", {"flat"}, "border"), "to", pb::INT64);
  net.add("Pad", {"border"});
  ImportedModel model = net.import();
  const Tensor y = result_of(model, Tensor::from<float>({1, 1, 1, 1}, std::vector{5.0F}));
  ASSERT_EQ(y.shape(), (Shape{1, 4, 4, 1}));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(y.data<float>()[i], i == 13 ? 5 : 0) << i;
}

TEST(ImportConstants, SlicesStopAtTheEnds) {
  struct Case {
    std::int64_t start, end, step;
    std::vector<std::int64_t> result;
  };
  for (const Case& c : std::vector<Case>{{1, 3, 1, {3, 4}},
                                         {-3, INT64_MAX, 2, {3, 5}},
                                         {-1, -INT64_MAX, -2, {5, 3}},
                                         {INT64_MAX, 0, -1, {5, 4, 3}},
                                         {1, 1, 1, {}}}) {
    NodeChain net({1, 120});
    net.integers("list", {2, 3, 4, 5});
    for (const auto& [name, number] : {std::pair{"start", c.start}, {"end", c.end}, {"zero", 0}, {"step", c.step}})
      net.integers(name, {number});
    net.integers("batch", {1});
    net.integers("rest", {-1, 1});
    add_known(net, "Slice", {"list", "start", "end", "zero", "step"}, "part");
    set_int(add_known(net, "Concat", {"batch", "part", "rest"}, "shape"), "axis", 0);
    net.add("Reshape", {"shape"});
    std::vector<std::int64_t> wanted = {1};
    wanted.insert(wanted.end(), c.result.begin(), c.result.end());
    const std::int64_t taken = std::accumulate(c.result.begin(), c.result.end(), std::int64_t{1}, std::multiplies<>());
    wanted.insert(wanted.end(), {120 / taken, 1});
    EXPECT_EQ(net.import().graph.outputs()[0].shape(), Shape{std::span<const std::int64_t>(wanted)});
  }
}

TEST(ImportConstants, SizesMayBeFloatsForAWhile) {
  const auto refusal = [](float factor) {
    NodeChain net({2, 6});
    net.integers("sizes", {0, 2, 3});
    net.constant("real", {3});
    for (int i = 0; i < 3; ++i)
      net.graph().mutable_initializer(1)->set_float_data(i, static_cast<float>(i == 0 ? 0 : i + 1) * factor);
    set_int(add_known(net, "Cast", {"real"}, "whole"), "to", pb::INT64);
    set_int(add_known(net, "Cast", {"sizes"}, "floats"), "to", pb::FLOAT);
    set_int(add_known(net, "Cast", {"floats"}, "back"), "to", pb::INT32);
    net.add("Reshape", {"whole"});
    net.add("Reshape", {"back"});
    return net.refusal();
  };
  EXPECT_EQ(refusal(1), "");
  EXPECT_TRUE(mentions(refusal(0.75F), {"[Cast \"whole\"]", "1.5"}));
  EXPECT_TRUE(mentions(refusal(1e30F), {"[Cast \"whole\"]", "integer"}));
}

TEST(ImportConstants, ACastToHalfPrecisionRounds) {
  NodeChain net({1, 7});
  pb::Constant& reals = net.constant("reals", {7});
  const std::vector<float> given = {0.1F, -3.3F, 2049, 2051, 3e-6F, 1e-9F, 65519};
  for (int i = 0; i < 7; ++i) reals.set_float_data(i, given[static_cast<std::size_t>(i)]);
  set_int(add_known(net, "Cast", {"reals"}, "halves"), "to", pb::FLOAT16);
  set_int(add_known(net, "Cast", {"halves"}, "floats"), "to", pb::FLOAT);
  net.add("Add", {"floats"});
  ImportedModel model = net.import();
  EXPECT_EQ(values_of(result_of(model, Tensor(Shape{1, 7}))),
            (std::vector<float>{0.0999755859375F, -3.30078125F, 2048, 2052, 50.0F / (1 << 24), 0, 65504}));
  reals.set_float_data(0, -65520);
  EXPECT_TRUE(mentions(net.refusal(), {"[Cast \"halves\"]", "-65520", "FLOAT16"}));
}

/// w is [-3, -2], x is 2.
TEST(ImportConstants, ABiasMayBeARowOrANumber) {
  struct Case {
    std::vector<std::int64_t> extents;
    float beta, first, second;
  };
  for (const Case& c : std::vector<Case>{
           {{1, 2}, 1, -9, -6}, {{2}, 2, -12, -8}, {{}, 1, -9, -7}, {{1}, 0.5F, -7.5F, -5.5F}, {{1, 1}, 1, -9, -7}}) {
    NodeChain net({1, 1});
    net.constant("w", {1, 2});
    net.constant("b", c.extents);
    set_number(net.add("Gemm", {"w", "b"}), "beta", c.beta);
    ImportedModel model = net.import();
    const Tensor y = result_of(model, Tensor::from<float>({1, 1}, std::vector{2.0F}));
    EXPECT_EQ(y.data<float>()[0], c.first) << extents_text(c.extents);
    EXPECT_EQ(y.data<float>()[1], c.second) << extents_text(c.extents);
  }
}

/// A bias for each place in the batch is none.
TEST(ImportConstants, ABiasOfSeveralRowsHasEqualOnes) {
  for (const auto& [extents, equal] : std::vector<std::pair<std::vector<std::int64_t>, bool>>{
           {{3, 2}, true}, {{3, 2}, false}, {{3, 1}, true}, {{3, 1}, false}}) {
    NodeChain net({3, 1});
    net.constant("w", {1, 2});
    pb::Constant& bias = net.constant("b", extents);
    for (int i = 0; equal && i < bias.float_data_size(); ++i)
      bias.set_float_data(i, extents[1] == 2 && i % 2 == 1 ? 4 : 5);
    net.add("Gemm", {"w", "b"});
    if (!equal) {
      EXPECT_TRUE(mentions(net.refusal(), {"[Gemm \"the_Gemm\"]", "another row of \"b\"", "each example"}));
      continue;
    }
    ImportedModel model = net.import();
    const Tensor y = result_of(model, Tensor::from<float>({3, 1}, std::vector{0.0F, 0.0F, 0.0F}));
    EXPECT_EQ(y.data<float>()[4], 5);
    EXPECT_EQ(y.data<float>()[5], extents[1] == 2 ? 4 : 5);
  }
  NodeChain wide({3, 1});
  wide.constant("w", {1, 2});
  wide.constant("b", {3});
  wide.add("Gemm", {"w", "b"});
  EXPECT_TRUE(mentions(wide.refusal(), {"needs 2 floats as \"b\", which is [3]"}));
}

/// Every form in which a Constant has floats or integers, as the bias and the shape of one network.
TEST(ImportConstants, AConstantOfNumbers) {
  struct Case {
    std::vector<float> bias;
    bool alone;
    float first, second;
  };
  // w is [-3, -2], x is 2.
  for (const Case& c : {Case{{7, 0.5F}, false, 1, -3.5F}, Case{{7}, false, 1, 3}, Case{{7}, true, 1, 3}}) {
    NodeChain net({1, 1, 1, 1});
    net.constant("w", {1, 2});
    pb::Node& bias = add_known(net, "Constant", {}, "bias");
    c.alone ? set_number(bias, "value_float", c.bias[0]) : set_floats(bias, "value_floats", c.bias);
    set_ints(add_known(net, "Constant", {}, "sizes"), "value_ints", {0, 1, 9});
    set_int(add_known(net, "Constant", {}, "second"), "value_int", 1);
    set_ints(add_known(net, "Constant", {}, "rest"), "value_ints", {-1});
    add_known(net, "Gather", {"sizes", "second"}, "one");
    set_ints(add_known(net, "Unsqueeze", {"one"}, "ones"), "axes", {0});
    net.model.mutable_opset_import(0)->set_version(12);
    set_int(add_known(net, "Concat", {"ones", "rest"}, "shape"), "axis", 0);
    net.add("Reshape", {"shape"});
    net.add("Gemm", {"w", "bias"});
    ImportedModel model = net.import();
    EXPECT_EQ(values_of(result_of(model, Tensor::from<float>({1, 1, 1, 1}, std::vector{2.0F}))),
              (std::vector<float>{c.first, c.second}));
  }
}

TEST(ImportConstants, ConstantsOfOtherThingsAreRefused) {
  const auto refusal = [](const std::function<void(pb::Node&)>& fill) {
    NodeChain net({1, 2});
    fill(add_known(net, "Constant", {}, "c"));
    net.add("Add", {"c"});
    return net.refusal();
  };
  EXPECT_EQ(refusal([](pb::Node& n) { set_floats(n, "value_floats", {1, 2}); }), "");
  for (const auto& [number, word] : {std::pair{NAN, "NaN"}, {kInfinity, "infinite"}})
    EXPECT_TRUE(mentions(refusal([number = number](pb::Node& n) {
                           set_floats(n, "value_floats", {1, number});
                         }),
                         {"[Constant \"c\"]", word}));
  EXPECT_TRUE(
      mentions(refusal([](pb::Node& n) { set_ints(n, "value_ints", {INT64_MIN}); }), {"[Constant \"c\"]", "-2^63"}));
  EXPECT_TRUE(mentions(refusal([](pb::Node& n) {
                         set_ints(n, "value_floats", {1, 2});
                       }),
                       {"[Constant \"c\"]", "value_floats", "another type"}));
  EXPECT_TRUE(mentions(refusal([](pb::Node& n) {
                         set_number(n, "value_float", 1);
                         set_floats(n, "value_floats", {1, 2});
                       }),
                       {"[Constant \"c\"]", "\"value_floats\"", "does not know"}));
  EXPECT_TRUE(mentions(refusal([](pb::Node& n) { set_int(n, "value_string", 1); }), {"[Constant \"c\"]", "neither"}));
  EXPECT_TRUE(
      mentions(refusal([](pb::Node& n) { set_floats(n, "value_floats", {}); }), {"[Add \"the_Add\"]", "[1,0]"}));
  // The bound of a Clip.
  NodeChain clip({1, 2});
  set_floats(add_known(clip, "Constant", {}, "low"), "value_floats", {0});
  set_floats(add_known(clip, "Constant", {}, "high"), "value_floats", {kInfinity});
  clip.add("Clip", {"low", "high"});
  EXPECT_EQ(clip.import().graph.outputs()[0].node->type(), "Relu");
}

/// A picture's preprocessing, a scale layer and a Clip, from ONNX to integers.
TEST(ImportConstants, ConstantsBecomeIntegers) {
  NodeChain net({4, 3, 8, 8});
  net.number("range", 1.5F), net.number("low", -1), net.number("high", 1);
  net.constant("mean", {3, 1, 1}), net.constant("std", {1, 3, 1, 1}), net.constant("w", {6, 3, 3, 3});
  net.constant("factors", {6, 1, 1}), net.constant("offsets", {6, 1, 1}), net.constant("dense", {6, 5});
  for (int i = 0; i < 3; ++i) net.graph().mutable_initializer(4)->set_float_data(i, 0.5F + static_cast<float>(i));
  net.add("Div", {"range"});
  net.add("Sub", {"mean"});
  net.add("Div", {"std"});
  net.add("Conv", {"w"});
  net.add("Relu");
  net.add("Mul", {"factors"});
  net.add("Add", {"offsets"});
  net.add("Clip", {"low", "high"});
  net.add("GlobalAveragePool");
  net.add("Flatten");
  net.add("MatMul", {"dense"});
  testing::expect_trained_integers(net.import().graph);
}

}  // namespace
}  // namespace miniqat::importers::import_test
