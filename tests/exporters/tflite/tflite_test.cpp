// What the TensorFlow Lite file says of a model, read back through the schema, and what it refuses to say.

#include "exporters/tflite/tflite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "exporters/tflite/tflite_generated.h"
#include "tests/errors.h"
#include "tests/integer/random_model.h"

namespace miniqat::exporters::tflite_test {
namespace {

using integer::Grid;
using integer::Layer;
using integer::LayerKind;
using integer::Model;
using testing::error_of;
using testing::kTfliteModels;
using testing::mentions;
using testing::RandomModel;
using testing::with_int4_weights;
using testing::with_scales_per_tensor;
using testing::with_symmetric_weights;
using testing::with_wider_padding;
using tflite_schema::Activation;
using tflite_schema::OperatorKind;
using tflite_schema::TensorType;

const Shape kInput = {9, 11, 3};

/// A file's only subgraph.
class File {
 public:
  explicit File(std::string bytes) : bytes_(std::move(bytes)) {
    flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(bytes_.data()), bytes_.size());
    EXPECT_TRUE(tflite_schema::VerifyModelBuffer(verifier));
    EXPECT_EQ(bytes_.substr(4, 4), "TFL3");
    model_ = tflite_schema::GetModel(bytes_.data());
    EXPECT_EQ(model_->subgraphs()->size(), 1u);
    graph_ = model_->subgraphs()->Get(0);
  }
  const tflite_schema::Model& model() const { return *model_; }
  const tflite_schema::SubGraph& graph() const { return *graph_; }
  const tflite_schema::Tensor& tensor(std::int32_t i) const { return *graph_->tensors()->Get(i); }
  const tflite_schema::Operator& op(std::uint32_t i) const { return *graph_->operators()->Get(i); }
  std::vector<OperatorKind> kinds() const {
    std::vector<OperatorKind> kinds;
    for (const auto* op : *graph_->operators()) kinds.push_back(model_->operator_codes()->Get(op->code())->kind());
    return kinds;
  }
  std::string_view data(const tflite_schema::Tensor& tensor) const {
    const auto* bytes = model_->buffers()->Get(tensor.buffer())->data();
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  }
  std::size_t offset(const void* place) const { return static_cast<const char*>(place) - bytes_.data(); }

 private:
  std::string bytes_;
  const tflite_schema::Model* model_;
  const tflite_schema::SubGraph* graph_;
};

template <class Values>
auto list(const Values* values) {
  return std::vector(values->begin(), values->end());
}

std::size_t elements(const tflite_schema::Tensor& tensor) {
  std::size_t count = 1;
  for (const std::int32_t extent : *tensor.shape()) count *= static_cast<std::size_t>(extent);
  return count;
}

/// Every tensor is the input, made by one operator before it is read, or constant with all its bytes.
void expect_sound(const File& file) {
  EXPECT_EQ(file.model().version(), 3u);
  EXPECT_EQ(file.model().buffers()->Get(0)->data(), nullptr);
  std::set<std::int32_t> ready = {file.graph().inputs()->Get(0)};
  const auto count = static_cast<std::int32_t>(file.graph().tensors()->size());
  for (std::int32_t i = 0; i < count; ++i) {
    const tflite_schema::Tensor& tensor = file.tensor(i);
    if (tensor.buffer() == 0) continue;
    EXPECT_TRUE(ready.insert(i).second);
    const std::string_view bytes = file.data(tensor);
    EXPECT_EQ(bytes.size(), elements(tensor) * (tensor.type() == TensorType::INT32 ? 4 : 1));
    EXPECT_EQ(file.offset(bytes.data()) % 16, 0u);
  }
  for (const auto* op : *file.graph().operators()) {
    for (const std::int32_t input : *op->inputs()) EXPECT_TRUE(ready.contains(input));
    EXPECT_TRUE(ready.insert(op->outputs()->Get(0)).second);
    for (const std::int32_t place : *op->outputs()) ASSERT_LT(place, count);
  }
  EXPECT_TRUE(ready.contains(file.graph().outputs()->Get(0)));
  EXPECT_EQ(static_cast<std::int32_t>(ready.size()), count);
}

TEST(Tflite, RandomNetworksMakeSoundFiles) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Model model = with_symmetric_weights(testing::random_network(seed, kTfliteModels));
    for (const bool float_io : {false, true})
      for (const bool int8 : {false, true}) expect_sound(File(tflite(model, {.float_io = float_io, .int8 = int8})));
  }
}

