#include "importers/onnx/import.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/engine/session.h"
#include "formats/onnx/onnx.pb.h"
#include "layers/conv2d.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::importers::import_test {
namespace {

using testing::error_of;
using testing::mentions;

/// An ONNX model of one chain of nodes from "x", written by hand.
class Chain {
 public:
  explicit Chain(const std::vector<std::int64_t>& input, std::int64_t opset = 13) {
    model.add_opset_import()->set_version(opset);
    pb::Value& x = *graph().add_input();
    x.set_name("x");
    x.mutable_type()->mutable_tensor_type()->set_elem_type(pb::FLOAT);
    for (const std::int64_t extent : input) {
      pb::Dimension& dimension = *x.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim();
      extent > 0 ? dimension.set_dim_value(extent) : dimension.set_dim_param("n");
    }
  }

  pb::Graph& graph() { return *model.mutable_graph(); }
  /// Takes the last tensor and `others`.
  pb::Node& add(const std::string& type, const std::vector<std::string>& others = {}) {
    pb::Node& node = *graph().add_node();
    node.set_op_type(type);
    node.set_name("the_" + type);
    node.add_input(last);
    for (const std::string& other : others) node.add_input(other);
    last = "t" + std::to_string(graph().node_size());
    node.add_output(last);
    return node;
  }
  pb::Constant& constant(const std::string& name, const std::vector<std::int64_t>& extents) {
    pb::Constant& constant = *graph().add_initializer();
    constant.set_name(name);
    constant.set_data_type(pb::FLOAT);
    std::int64_t elements = 1;
    for (const std::int64_t extent : extents) constant.add_dims(extent), elements *= extent;
    for (std::int64_t i = 0; i < elements; ++i) constant.add_float_data(static_cast<float>(i % 7) - 3);
    return constant;
  }
  void integers(const std::string& name, const std::vector<std::int64_t>& values) {
    pb::Constant& constant = *graph().add_initializer();
    constant.set_name(name);
    constant.set_data_type(pb::INT64);
    constant.add_dims(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) constant.add_int64_data(value);
  }
  ImportedModel import(std::int64_t batch = 0) {
    graph().clear_output();
    graph().add_output()->set_name(last);
    std::ofstream(path(), std::ios::binary) << model.SerializeAsString();
    return import_onnx(path(), {.batch_size = batch});
  }
  std::filesystem::path path() const { return directory.path() / "net.onnx"; }
  std::string refusal() {
    return error_of([&] { import(); });
  }

