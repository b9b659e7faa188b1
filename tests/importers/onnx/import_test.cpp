#include "importers/onnx/import.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <functional>

#include "layers/conv2d.h"
#include "tests/importers/onnx/node_chain.h"

namespace miniqat::importers::import_test {
namespace {

using testing::mentions;

TEST(ImportOnnx, RowsBehindFlattenFollowTheImage) {
  NodeChain net({1, 2, 2, 3});
  net.constant("w", {12, 1}).clear_float_data();
  for (int i = 0; i < 12; ++i) net.graph().mutable_initializer(0)->add_float_data(static_cast<float>(1 << i));
  net.add("Flatten");
  net.add("Relu");
  net.add("Gemm", {"w"});
  ImportedModel model = net.import();
  // Pixel (y, x) of channel c is column 6 c + 3 y + x of ONNX's rows.
  for (int c = 0; c < 2; ++c)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 3; ++x) {
        Tensor image(Shape{1, 2, 3, 2});
        image.data<float>()[(y * 3 + x) * 2 + c] = 1;
        EXPECT_EQ(result_of(model, image).data<float>()[0], static_cast<float>(1 << (6 * c + 3 * y + x)));
      }
}

TEST(ImportOnnx, PadsAreExplicitAndABorderBecomesThem) {
  NodeChain net({1, 1, 4, 6});
  net.constant("w", {2, 1, 3, 3});
  net.integers("border", {0, 0, 0, 1, 0, 0, 0, 0});
  net.add("Pad", {"border"});
  pb::Node& conv = net.add("Conv", {"w"});
  set_ints(conv, "strides", {2, 2});
  set_ints(conv, "pads", {1, 0, 1, 1});
  const ImportedModel model = net.import();
  const auto* attributes = model.graph.outputs()[0].node->as<layers::Conv2d>();
  ASSERT_NE(attributes, nullptr);
  EXPECT_EQ(attributes->padding, Padding::kExplicit);
  EXPECT_EQ(attributes->pads, (Pads{1, 1, 1, 1}));
  EXPECT_EQ(model.graph.outputs()[0].shape(), (Shape{1, 2, 3, 2}));
}

TEST(ImportOnnx, ABiasBeforeABatchNormIsTakenOffItsMean) {
  NodeChain net({1, 1});
  for (const char* name : {"w", "bias", "gamma", "beta", "mean", "variance"}) {
    pb::Constant& constant =
        net.constant(name, name == std::string("w") ? std::vector<std::int64_t>{1, 1} : std::vector<std::int64_t>{1});
    constant.set_float_data(0, name == std::string("bias") ? 5 : 2);
  }
  net.add("Gemm", {"w", "bias"});
  net.add("BatchNormalization", {"gamma", "beta", "mean", "variance"});
  ImportedModel model = net.import();
  EXPECT_EQ(model.graph.outputs()[0].node->input(0).node->type(), "MatMul");
  const Tensor y = result_of(model, Tensor::from<float>({1, 1}, std::vector{3.0F}));
  EXPECT_NEAR(y.data<float>()[0], 2 * (2 * 3 + 5 - 2) / std::sqrt(2 + 1e-5F) + 2, 1e-5);
}

TEST(ImportOnnx, AnOpenBatchIsAsAskedOr128) {
  NodeChain net({0, 3, 8, 6});
  net.add("Relu");
  EXPECT_EQ(net.import().graph.outputs()[0].shape(), (Shape{128, 8, 6, 3}));
  EXPECT_EQ(net.import(5).graph.outputs()[0].shape(), (Shape{5, 8, 6, 3}));
}

TEST(ImportOnnx, AnOpMeansTheSameInEveryOpset) {
  std::vector<float> wanted;
  for (std::int64_t opset = 14; opset <= kNewestOpset; ++opset) {
    NodeChain net({1, 2, 6, 5}, opset);
    net.constant("w", {3, 2, 3, 3});
    net.constant("dense", {12, 4});
    net.integers("rows", {1, -1});
    net.add("Conv", {"w"});
    net.add("HardSwish");
    pb::Node& pool = net.add("MaxPool");
    set_ints(pool, "kernel_shape", {2, 2});
    set_ints(pool, "strides", {2, 2});
    set_int(pool, "ceil_mode", 1);
    net.add("Reshape", {"rows"});
    net.add("Gemm", {"dense"});
    ImportedModel model = net.import();
    const std::vector<float> got = values_of(result_of(model, counted_images({1, 6, 5, 2})));
    if (wanted.empty()) wanted = got;
    EXPECT_EQ(got, wanted) << "opset " << opset;
  }
}

TEST(ImportOnnx, AnOpenImageSizeIsAsAsked) {
  NodeChain net({0, 3, 0, 0});
  net.add("Relu");
  EXPECT_TRUE(mentions(net.refusal(), {"axis 2", "--image-size"}));
  const ImportedModel model = import_onnx(net.path(), {.batch_size = 2, .height = 8, .width = 6});
  EXPECT_EQ(model.graph.outputs()[0].shape(), (Shape{2, 8, 6, 3}));
  NodeChain closed({0, 3, 8, 8});
  closed.add("Relu");
  closed.import();
  EXPECT_TRUE(mentions(testing::error_of([&] { import_onnx(closed.path(), {.height = 8, .width = 6}); }),
                       {"8 pixels along axis 3, not 6"}));

  NodeChain channels_last({0, 0, 0, 3});
  set_ints(channels_last.add("Transpose"), "perm", {0, 3, 1, 2});
  channels_last.add("GlobalAveragePool");
  EXPECT_TRUE(mentions(channels_last.refusal(), {"axis 1", "--image-size"}));
  const ImportedModel turned = import_onnx(channels_last.path(), {.batch_size = 2, .height = 8, .width = 6});
  EXPECT_EQ(turned.graph.at("x").output().shape(), (Shape{2, 8, 6, 3}));
  NodeChain closed_last({0, 8, 6, 3});
  set_ints(closed_last.add("Transpose"), "perm", {0, 3, 1, 2});
  closed_last.add("GlobalAveragePool");
  closed_last.import();
  EXPECT_EQ(testing::error_of([&] { import_onnx(closed_last.path(), {.height = 8, .width = 6}); }), "");
  EXPECT_TRUE(mentions(testing::error_of([&] { import_onnx(closed_last.path(), {.height = 8, .width = 8}); }),
                       {"6 pixels along axis 2, not 8"}));
}

/// As tf2onnx writes the Transpose of grey images [n, h, w, 1]. The shape may be an initializer or a Constant node.
TEST(ImportOnnx, AReshapeMayMoveOneChannel) {
  for (const std::int64_t batch : {-1, 0, 1}) {
    NodeChain first({1, 1, 4, 3}), last({1, 4, 3, 1}), node({1, 4, 3, 1}), list({1, 4, 3, 1});
    const std::vector<std::int64_t> shape = {batch, 1, 4, 3};
    last.integers("shape", shape);
    pb::Node& constant = *node.graph().add_node();
    node.integers("shape", shape);
    pb::Attribute& value = *constant.add_attribute();
    value.set_name("value");
    value.set_type(pb::Attribute::TENSOR);
    *value.mutable_t() = node.graph().initializer(0);
    node.graph().clear_initializer();
    set_ints(*list.graph().add_node(), "value_ints", shape);
    for (NodeChain* net : {&node, &list}) {
      net->graph().mutable_node(0)->set_op_type("Constant");
      net->graph().mutable_node(0)->add_output("shape");
    }
    for (NodeChain* net : {&last, &node, &list}) net->add("Reshape", {"shape"});
    for (NodeChain* net : {&first, &last, &node, &list}) {
      net->constant("w", {2, 1, 2, 2});
      net->add("Conv", {"w"});
    }
    const Tensor x = counted_images({1, 4, 3, 1});
    ImportedModel wanted = first.import();
    for (NodeChain* net : {&last, &node, &list}) {
      ImportedModel model = net->import();
      ASSERT_EQ(model.graph.at("x").output().shape(), (Shape{1, 4, 3, 1}));
      EXPECT_EQ(values_of(result_of(model, x)), values_of(result_of(wanted, x)));
    }
  }
}

/// Each observes batches of its own in training.
TEST(ImportOnnx, BatchNormsShareNoStatistics) {
  NodeChain net({1, 2});
  for (const char* name : {"gamma", "beta", "mean", "variance"}) net.constant(name, {2});
  for (int i = 0; i < 2; ++i) net.add("BatchNormalization", {"gamma", "beta", "mean", "variance"});
  const ImportedModel model = net.import();
  const Node& second = *model.graph.outputs()[0].node;
  const Node& first = *second.input(0).node;
  for (const int parameter : {1, 2}) EXPECT_EQ(second.input(parameter), first.input(parameter));
  for (const int statistic : {3, 4}) EXPECT_NE(second.input(statistic).name(), first.input(statistic).name());
  EXPECT_EQ(first.input(3).name(), "the_BatchNormalization/BatchNorm/moving_mean");
  EXPECT_EQ(model.variables.size(), 6U);
}

TEST(ImportOnnx, HardSigmoidsOfAnySlope) {
  NodeChain net({1, 4});
  pb::Node& node = net.add("HardSigmoid");
  for (const auto& [name, value] : {std::pair("alpha", 0.5F), std::pair("beta", 0.25F)}) {
    pb::Attribute& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(pb::Attribute::FLOAT);
    attribute.set_f(value);
  }
  ImportedModel model = net.import();
  const Tensor y = result_of(model, Tensor::from<float>({1, 4}, std::vector{-1.0F, 0.0F, 1.0F, 2.0F}));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y.data<float>()[i], (std::array{0.0F, 0.25F, 0.75F, 1.0F}[i]), 1e-6);
}