TEST(Tflite, TheSameModelMakesTheSameBytes) {
  const Model model = with_symmetric_weights(testing::random_network(1, kTfliteModels));
  EXPECT_EQ(tflite(model), tflite(model));
}

Model one_layer(LayerKind kind, std::uint64_t seed) {
  RandomModel net(seed, kInput, kTfliteModels);
  if (kind == LayerKind::kConv2d) net.conv2d(5);
  if (kind == LayerKind::kDepthwiseConv2d) net.depthwise_conv2d(2);
  if (kind == LayerKind::kFullyConnected) net.fully_connected(5);
  return net.finish();
}

/// The layer's weight at [ky, kx, input, output] as TensorFlow Lite's documents place it.
std::size_t place(LayerKind kind, const Shape& filter, std::int64_t ky, std::int64_t kx, std::int64_t i,
                  std::int64_t o) {
  if (kind == LayerKind::kConv2d) return ((o * filter[0] + ky) * filter[1] + kx) * filter[2] + i;
  if (kind == LayerKind::kFullyConnected) return o * filter[0] + i;
  return (ky * filter[1] + kx) * filter[2] * filter[3] + i * filter[3] + o;
}

void expect_weights(const File& file, const tflite_schema::Tensor& tensor, const Layer& layer, bool int8) {
  const bool is_matrix = layer.kind == LayerKind::kFullyConnected;
  const std::string_view bytes = file.data(tensor);
  ASSERT_EQ(bytes.size(), layer.weights.size());
  const std::int64_t rows = is_matrix ? 1 : layer.filter[0], columns = is_matrix ? 1 : layer.filter[1];
  const std::int64_t in = layer.filter[-2], out = layer.filter[-1];
  for (std::int64_t ky = 0; ky < rows; ++ky)
    for (std::int64_t kx = 0; kx < columns; ++kx)
      for (std::int64_t i = 0; i < in; ++i)
        for (std::int64_t o = 0; o < out; ++o) {
          const std::int32_t weight = layer.weights[((ky * columns + kx) * in + i) * out + o];
          const std::int64_t channel = layer.kind == LayerKind::kDepthwiseConv2d ? i * out + o : o;
          const auto found = static_cast<std::uint8_t>(bytes[place(layer.kind, layer.filter, ky, kx, i, o)]);
          const int unit = layer.weight_bits < 7 ? 1 << (7 - layer.weight_bits) : 1;
          const int expected = unit * (int8 ? weight - layer.weight_zero_point(channel) : weight);
          EXPECT_EQ(int8 ? static_cast<std::int8_t>(found) : int{found}, expected);
        }
}

TEST(Tflite, LayersAreLaidOutAsTheFormatHasThem) {
  for (const LayerKind kind : {LayerKind::kConv2d, LayerKind::kDepthwiseConv2d, LayerKind::kFullyConnected})
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const bool int8 = seed % 2 == 1;
      const Model model =
          int8 ? with_symmetric_weights(one_layer(kind, seed)) : with_scales_per_tensor(one_layer(kind, seed));
      const auto& layer = std::get<Layer>(model.operations.back().action);
      const File file(tflite(model, {.int8 = int8}));
      // What stands behind it clamps.
      const std::size_t index = kind == LayerKind::kFullyConnected ? 1 : 0;
      const auto inputs = list(file.op(index).inputs());
      const std::int32_t version = file.model().operator_codes()->Get(file.op(index).code())->version();
      EXPECT_TRUE(int8 ? version == (index == 1 ? 4 : 3) : version <= 2) << version;
      const tflite_schema::Tensor &weights = file.tensor(inputs[1]), &bias = file.tensor(inputs[2]);
      expect_weights(file, weights, layer, int8);
      EXPECT_EQ(weights.type(), int8 ? TensorType::INT8 : TensorType::UINT8);
      EXPECT_EQ(list(weights.quantization()->scale()), layer.unit_scales());
      for (const std::int64_t zero_point : *weights.quantization()->zero_point())
        EXPECT_EQ(zero_point, int8 ? 0 : layer.weight_zero_points[0] << layer.weight_shift());
      // XNNPACK takes no other axis where there is one scale.
      const bool last_axis = kind == LayerKind::kDepthwiseConv2d && layer.per_channel();
      EXPECT_EQ(weights.quantization()->quantized_dimension(), last_axis ? 3 : 0);
      EXPECT_EQ(std::memcmp(file.data(bias).data(), layer.bias.data(), 4 * layer.bias.size()), 0);
      for (std::size_t i = 0; i < layer.weight_scales.size(); ++i)
        EXPECT_FLOAT_EQ(bias.quantization()->scale()->Get(i),
                        model.tensor(model.input).grid.scale * layer.unit_scales()[i]);
    }
}

