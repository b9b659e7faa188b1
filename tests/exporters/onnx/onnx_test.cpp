// The ONNX files as they are written, without a runtime: parsed back and looked at.

#include "exporters/onnx/onnx.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "formats/onnx/onnx.pb.h"
#include "integer/model.h"
#include "tests/errors.h"
#include "tests/integer/random_model.h"

namespace miniqat::exporters::onnx_test {
namespace {

using integer::Layer;
using integer::LayerKind;
using integer::Model;
using testing::error_of;
using testing::mentions;
using testing::RandomModel;

/// A written model, parsed, with its parts by name.
class Parsed {
 public:
  explicit Parsed(const std::string& bytes) {
    if (!model_.ParseFromString(bytes)) throw std::runtime_error("not a protobuf message");
    for (const pb::Node& node : graph().node()) makers_[node.output(0)] = &node;
    for (const pb::Constant& constant : graph().initializer()) constants_[constant.name()] = &constant;
  }

  const pb::Model& model() const { return model_; }
  const pb::Graph& graph() const { return model_.graph(); }
  /// What makes a tensor; nullptr for constants and inputs.
  const pb::Node* maker(const std::string& tensor) const { return find(makers_, tensor); }
  const pb::Constant* constant(const std::string& tensor) const { return find(constants_, tensor); }
  std::vector<const pb::Node*> all(const std::string& type) const {
    std::vector<const pb::Node*> nodes;
    for (const pb::Node& node : graph().node())
      if (node.op_type() == type) nodes.push_back(&node);
    return nodes;
  }
  /// The only node of a type.
  const pb::Node& only(const std::string& type) const {
    const auto nodes = all(type);
    EXPECT_EQ(nodes.size(), 1) << type;
    return *nodes.at(0);
  }
  std::vector<const pb::Node*> readers(const std::string& tensor) const {
    std::vector<const pb::Node*> nodes;
    for (const pb::Node& node : graph().node())
      for (const std::string& input : node.input())
        if (input == tensor) nodes.push_back(&node);
    return nodes;
  }

 private:
  template <class T>
  static T find(const std::map<std::string, T>& from, const std::string& name) {
    const auto found = from.find(name);
    return found == from.end() ? nullptr : found->second;
  }