TEST(ImportOnnx, AReshapeMayMoveNothing) {
  for (const auto& [extents, mixes] : std::vector<std::pair<std::vector<std::int64_t>, bool>>{
           {{0, 2, 6, 1}, false}, {{1, -1}, false}, {{1, 2, 6}, false}, {{1, 3, 2, 2}, true}, {{1, 3, 4}, true}}) {
    NodeChain net({1, 2, 2, 3});
    net.integers("shape", extents);
    net.add("Reshape", {"shape"});
    net.add("Relu");
    if (extents.size() == 2) net.constant("w", {12, 2}), net.add("MatMul", {"w"});
    EXPECT_EQ(mentions(net.refusal(), {"[Reshape \"the_Reshape\"]", "mixes channels and space"}), mixes);
  }
}

TEST(ImportOnnx, ASoftmaxAtTheEndIsLeftOut) {
  NodeChain net({2, 5});
  net.add("Softmax");
  const ImportedModel model = net.import();
  EXPECT_EQ(model.graph.size(), 1U);
  ASSERT_EQ(model.report.notes.size(), 1U);
  const ImportedModel whole = import_onnx(net.path(), {.keeps_softmax = true});
  EXPECT_EQ(whole.graph.outputs()[0].node->type(), "Softmax");
  EXPECT_TRUE(mentions(whole.report.notes.at(0), {"the final Softmax", "stays: no loss of this task has one"}));
  NodeChain logarithms({2, 5});
  logarithms.add("LogSoftmax");
  EXPECT_EQ(logarithms.refusal(), "");
  EXPECT_TRUE(mentions(testing::error_of([&] { import_onnx(logarithms.path(), {.keeps_softmax = true}); }),
                       {"[LogSoftmax \"the_LogSoftmax\"]", "a network for classes"}));
}