TEST(Tflite, Int8ShiftsEveryZeroPoint) {
  RandomModel net(5, kInput, kTfliteModels);
  net.rescale();
  const Model model = net.finish();
  for (const bool int8 : {false, true}) {
    const File file(tflite(model, {.int8 = int8}));
    const tflite_schema::Tensor& input = file.tensor(file.graph().inputs()->Get(0));
    EXPECT_EQ(input.type(), int8 ? TensorType::INT8 : TensorType::UINT8);
    EXPECT_EQ(is_int8(model, {.int8 = int8}), int8);
    EXPECT_EQ(input.quantization()->zero_point()->Get(0), model.tensors[0].grid.zero_point - (int8 ? 128 : 0));
    EXPECT_EQ(input.quantization()->scale()->Get(0), model.tensors[0].grid.scale);
    EXPECT_EQ(list(input.shape()), (std::vector<std::int32_t>{1, 9, 11, 3}));
    EXPECT_EQ(input.name()->str(), "input");
  }
}

TEST(Tflite, ScalesPerChannelMakeInt8) {
  Model model = with_symmetric_weights(one_layer(LayerKind::kConv2d, 0));
  for (std::uint64_t seed = 1; !std::get<Layer>(model.operations[0].action).per_channel(); ++seed)
    model = with_symmetric_weights(one_layer(LayerKind::kConv2d, seed));
  const auto type = [](const File& file) { return file.tensor(file.graph().inputs()->Get(0)).type(); };
  EXPECT_EQ(type(File(tflite(model))), TensorType::INT8);
  EXPECT_TRUE(is_int8(model));
  EXPECT_EQ(type(File(tflite(with_scales_per_tensor(model)))), TensorType::UINT8);
}

TEST(Tflite, FloatInputAndOutput) {
  RandomModel net(5, kInput, kTfliteModels);
  net.max_pool();
  const File file(tflite(net.finish(), {.float_io = true}));
  EXPECT_EQ(file.kinds(), (std::vector{OperatorKind::QUANTIZE, OperatorKind::MAX_POOL_2D, OperatorKind::DEQUANTIZE}));
  EXPECT_EQ(file.tensor(file.graph().inputs()->Get(0)).type(), TensorType::FLOAT32);
  EXPECT_EQ(file.tensor(file.graph().outputs()->Get(0)).type(), TensorType::FLOAT32);
}

/// A model of one Rescale, with this clamp and this grid behind it.
Model rescale(const Grid& grid, const integer::Clamp& clamp) {
  RandomModel net(5, {4}, kTfliteModels);
  net.rescale();
  Model model = net.finish();
  model.tensors[1].grid = grid;
  model.operations[0].clamp = clamp;
  model.check();
  return model;
}

TEST(Tflite, ClampsThatNoActivationHasAreOperators) {
  const Grid grid = {.scale = 0.04f, .zero_point = 30};
  EXPECT_EQ(File(tflite(rescale(grid, {0, 255}))).kinds(), (std::vector{OperatorKind::MUL}));
  EXPECT_EQ(File(tflite(rescale(grid, {30, 180}))).op(0).options_as_MulOptions()->activation(), Activation::RELU6);
  const File file(tflite(rescale(grid, {20, 200}), {.int8 = true}));
  EXPECT_EQ(file.kinds(), (std::vector{OperatorKind::MUL, OperatorKind::MAXIMUM, OperatorKind::MINIMUM}));
  const auto bound = [&](std::uint32_t op) {
    return static_cast<std::int8_t>(file.data(file.tensor(file.op(op).inputs()->Get(1)))[0]);
  };
  EXPECT_EQ(bound(1), 20 - 128);
  EXPECT_EQ(bound(2), 200 - 128);
}

