// Sums of 8 bits whose layers read fewer, in ONNX Runtime; TensorFlow Lite has no activations of fewer bits.

#include <gtest/gtest.h>

#include "exporters/tflite/tflite.h"
#include "layers/layers.h"
#include "quantize/convert/convert.h"
#include "tests/errors.h"
#include "tests/quantize/convert/trained_integers.h"
#include "tests/quantize/trained_net.h"
#include "tests/runtimes/comparison.h"

namespace miniqat::exporters::residual_sums_test {
namespace {

/// Two blocks on pictures of [9, 11, 6].
integer::Model residual_model(int bits) {
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
  for (const testing::OnnxComparison& result :
       testing::compare_in_onnx_runtime({{.models = {residual_model(4)}}, {.models = {residual_model(2)}}}, 6)) {
    print("sums", result.agreement);
    EXPECT_EQ(result.agreement.share(), 1);
  }
}

TEST(ResidualSumsInTflite, AreRefusedByTheNameOfTheOperation) {
  EXPECT_TRUE(testing::mentions(testing::error_of([] { tflite(residual_model(4)); }), {"tflite: [", "4 bits"}));
}

}  // namespace
}  // namespace miniqat::exporters::residual_sums_test