/// A file of several outputs, of which one is wanted: what only others need is not inside the network.
TEST(ImportOnnx, TheOutputThatIsWantedIsTheEnd) {
  for (const std::string type : {"Softmax", "LogSoftmax"}) {
    NodeChain net({2, 5});
    for (const std::string& op : {std::string("Relu"), type, std::string("Sigmoid")}) net.add(op);
    net.write();
    for (const char* other : {"t1", "t2"}) net.graph().add_output()->set_name(other);
    std::ofstream(net.path(), std::ios::binary) << net.model.SerializeAsString();
    const auto refusal_of = [&](const std::string& output) {
      return testing::error_of([&] { import_onnx(net.path(), {.output = output}); });
    };
    const ImportedModel end = import_onnx(net.path(), {.output = "t2"});
    EXPECT_TRUE(mentions(end.report.notes.at(0), {"the final " + type, "is left out"}));
    EXPECT_EQ(end.graph.outputs()[2].name(), "the_Relu/Relu");
    EXPECT_EQ(refusal_of("t1"), "") << type;
    for (const char* inside : {"t3", "", "the_Relu/Relu"})
      EXPECT_TRUE(mentions(refusal_of(inside), {type == "Softmax" ? "" : "not the end"})) << type << inside;
  }
}

/// A Softmax inside the network, or of each pixel, is an op; integers have none.
TEST(ImportOnnx, ASoftmaxElsewhereIsAnOp) {
  NodeChain net({2, 5});
  net.add("Softmax");
  net.add("Relu");
  ImportedModel rows = net.import();
  EXPECT_EQ(rows.graph.size(), 3U);
  Tensor y =
      result_of(rows, Tensor::from<float>({2, 5}, std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, std::log(6.0F)}));
  EXPECT_NEAR(y.data<float>()[4], 0.2, 1e-6);
  EXPECT_NEAR(y.data<float>()[9], 0.6, 1e-6);
  for (const std::int64_t axis : {1, -3}) {
    NodeChain pixels({1, 2, 1, 2});
    set_int(pixels.add("Softmax"), "axis", axis);
    ImportedModel model = pixels.import();
    y = result_of(model, Tensor::from<float>({1, 1, 2, 2}, std::vector<float>{0, std::log(3.0F), 1, 1}));
    const std::vector<float> wanted = {0.25F, 0.75F, 0.5F, 0.5F};
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(y.data<float>()[i], wanted[i], 1e-6);
  }
  // Before opset 13 it is over all axes, of which one has several numbers.
  NodeChain old({1, 2, 1, 1}, 11);
  set_ints(old.add("Transpose"), "perm", {0, 2, 3, 1});
  set_int(old.add("Softmax"), "axis", 1);
  ImportedModel channels_last = old.import();
  y = result_of(channels_last, Tensor::from<float>({1, 1, 1, 2}, std::vector<float>{0, std::log(3.0F)}));
  EXPECT_NEAR(y.data<float>()[1], 0.75, 1e-6);
  const auto refusal = [](const std::string& type, std::int64_t axis, std::int64_t opset) {
    NodeChain images({1, 2, 3, 2}, opset);
    set_int(images.add(type), "axis", axis);
    return images.refusal();
  };
  EXPECT_TRUE(mentions(refusal("Softmax", 3, 13), {"[Softmax \"the_Softmax\"]", "axis 3 of [1,2,3,2]", "channels"}));
  EXPECT_TRUE(mentions(refusal("Softmax", 0, 13), {"axis 0 of [1,2,3,2]"}));
  EXPECT_TRUE(mentions(refusal("Softmax", 1, 11), {"several axes", "before opset 13"}));
  EXPECT_TRUE(mentions(refusal("LogSoftmax", 1, 13), {"[LogSoftmax \"the_LogSoftmax\"]", "not the end"}));
}

