// Integer models out of graphs, in LiteRT and ONNX Runtime against the integer engine's reference: what conversion
// makes and random models do not have.

#include <gtest/gtest.h>

#include "exporters/tflite/tflite.h"
#include "layers/layers.h"
#include "quantize/convert/convert.h"
#include "tests/errors.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/eval_net.h"
#include "tests/quantize/scale_shift_net.h"
#include "tests/quantize/trained_net.h"
#include "tests/runtimes/comparison.h"

namespace miniqat::exporters::converted_test {
namespace {

using integer::Model;
using testing::EvalNet;
using testing::OnnxComparison;
using testing::OnnxGroup;

/// A convolution of units of 2 to 300 steps of its output, with biases of any part of a unit: these take operations of
/// their own.
Model coarse_units(int seed, quantize::Range<float> range) {
  EvalNet net;
  Random random(static_cast<std::uint64_t>(seed));
  quantize::FakeQuantAttributes narrow = EvalNet::evaluating();
  narrow.narrow_range = true;
  const float size = random.uniform(2, 300);
  std::vector<float> weights, biases;
  for (int i = 0; i < 12; ++i) weights.push_back(size * (random.below(4) == 0 ? random.uniform(-0.02f, 0.02f) : 0));
  for (int o = 0; o < 4; ++o) biases.push_back(random.uniform(-0.6f, 1.2f));
  const Output filter =
      net.quantizer("weights_quant", net.variable("weights", {1, 1, 3, 4}, weights), {-size, size}, narrow);
  Output y = layers::conv2d(net.graph, "Conv2D", net.images({4, 6, 6, 3}), filter);
  y = layers::bias_add(net.graph, "BiasAdd", y, net.variable("biases", {4}, biases));
  return net.convert(net.quantizer("y", y, range));
}

TEST(CoarseUnitsInRuntimes, GiveOurIntegers) {
  MINIQAT_NEED_RUNTIMES();
  testing::LiteRtComparison lite;
  OnnxGroup group;
  int lines = 0;
  for (int seed = 0; seed < 30; ++seed) {
    const Model model =
        coarse_units(seed, seed % 2 == 0 ? quantize::Range<float>{0, 1} : quantize::Range<float>{-0.5f, 1});
    lines += model.operations.size() == 2 ? 1 : 0;
    lite.add("uint8", model, {});
    group.models.push_back(model);
  }
  EXPECT_GT(lines, 20);
  expect_near("LiteRT", lite.run().at("uint8"), 0.999);
  const OnnxComparison result = testing::compare_in_onnx_runtime({group}, 8).front();
  expect_near("ONNX Runtime", result.agreement, 0.999);
  EXPECT_FALSE(result.kernels.contains("Conv")) << "on real numbers";
}

/// Constants that multiply and add.
Model line_model(const quantize::RewriteOptions& options) {
  const testing::TrainedNet net = testing::train_briefly(testing::scale_shift_net(), options);
  return quantize::convert(net.evaluation, net.variables, {.input = testing::kPictures});
}

TEST(LinesInRuntimes, GiveOurIntegers) {
  MINIQAT_NEED_RUNTIMES();
  testing::LiteRtComparison comparison;
  for (const bool per_channel : {false, true})
    comparison.add("lines", line_model({.symmetric_weights = true, .per_channel = per_channel}), {.int8 = true});
  expect_near("LiteRT", comparison.run().at("lines"), 0.99);
  for (const OnnxComparison& result :
       testing::compare_in_onnx_runtime({{.models = {line_model({})}},
                                         {.models = {line_model({.weight_bits = 4, .activation_bits = 4})}},
                                         {.models = {line_model({.per_channel = true})}}},
                                        6))
    expect_near("ONNX Runtime", result.agreement, 0.99);
}

/// Sums of 8 bits whose layers read fewer: two blocks on pictures of [9, 11, 6].
Model residual_model(int bits) {
  Graph graph;
  Output x = layers::placeholder(graph, "images", {2, 9, 11, 6});
  x = layers::relu(graph, "in/Relu", testing::conv_bias(graph, "in", x, 3, 8));
  for (const std::string scope : {"one", "two"}) {
    const Output branch = layers::relu(graph, scope + "/a/Relu", testing::conv_bias(graph, scope + "/a", x, 3, 8));
    x = layers::add(graph, scope + "/Add", testing::conv_bias(graph, scope + "/b", branch, 3, 8), x);
    x = layers::relu(graph, scope + "/Relu", x);
  }
  graph.set_outputs({layers::mean(graph, "pool", testing::conv_bias(graph, "out", x, 1, 10), {.axes = {1, 2}})});
  const testing::TrainedNet net =
      testing::train_briefly(graph, {.weight_bits = bits, .activation_bits = bits, .logits_bits = 8, .sums_bits = 8});
  return quantize::convert(net.evaluation, net.variables, {.input = testing::kPictures});
}

TEST(ResidualSumsInOnnxRuntime, GiveOurIntegers) {
  MINIQAT_NEED_RUNTIMES();
  for (const OnnxComparison& result :
       testing::compare_in_onnx_runtime({{.models = {residual_model(4)}}, {.models = {residual_model(2)}}}, 6))
    expect_near("sums", result.agreement, 1);
}

/// TensorFlow Lite has no activations of fewer bits.
TEST(ResidualSumsInTflite, AreRefusedByTheNameOfTheOperation) {
  EXPECT_TRUE(testing::mentions(testing::error_of([] { tflite(residual_model(4)); }), {"tflite: [", "4 bits"}));
}

}  // namespace
}  // namespace miniqat::exporters::converted_test