  pb::Model model_;
  std::map<std::string, const pb::Node*> makers_;
  std::map<std::string, const pb::Constant*> constants_;
};

std::vector<std::int64_t> ints(const pb::Node& node, const std::string& name) {
  for (const pb::Attribute& attribute : node.attribute())
    if (attribute.name() == name) {
      if (attribute.type() == pb::Attribute::INT) return {attribute.i()};
      return {attribute.ints().begin(), attribute.ints().end()};
    }
  return {};
}

template <class T>
std::vector<T> values(const pb::Constant& constant) {
  std::vector<T> values(constant.raw_data().size() / sizeof(T));
  std::memcpy(values.data(), constant.raw_data().data(), constant.raw_data().size());
  return values;
}

std::vector<std::int64_t> extents(const pb::Constant& constant) {
  return {constant.dims().begin(), constant.dims().end()};
}

/// A convolution or fully connected layer on its own, of weights that tell their place: 0, 1, 2, ... modulo 2^bits, the
/// last of them the largest.
Model layer_model(LayerKind kind, int bits, bool per_channel) {
  const bool connected = kind == LayerKind::kFullyConnected;
  const Shape input = connected ? Shape{6} : Shape{5, 4, 2};
  Layer layer{.kind = kind};
  Shape output{3};
  if (connected) {
    layer.filter = {6, 3};
  } else {
    layer.window = slide(integer::batch_shape(1, input), {.window = {3, 2}, .strides = {2, 1}});
    layer.filter = {3, 2, 2, 3};
    output = {3, 4, layer.output_channels()};
  }
  layer.weight_bits = bits;
  for (std::int64_t i = 0; i < layer.filter.elements(); ++i)
    layer.weights.push_back(static_cast<std::uint8_t>(i % (1 << bits)));
  layer.weights.back() = static_cast<std::uint8_t>((1 << bits) - 1);
  for (std::int64_t o = 0; o < (per_channel ? layer.output_channels() : 1); ++o) {
    layer.weight_scales.push_back(0.5f / static_cast<float>(o + 1));
    layer.weight_zero_points.push_back(static_cast<std::int32_t>(o + 1));
    layer.multipliers.push_back(integer::multiplier_for(0.25 * layer.weight_scales.back() / 2));
  }
  for (std::int64_t o = 0; o < layer.output_channels(); ++o)
    layer.bias.push_back(static_cast<std::int32_t>(100 - 70 * o));
  return {.name = "layer",
          .tensors = {{"pixels", input, {.scale = 0.25f, .zero_point = 7}},
                      {"sums", output, {.scale = 2, .zero_point = 3}}},
          .operations = {{.name = "the/layer", .action = layer, .inputs = {0}, .output = 1}},
          .output = 1};
}

const Layer& layer_of(const Model& model) { return std::get<Layer>(model.operations[0].action); }

TEST(Onnx, SaysWhatItIs) {
  const Parsed file(onnx(layer_model(LayerKind::kConv2d, 8, false)));
  EXPECT_EQ(file.model().ir_version(), 7);
  ASSERT_EQ(file.model().opset_import().size(), 1);
  EXPECT_EQ(file.model().opset_import(0).version(), 13);
  EXPECT_EQ(file.model().opset_import(0).domain(), "");
  EXPECT_EQ(file.graph().name(), "layer");
  std::map<std::string, std::string> properties;
  for (const pb::Property& property : file.model().metadata_props()) properties[property.key()] = property.value();
  EXPECT_EQ(
      properties,
      (std::map<std::string, std::string>{
          {"input_scale", "0.25"}, {"input_zero_point", "7"}, {"output_scale", "2"}, {"output_zero_point", "3"}}));
}

void expect_value(const pb::Value& value, const std::string& name, pb::ElementType type,
                  const std::vector<int>& example) {
  EXPECT_EQ(value.name(), name);
  const pb::TensorType& tensor = value.type().tensor_type();
  EXPECT_EQ(tensor.elem_type(), type);
  ASSERT_EQ(tensor.shape().dim().size(), static_cast<int>(example.size()) + 1);
  EXPECT_EQ(tensor.shape().dim(0).dim_param(), "batch");
  EXPECT_FALSE(tensor.shape().dim(0).has_dim_value());
  for (std::size_t i = 0; i < example.size(); ++i)
    EXPECT_EQ(tensor.shape().dim(static_cast<int>(i) + 1).dim_value(), example[i]);
}

TEST(Onnx, TakesBytesAsImagesAndGivesRealNumbers) {
  const Parsed file(onnx(layer_model(LayerKind::kConv2d, 8, false)));
  ASSERT_EQ(file.graph().input().size(), 1);
  ASSERT_EQ(file.graph().output().size(), 1);
  expect_value(file.graph().input(0), "pixels", pb::UINT8, {5, 4, 2});
  expect_value(file.graph().output(0), "logits", pb::FLOAT, {3, 4, 3});
}

TEST(Onnx, EveryTensorIsMadeOnceBeforeItIsRead) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Parsed file(onnx(testing::random_network(seed)));
    std::set<std::string> there;
    const auto add = [&](const std::string& name) { EXPECT_TRUE(there.insert(name).second) << name << " twice"; };
    for (const pb::Value& input : file.graph().input()) add(input.name());
    for (const pb::Constant& constant : file.graph().initializer()) add(constant.name());
    for (const pb::Node& node : file.graph().node()) {
      for (const std::string& input : node.input()) EXPECT_TRUE(there.contains(input)) << input << " is not there";
      ASSERT_EQ(node.output().size(), 1);
      add(node.output(0));
    }
    for (const pb::Value& output : file.graph().output()) EXPECT_TRUE(there.contains(output.name()));
  }
}