TEST(Tflite, FewerBitsNeedAnActivationThatEndsThere) {
  EXPECT_EQ(File(tflite(rescale({.scale = 0.4f, .zero_point = 0, .bits = 4}, {0, 15}))).kinds(),
            (std::vector{OperatorKind::MUL}));
  const Model model = rescale({.scale = 0.3f, .zero_point = 0, .bits = 4}, {0, 15});
  EXPECT_TRUE(
      mentions(error_of([&] { tflite(model); }), {"tflite: [Rescale \"Rescale_0\"]", "\"Rescale_0_out\"", "4 bits",
                                                  "8 bits", "the formats miniqat, onnx, c, json and html hold it"}));
}

/// A Conv2D whose weights all lie 127 above their zero point of 100.
Model far_weights(bool per_channel) {
  Model model = one_layer(LayerKind::kConv2d, 0);
  for (std::uint64_t seed = 1; !std::get<Layer>(model.operations[0].action).per_channel(); ++seed)
    model = one_layer(LayerKind::kConv2d, seed);
  if (!per_channel) model = with_scales_per_tensor(model);
  auto& layer = std::get<Layer>(model.operations[0].action);
  layer.weight_bits = 8;
  layer.weight_zero_points.assign(layer.weight_zero_points.size(), 100);
  layer.weights.assign(layer.weights.size(), 227);
  model.check();
  return model;
}

TEST(Tflite, AsymmetricWeightsPerChannelAreRefused) {
  Model model = far_weights(true);
  EXPECT_EQ(error_of([&] { tflite(model); }), "");
  std::get<Layer>(model.operations[0].action).weights[3] = 228;
  // With --int8 the cause is the same: it is int8 in any case.
  for (const bool int8 : {false, true}) {
    const std::string error = error_of([&] { tflite(model, {.int8 = int8}); });
    EXPECT_TRUE(mentions(error, {"[Conv2D \"Conv2D_0\"] channel 3 has a weight of 128 (zero point 100)", "-127 to 127",
                                 "which scales per channel need", "train or calibrate with --symmetric-weights",
                                 "or export as miniqat, onnx, c or json"}));
    EXPECT_EQ(error.find("--int8"), std::string::npos) << error;
  }
}

TEST(Tflite, AsymmetricWeightsPerTensorAreRefusedAsInt8Only) {
  Model model = far_weights(false);
  std::get<Layer>(model.operations[0].action).weights[3] = 228;
  EXPECT_EQ(error_of([&] { tflite(model); }), "");
  const std::string error = error_of([&] { tflite(model, {.int8 = true}); });
  EXPECT_TRUE(
      mentions(error, {"[Conv2D \"Conv2D_0\"] channel 3 has a weight of 128 (zero point 100)", "-127 to 127",
                       "which --int8 asks for", "leave out --int8, or train or calibrate with --symmetric-weights"}));
  EXPECT_EQ(error.find("per channel"), std::string::npos) << error;
}