TEST(ImportOnnx, AllOpsWithoutCounterpartAreNamedAtOnce) {
  NodeChain net({1, 2, 3, 2});
  // A node that would be refused before the others.
  set_int(net.add("Softmax"), "axis", 0);
  for (const char* type : {"Tanh", "Erf", "Tanh", "Pow", "Erf"}) net.add(type);
  EXPECT_TRUE(mentions(net.refusal(),
                       {"[Tanh \"the_Tanh\"]", "does not import; the same goes for the model's Erf, Pow; it imports"}));
  NodeChain turned({1, 2, 3, 2});
  turned.add("ConvTranspose");
  turned.add("Erf");
  EXPECT_TRUE(mentions(turned.refusal(), {"transposed convolution", "the same goes for the model's Erf; "}));
}

TEST(ImportOnnx, WhatHasNoCounterpartIsRefusedByName) {
  struct Case {
    std::string type;
    std::function<void(NodeChain&, pb::Node&)> change;
    std::vector<std::string> words;
  };
  const auto nothing = [](NodeChain&, pb::Node&) {};
  const std::vector<Case> cases = {
      {"Erf", nothing, {"[Erf \"the_Erf\"]", "does not import", "Conv"}},
      {"QuantizeLinear", nothing, {"quantized already"}},
      // Whatever else of such a model has no counterpart.
      {"QLinearConv",
       [](NodeChain& c, pb::Node&) { c.constant("w", {2}).set_data_type(22); },
       {"[QLinearConv", "already"}},
      {"ConvInteger",
       [](NodeChain& c, pb::Node&) {
         c.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(pb::UINT8);
       },
       {"quantized already"}},
      {"DequantizeLinear", [](NodeChain&, pb::Node& n) { n.set_domain("com.microsoft"); }, {"quantized already"}},
      {"MatMulInteger", [](NodeChain& c, pb::Node&) { c.model.mutable_opset_import(0)->set_version(29); }, {"already"}},
      {"ConvTranspose", nothing, {"transposed convolution"}},
      {"Relu", [](NodeChain&, pb::Node& n) { n.set_domain("com.example"); }, {"com.example"}},
      {"Relu", [](NodeChain&, pb::Node& n) { set_int(n, "slope", 1); }, {"\"slope\""}},
      {"Relu", [](NodeChain&, pb::Node& n) { n.set_input(0, "t1"); }, {"\"t1\"", "before it"}},
      {"Relu", [](NodeChain&, pb::Node& n) { n.clear_input(); }, {"left out"}},
      {"Relu", [](NodeChain&, pb::Node& n) { n.set_output(0, "x"); }, {"made twice"}},
      {"Relu",
       [](NodeChain& c, pb::Node&) { c.model.mutable_opset_import(0)->set_version(29); },
       {"opset 29", "7 to 28"}},
      {"MaxPool", [](NodeChain&, pb::Node& n) { set_ints(n, "kernel_shape", {2}); }, {"1 number", "kernel_shape"}},
      {"MaxPool",
       [](NodeChain&, pb::Node& n) {
         set_ints(n, "kernel_shape", {2, 2}), set_ints(n, "pads", {2, 0, 0, 0});
       },
       {"less than the window"}},
      {"Transpose",
       [](NodeChain&, pb::Node& n) {
         set_ints(n, "perm", {1, 0, 2, 3});
       },
       {"batch axis"}},
      {"Flatten", [](NodeChain&, pb::Node& n) { set_int(n, "axis", 2); }, {"axis 2"}},
      {"Flatten", [](NodeChain&, pb::Node& n) { set_int(n, "axis", INT64_MAX); }, {"axis 9223372036854775807"}},
  };
  for (const Case& c : cases) {
    NodeChain net({1, 4, 6, 5});
    c.change(net, net.add(c.type));
    EXPECT_TRUE(mentions(net.refusal(), c.words)) << c.type << ": " << net.refusal();
  }
  for (const std::int64_t count : {2, 17}) {
    NodeChain groups({1, 34, 6, 5});
    groups.constant("w", {34, 2, 3, 3});
    set_int(groups.add("Conv", {"w"}), "group", count);
    EXPECT_TRUE(mentions(groups.refusal(), {"[Conv \"the_Conv\"]", count == 2 ? "do not fit" : "up to 16 groups"}));
  }
}