  pb::Model model;
  std::string last = "x";
  testing::TempDir directory;
};

void set_ints(pb::Node& node, const std::string& name, const std::vector<std::int64_t>& values) {
  pb::Attribute& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(pb::Attribute::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}

void set_int(pb::Node& node, const std::string& name, std::int64_t value) {
  pb::Attribute& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(pb::Attribute::INT);
  attribute.set_i(value);
}

Tensor result_of(ImportedModel& model, const Tensor& x) {
  Session session(model.graph);
  session.restore({.tensors = model.variables, .metadata = {}}, Session::Restore::kByName, "import");
  return session.run({.fetches = {model.graph.outputs()[0]}}, {{model.graph.at("x").output(), x}}).fetched[0];
}

TEST(ImportOnnx, RowsBehindFlattenFollowTheImage) {
  Chain net({1, 2, 2, 3});
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
  Chain net({1, 1, 4, 6});
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
  Chain net({1, 1});
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
  Chain net({0, 3, 8, 6});
  net.add("Relu");
  EXPECT_EQ(net.import().graph.outputs()[0].shape(), (Shape{128, 8, 6, 3}));
  EXPECT_EQ(net.import(5).graph.outputs()[0].shape(), (Shape{5, 8, 6, 3}));
}

TEST(ImportOnnx, AReshapeMayMoveNothing) {
  for (const auto& [extents, mixes] : std::vector<std::pair<std::vector<std::int64_t>, bool>>{
           {{0, 2, 6, 1}, false}, {{1, -1}, false}, {{1, 3, 2, 2}, true}, {{1, 2, 6}, true}}) {
    Chain net({1, 2, 2, 3});
    net.integers("shape", extents);
    net.add("Reshape", {"shape"});
    net.add("Relu");
    if (extents.size() == 2) net.constant("w", {12, 2}), net.add("MatMul", {"w"});
    EXPECT_EQ(mentions(net.refusal(), {"[Reshape \"the_Reshape\"]", "mixes channels and space"}), mixes);
  }
}

TEST(ImportOnnx, ASoftmaxAtTheEndIsLeftOut) {
  Chain net({2, 5});
  net.add("Softmax");
  const ImportedModel model = net.import();
  EXPECT_EQ(model.graph.size(), 1U);
  ASSERT_EQ(model.report.notes.size(), 1U);
  net.add("Relu");
  EXPECT_TRUE(mentions(net.refusal(), {"inside the network"}));
}

TEST(ImportOnnx, WhatHasNoCounterpartIsRefusedByName) {
  struct Case {
    std::string type;
    std::function<void(Chain&, pb::Node&)> change;
    std::vector<std::string> words;
  };
  const auto nothing = [](Chain&, pb::Node&) {};
  const std::vector<Case> cases = {
      {"Erf", nothing, {"[Erf \"the_Erf\"]", "does not import", "Conv"}},
      {"QuantizeLinear", nothing, {"quantized already"}},
      {"ConvTranspose", nothing, {"transposed convolution"}},
      {"Relu", [](Chain&, pb::Node& n) { n.set_domain("com.example"); }, {"com.example"}},
      {"Relu", [](Chain&, pb::Node& n) { set_int(n, "slope", 1); }, {"\"slope\""}},
      {"Relu", [](Chain&, pb::Node& n) { n.set_input(0, "t1"); }, {"\"t1\"", "before it"}},
      {"Relu", [](Chain&, pb::Node& n) { n.clear_input(); }, {"left out"}},
      {"Relu", [](Chain&, pb::Node& n) { n.set_output(0, "x"); }, {"made twice"}},
      {"Relu", [](Chain& c, pb::Node&) { c.model.mutable_opset_import(0)->set_version(22); }, {"opset 22", "7 to 21"}},
      {"MaxPool", [](Chain&, pb::Node& n) { set_ints(n, "kernel_shape", {2}); }, {"1 number", "kernel_shape"}},
      {"MaxPool",
       [](Chain&, pb::Node& n) {
         set_ints(n, "kernel_shape", {2, 2}), set_ints(n, "pads", {2, 0, 0, 0});
       },
       {"less than the window"}},
      {"Clip", nothing, {"only [0, 6]"}},
      {"Transpose",
       [](Chain&, pb::Node& n) {
         set_ints(n, "perm", {1, 0, 2, 3});
       },
       {"batch axis"}},
      {"Flatten", [](Chain&, pb::Node& n) { set_int(n, "axis", 2); }, {"axis 2"}},
  };
  for (const Case& c : cases) {
    Chain net({1, 4, 6, 5});
    c.change(net, net.add(c.type));
    EXPECT_TRUE(mentions(net.refusal(), c.words)) << c.type << ": " << net.refusal();
  }
  Chain groups({1, 4, 6, 5});
  groups.constant("w", {4, 2, 3, 3});
  set_int(groups.add("Conv", {"w"}), "group", 2);
  EXPECT_TRUE(mentions(groups.refusal(), {"[Conv \"the_Conv\"]", "2 groups"}));
}

TEST(ImportOnnx, DamagedConstantsAreRefused) {
  const auto refusal = [](const std::function<void(pb::Constant&)>& damage) {
    Chain net({1, 3});
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
  Chain net({1, 1});
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