TEST(Tflite, Int4WeightsLieTwoInAByte) {
  for (const LayerKind kind : {LayerKind::kConv2d, LayerKind::kDepthwiseConv2d, LayerKind::kFullyConnected}) {
    const Model model = with_int4_weights(one_layer(kind, 3));
    const auto& layer = std::get<Layer>(model.operations.back().action);
    const File file(tflite(model, {.int4 = true})), bytes_file(tflite(model, {.int8 = true}));
    const std::size_t index = kind == LayerKind::kFullyConnected ? 1 : 0;
    const auto inputs = list(file.op(index).inputs());
    EXPECT_EQ(file.tensor(inputs[0]).type(), TensorType::INT8);
    EXPECT_EQ(file.model().operator_codes()->Get(file.op(index).code())->version(), index == 1 ? 10 : 7);
    const tflite_schema::Tensor &weights = file.tensor(inputs[1]), &bias = file.tensor(inputs[2]);
    EXPECT_EQ(weights.type(), TensorType::INT4);
    EXPECT_EQ(list(weights.quantization()->scale()), layer.weight_scales);
    // The same integers as int8 has, in steps of 8.
    const std::string_view packed = file.data(weights), whole = bytes_file.data(bytes_file.tensor(inputs[1]));
    ASSERT_EQ(packed.size(), (whole.size() + 1) / 2);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const int nibble = static_cast<std::uint8_t>(packed[i / 2]) >> (i % 2 == 0 ? 0 : 4) & 15;
      EXPECT_EQ(8 * (nibble < 8 ? nibble : nibble - 16), static_cast<std::int8_t>(whole[i])) << i;
    }
    for (std::size_t o = 0; o < layer.bias.size(); ++o) {
      std::int32_t found = 0;
      std::memcpy(&found, file.data(bias).data() + 4 * o, 4);
      EXPECT_EQ(found, std::floor(layer.bias[o] / 8.0 + 0.5)) << o;
    }
    EXPECT_FLOAT_EQ(bias.quantization()->scale()->Get(0),
                    model.tensor(model.operations.back().inputs[0]).grid.scale * layer.weight_scales[0]);
  }
}

TEST(Tflite, Int4RefusesOtherWeights) {
  Model model = with_int4_weights(one_layer(LayerKind::kConv2d, 3));
  auto& layer = std::get<Layer>(model.operations[0].action);
  layer.weights[1] = 0;
  EXPECT_TRUE(mentions(error_of([&] { tflite(model, {.int4 = true}); }),
                       {"[Conv2D \"Conv2D_0\"] channel 1 has a weight of -8 (zero point 8)", "INT4 weights", "-7 to 7",
                        "leave out --int4", "--symmetric-weights"}));
  const Model bytes = with_symmetric_weights(far_weights(true));
  EXPECT_TRUE(mentions(error_of([&] { tflite(bytes, {.int4 = true}); }),
                       {"no layer has weights of at most 4 bits", "--weight-bits 4 --activation-bits 8"}));
}

TEST(Tflite, OtherPaddingsAreOperatorsOrRefused) {
  const auto wider = [](int (RandomModel::*grow)()) {
    for (std::uint64_t seed = 0;; ++seed) {
      RandomModel net(seed, kInput, kTfliteModels);
      (net.*grow)();
      const Model model = net.finish();
      const auto* pool = std::get_if<integer::AveragePool>(&model.operations[0].action);
      const auto* most = std::get_if<integer::MaxPool>(&model.operations[0].action);
      const miniqat::Window2d& window = pool != nullptr ? pool->window : most->window;
      if (window.rows.window == 3 && window.columns.window == 3 && window.rows.pad_before == 0)
        return with_wider_padding(model, 2);
    }
  };
  const File file(tflite(wider(&RandomModel::max_pool)));
  EXPECT_EQ(file.kinds(), (std::vector{OperatorKind::PADV2, OperatorKind::MAX_POOL_2D}));
  EXPECT_EQ(file.data(file.tensor(file.op(0).inputs()->Get(2)))[0], '\0');
  EXPECT_TRUE(mentions(error_of([&] { tflite(wider(&RandomModel::average_pool)); }),
                       {"[AveragePool \"AveragePool_0\"]", "SAME and VALID"}));
}

TEST(Tflite, WindowsLeftOutAreRefused) {
  RandomModel net(1, kInput, kTfliteModels);
  net.pad();
  Model model = net.finish();
  integer::MaxPool pool;
  const auto& shape = model.tensors[1].shape;
  pool.window.rows = {.input = shape[0], .output = shape[0] - 1};
  pool.window.columns = {.input = shape[1], .output = shape[1]};
  model.operations.push_back({.name = "pool", .action = pool, .inputs = {1}, .output = 2});
  model.tensors.push_back({.name = "out", .shape = {shape[0] - 1, shape[1], shape[2]}, .grid = model.tensors[1].grid});
  model.output = 2;
  model.check();
  EXPECT_TRUE(mentions(error_of([&] { tflite(model); }), {"[MaxPool \"pool\"]", "leaves out windows"}));
}

}  // namespace
}  // namespace miniqat::exporters::tflite_test
