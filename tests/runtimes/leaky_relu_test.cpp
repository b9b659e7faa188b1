// LeakyRelu in LiteRT and ONNX Runtime against the integer engine's reference.

#include <gtest/gtest.h>

#include "tests/exporters/tflite/tflite_models.h"
#include "tests/runtimes/comparison.h"

namespace miniqat::exporters::leaky_relu_test {
namespace {

using testing::RandomModel;

void grow(RandomModel& net, int bits) {
  const float reach = 4 + 6 * net.random().uniform();
  const double alpha = 0.3 * net.random().uniform();
  net.lookup("wide", [reach](double x) { return reach * x; }, {.scale = reach / 128, .zero_point = 120});
  net.lookup("LeakyRelu", [alpha](double x) { return x < 0 ? alpha * x : x; },
             {.scale = reach / static_cast<float>(1 << bits), .zero_point = (1 << bits) / 4, .bits = bits});
}

TEST(LeakyReluInLiteRt, ItsTableGivesOurIntegers) {
  MINIQAT_NEED_RUNTIMES();
  testing::LiteRtComparison comparison;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    RandomModel net(seed, {9, 11, 3}, testing::kTfliteModels);
    grow(net, 8);
    comparison.add_both("GATHER", net.finish());
  }
  const testing::RuntimeAgreement agreement = comparison.run().at("GATHER");
  print("LeakyRelu", agreement);
  EXPECT_EQ(agreement.share(), 1);
}

TEST(LeakyReluInOnnxRuntime, ItsTableGivesOurIntegers) {
  MINIQAT_NEED_RUNTIMES();
  std::vector<testing::OnnxGroup> groups;
  for (const int bits : {8, 3})
    groups.push_back(
        {testing::some_models(4, [bits](RandomModel& net) { grow(net, bits); }, {.fewest_activation_bits = bits})});
  for (const testing::OnnxComparison& result : compare_in_onnx_runtime(groups, 4)) {
    print("LeakyRelu", result.agreement);
    EXPECT_EQ(result.agreement.share(), 1);
    EXPECT_TRUE(result.kernels.contains("Gather"));
    EXPECT_FALSE(result.kernels.contains("LeakyRelu")) << "runs on real numbers";
  }
}

}  // namespace
}  // namespace miniqat::exporters::leaky_relu_test