TEST(ImportOnnx, DamagedConstantsAreRefused) {
  const auto refusal = [](const std::function<void(pb::Constant&)>& damage) {
    NodeChain net({1, 3});
    damage(net.constant("w", {3, 2}));
    net.add("MatMul", {"w"});
    return net.refusal();
  };
  const auto external = [](pb::Constant& w, const std::string& location) {
    w.clear_float_data();
    w.set_data_location(1);
    pb::Property& property = *w.add_external_data();
    property.set_key("location");
    property.set_value(location);
  };
  EXPECT_EQ(refusal([](pb::Constant&) {}), "");
  EXPECT_TRUE(mentions(refusal([](pb::Constant& w) { w.set_dims(0, -3); }), {"\"w\"", "negative"}));
  EXPECT_TRUE(mentions(refusal([](pb::Constant& w) { w.set_dims(0, INT64_MAX); }), {"\"w\"", "elements"}));
  EXPECT_TRUE(mentions(refusal([](pb::Constant& w) { w.set_raw_data("123"); }), {"3 bytes", "24"}));
  EXPECT_TRUE(mentions(refusal([](pb::Constant& w) { w.mutable_float_data()->RemoveLast(); }), {"5 numbers", "6"}));
  EXPECT_TRUE(mentions(refusal([](pb::Constant& w) { w.set_data_type(8); }), {"type 8"}));
  EXPECT_TRUE(mentions(refusal([](pb::Constant& w) { w.set_float_data(2, NAN); }), {"NaN"}));
  for (const char* location : {"../weights", "/etc/hostname", "a/../../b", ""})
    EXPECT_TRUE(mentions(refusal([&](pb::Constant& w) { external(w, location); }), {"own folder"})) << location;
  EXPECT_TRUE(mentions(refusal([&](pb::Constant& w) { external(w, "none"); }), {"\"none\"", "cannot be read"}));
}

TEST(ImportOnnx, ReadsExternalData) {
  NodeChain net({1, 1});
  pb::Constant& w = net.constant("w", {1, 2});
  const float numbers[] = {7, 8, 9};
  std::ofstream(net.directory.path() / "data", std::ios::binary)
      .write(reinterpret_cast<const char*>(numbers), sizeof numbers);
  w.clear_float_data();
  w.set_data_location(1);
  for (const auto& [key, value] : {std::pair{"location", "data"}, std::pair{"offset", "4"}}) {
    pb::Property& property = *w.add_external_data();
    property.set_key(key);
    property.set_value(value);
  }
  net.add("MatMul", {"w"});
  ImportedModel model = net.import();
  const Tensor y = result_of(model, Tensor::from<float>({1, 1}, std::vector{1.0F}));
  EXPECT_EQ(y.data<float>()[0], 8);
  EXPECT_EQ(y.data<float>()[1], 9);
}

}  // namespace
}  // namespace miniqat::importers::import_test
