// Layers whose biases take operations of their own, in LiteRT and ONNX Runtime.

#include <gtest/gtest.h>

#include "tests/quantize/eval_net.h"
#include "tests/runtimes/comparison.h"

namespace miniqat::exporters::coarse_units_runtime_test {
namespace {

using testing::EvalNet;

/// A convolution of units of 2 to 300 steps of its output, with biases of any part of a unit.
integer::Model model_of(int seed, quantize::Range<float> range) {
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

TEST(CoarseUnitsRuntime, RuntimesGiveTheIntegersOfTheReference) {
  MINIQAT_NEED_RUNTIMES();
  testing::LiteRtComparison lite;
  testing::OnnxGroup group;
  int lines = 0;
  for (int seed = 0; seed < 30; ++seed) {
    const integer::Model model =
        model_of(seed, seed % 2 == 0 ? quantize::Range<float>{0, 1} : quantize::Range<float>{-0.5f, 1});
    lines += model.operations.size() == 2 ? 1 : 0;
    lite.add("uint8", model, {});
    group.models.push_back(model);
  }
  EXPECT_GT(lines, 20);
  for (const auto& [kind, agreement] : lite.run()) {
    print(kind, agreement);
    EXPECT_GE(agreement.share(), 0.999);
    EXPECT_LE(agreement.largest, 1);
  }
  for (const testing::OnnxComparison& result : testing::compare_in_onnx_runtime({group}, 8)) {
    print("ONNX Runtime", result.agreement);
    EXPECT_GE(result.agreement.share(), 0.999);
    EXPECT_LE(result.agreement.largest, 1);
    EXPECT_FALSE(result.kernels.contains("Conv")) << "on real numbers";
  }
}

}  // namespace
}  // namespace miniqat::exporters::coarse_units_runtime_test