TEST(Onnx, OperatorsStandBetweenDequantizeAndQuantize) {
  const std::set<std::string> computing = {"Conv",   "Gemm",    "Add",         "Mul",
                                           "Concat", "MaxPool", "AveragePool", "GlobalAveragePool"};
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Parsed file(onnx(testing::random_network(seed)));
    for (const pb::Node& node : file.graph().node()) {
      const bool unpacks = node.op_type() == "Mul" && node.output(0).ends_with("/units");
      if (!computing.contains(node.op_type()) || unpacks) continue;
      seen.insert(node.op_type());
      for (const std::string& input : node.input()) {
        ASSERT_NE(file.maker(input), nullptr) << input;
        EXPECT_EQ(file.maker(input)->op_type(), "DequantizeLinear") << input;
        EXPECT_EQ(file.readers(input).size(), 1) << "nodes of its own dequantize what an operator reads: " << input;
      }
      const auto readers = file.readers(node.output(0));
      ASSERT_EQ(readers.size(), 1);
      EXPECT_EQ(readers[0]->op_type(), "QuantizeLinear");
    }
  }
  EXPECT_GE(seen.size(), 7u);
}

TEST(Onnx, ConvolutionsHaveTheirWeightsInOnnxsOrder) {
  const Model model = layer_model(LayerKind::kConv2d, 8, true);
  const Layer& layer = layer_of(model);
  const Parsed file(onnx(model));
  const pb::Node& conv = file.only("Conv");
  EXPECT_EQ(ints(conv, "group"), std::vector<std::int64_t>{1});
  EXPECT_EQ(ints(conv, "kernel_shape"), (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(ints(conv, "strides"), (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(ints(conv, "dilations"), (std::vector<std::int64_t>{1, 1}));
  // Top, left, bottom, right.
  EXPECT_EQ(ints(conv, "pads"), (std::vector<std::int64_t>{1, 0, 1, 1}));

  const pb::Node& dequantize = *file.maker(conv.input(1));
  EXPECT_EQ(ints(dequantize, "axis"), std::vector<std::int64_t>{0});
  const pb::Constant& weights = *file.constant(dequantize.input(0));
  EXPECT_EQ(weights.data_type(), pb::UINT8);
  ASSERT_EQ(extents(weights), (std::vector<std::int64_t>{3, 2, 3, 2}));
  const auto stored = values<std::uint8_t>(weights);
  for (int o = 0; o < 3; ++o)
    for (int i = 0; i < 2; ++i)
      for (int y = 0; y < 3; ++y)
        for (int x = 0; x < 2; ++x)
          EXPECT_EQ(stored[((o * 2 + i) * 3 + y) * 2 + x], layer.weights[((y * 2 + x) * 2 + i) * 3 + o]);
  EXPECT_EQ(values<float>(*file.constant(dequantize.input(1))), layer.weight_scales);
  EXPECT_EQ(values<std::uint8_t>(*file.constant(dequantize.input(2))), (std::vector<std::uint8_t>{1, 2, 3}));
}

TEST(Onnx, DepthwiseConvolutionsAreGrouped) {
  const Model model = layer_model(LayerKind::kDepthwiseConv2d, 8, false);
  const Layer& layer = layer_of(model);
  const Parsed file(onnx(model));
  const pb::Node& conv = file.only("Conv");
  EXPECT_EQ(ints(conv, "group"), std::vector<std::int64_t>{2});
  const pb::Node& dequantize = *file.maker(conv.input(1));
  EXPECT_TRUE(ints(dequantize, "axis").empty());
  const pb::Constant& weights = *file.constant(dequantize.input(0));
  ASSERT_EQ(extents(weights), (std::vector<std::int64_t>{6, 1, 3, 2}));
  const auto stored = values<std::uint8_t>(weights);
  for (int o = 0; o < 6; ++o)
    for (int tap = 0; tap < 6; ++tap) EXPECT_EQ(stored[o * 6 + tap], layer.weights[tap * 6 + o]);
  EXPECT_TRUE(extents(*file.constant(dequantize.input(1))).empty());
}

TEST(Onnx, FullyConnectedLayersKeepTheirOrder) {
  const Model model = layer_model(LayerKind::kFullyConnected, 8, true);
  const Parsed file(onnx(model));
  const pb::Node& dequantize = *file.maker(file.only("Gemm").input(1));
  EXPECT_EQ(ints(dequantize, "axis"), std::vector<std::int64_t>{1});
  const pb::Constant& weights = *file.constant(dequantize.input(0));
  EXPECT_EQ(extents(weights), (std::vector<std::int64_t>{6, 3}));
  EXPECT_EQ(values<std::uint8_t>(weights), layer_of(model).weights);
}

TEST(Onnx, BiasesAreAtTheScaleOfTheSums) {
  for (const bool per_channel : {false, true}) {
    const Model model = layer_model(LayerKind::kConv2d, 8, per_channel);
    const Parsed file(onnx(model));
    const pb::Node& dequantize = *file.maker(file.only("Conv").input(2));
    EXPECT_EQ(dequantize.input().size(), 2) << "the zero point is 0";
    const pb::Constant& bias = *file.constant(dequantize.input(0));
    EXPECT_EQ(bias.data_type(), pb::INT32);
    EXPECT_EQ(values<std::int32_t>(bias), layer_of(model).bias);
    std::vector<float> expected;
    for (const float scale : layer_of(model).weight_scales) expected.push_back(0.25f * scale);
    EXPECT_EQ(values<float>(*file.constant(dequantize.input(1))), expected);
    EXPECT_EQ(ints(dequantize, "axis").size(), per_channel ? 1u : 0u);
  }
}

/// Weights as they are stored: their type, and whether zero points go with them.
struct Form {
  int bits;
  bool packed_4_bits;
  pb::ElementType stored;
  pb::ElementType cast;
  bool centred;
};

TEST(Onnx, WeightsHaveTheSmallestTypeThatHoldsThem) {
  // The zero points are 1 to 3; the largest weight's is 3.
  for (const Form& form : {Form{2, true, pb::INT4, pb::INT8, true}, Form{3, true, pb::INT4, pb::INT8, true},
                           Form{4, true, pb::UINT4, pb::UINT8, false}, Form{5, true, pb::INT8, pb::INT8, true},
                           Form{2, false, pb::INT8, pb::INT8, true}, Form{4, false, pb::INT8, pb::INT8, true},
                           Form{7, false, pb::INT8, pb::INT8, true}, Form{8, true, pb::UINT8, pb::UINT8, false}}) {
    SCOPED_TRACE(form.bits);
    const Model model = layer_model(LayerKind::kFullyConnected, form.bits, true);
    const Layer& layer = layer_of(model);
    const Parsed file(onnx(model, {.packed_4_bits = form.packed_4_bits}));
    const pb::Node& dequantize = *file.maker(file.only("Gemm").input(1));
    const bool packed = form.stored != form.cast;
    const int unit = form.bits < 7 ? 1 << (7 - form.bits) : 1;

    const pb::Constant& zero_points = *file.constant(dequantize.input(2));
    EXPECT_EQ(zero_points.data_type(), form.cast);
    EXPECT_EQ(extents(zero_points), std::vector<std::int64_t>{3});
    for (int o = 0; o < 3; ++o) EXPECT_EQ(values<std::uint8_t>(zero_points)[o], form.centred ? 0 : (o + 1) * unit) << o;

    std::string stored = dequantize.input(0);
    if (packed) {
      const pb::Node& narrow = *file.maker(stored);
      EXPECT_EQ(narrow.op_type(), "Cast");
      EXPECT_EQ(ints(narrow, "to"), std::vector<std::int64_t>{form.cast});
      const pb::Node& units = *file.maker(narrow.input(0));
      EXPECT_EQ(units.op_type(), "Mul");
      EXPECT_EQ(values<std::int32_t>(*file.constant(units.input(1))), std::vector<std::int32_t>{unit});
      const pb::Node& wide = *file.maker(units.input(0));
      EXPECT_EQ(ints(wide, "to"), std::vector<std::int64_t>{pb::INT32});
      stored = wide.input(0);
    }
    const pb::Constant& weights = *file.constant(stored);
    EXPECT_EQ(weights.data_type(), form.stored);
    EXPECT_EQ(extents(weights), (std::vector<std::int64_t>{6, 3}));
    const auto bytes = values<std::uint8_t>(weights);
    ASSERT_EQ(bytes.size(), packed ? 9u : 18u);
    for (std::size_t i = 0; i < 18; ++i) {
      const int steps = layer.weights[i] - (form.centred ? static_cast<int>(i % 3) + 1 : 0);
      if (packed)
        EXPECT_EQ(bytes[i / 2] >> (i % 2 * 4) & 15, steps & 15) << i;
      else
        EXPECT_EQ(bytes[i], steps * unit & 255) << i;
    }
  }
}

TEST(Onnx, ClampsOnlyWhereQuantizingDoesNot) {
  Model model = layer_model(LayerKind::kConv2d, 8, false);
  EXPECT_TRUE(Parsed(onnx(model)).all("Clip").empty());
  model.operations[0].clamp = {.min = 3, .max = 200};
  const Parsed file(onnx(model));
  const pb::Node& clip = file.only("Clip");
  EXPECT_EQ(file.maker(clip.input(0))->op_type(), "QuantizeLinear");
  EXPECT_EQ(values<std::uint8_t>(*file.constant(clip.input(1))), std::vector<std::uint8_t>{3});
  EXPECT_EQ(values<std::uint8_t>(*file.constant(clip.input(2))), std::vector<std::uint8_t>{200});
  EXPECT_EQ(clip.output(0), "sums");
}

TEST(Onnx, ImagesAreFlattenedChannelsLast) {
  RandomModel net(1, {4, 3, 2});
  net.reshape({24});
  const Parsed file(onnx(net.finish()));
  const pb::Node& reshape = file.only("Reshape");
  const pb::Node* transpose = file.maker(reshape.input(0));
  ASSERT_NE(transpose, nullptr);
  EXPECT_EQ(ints(*transpose, "perm"), (std::vector<std::int64_t>{0, 2, 3, 1}));
  EXPECT_EQ(values<std::int64_t>(*file.constant(reshape.input(1))), (std::vector<std::int64_t>{0, 24}));
}

/// [h, w, c] of an example are axes 2, 3 and 1 of ONNX's batch.
TEST(Onnx, PartsOfImagesKeepTheirAxes) {
  RandomModel net(1, {8, 7, 6});
  net.slice();
  const Parsed file(onnx(net.finish()));
  const pb::Node& slice = file.only("Slice");
  EXPECT_EQ(values<std::int64_t>(*file.constant(slice.input(3))), (std::vector<std::int64_t>{2, 3, 1}));
}

TEST(Onnx, TakesNamesThatItWouldGiveItself) {
  Model model = layer_model(LayerKind::kConv2d, 8, false);
  model.tensors[0].name = "logits";
  model.tensors[1].name = "the/layer";
  const Parsed file(onnx(model));
  EXPECT_EQ(file.graph().input(0).name(), "logits");
  EXPECT_EQ(file.graph().output(0).name(), "logits_1");
}

TEST(Onnx, RefusesWhatItCannotSay) {
  Model model = layer_model(LayerKind::kConv2d, 8, false);
  model.operations[0].clamp.max = 256;
  EXPECT_TRUE(mentions(error_of([&] { onnx(model); }), {"the/layer", "clamp"}));

  // Rows of the image below the last window, more than a stride of them.
  model = layer_model(LayerKind::kConv2d, 8, false);
  auto& layer = std::get<Layer>(model.operations[0].action);
  layer.window.rows.output = 1;
  layer.window.rows.pad_before = 0;
  model.tensors[1].shape = {1, 4, 3};
  EXPECT_TRUE(mentions(error_of([&] { onnx(model); }), {"onnx", "Conv2D", "the/layer", "unread"}));

  WindowAxis axis{.input = 5, .window = 2, .dilation = 2, .output = 3};
  integer::AveragePool pool{.window = {axis, axis}, .multipliers = std::vector<integer::Multiplier>(4)};
  const integer::Grid grid;
  const Model pooled{.name = "pool",
                     .tensors = {{"a", {5, 5, 1}, grid}, {"b", {3, 3, 1}, grid}},
                     .operations = {{.name = "the/pool", .action = pool, .inputs = {0}, .output = 1}},
                     .output = 1};
  EXPECT_TRUE(mentions(error_of([&] { onnx(pooled); }), {"onnx", "the/pool", "dilation"}));
}

}  // namespace
}  // namespace miniqat::exporters::onnx_test
