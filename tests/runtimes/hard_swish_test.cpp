// HardSwish in LiteRT and ONNX Runtime against the integer engine's reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/exporters/tflite/tflite_models.h"
#include "tests/runtimes/comparison.h"

namespace miniqat::exporters::hard_swish_test {
namespace {

using integer::Grid;
using testing::OnnxComparison;
using testing::RandomModel;

double hard_swish(double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }

/// On grids drawn at random, of numbers on both sides of its bends.
void grow(RandomModel& net, int bits) {
  const float reach = 4 + 6 * net.random().uniform();
  net.lookup("wide", [reach](double x) { return reach * x; },
             {.scale = reach / 128, .zero_point = 100 + static_cast<int>(net.random().below(50))});
  const float scale = (2 + 6 * net.random().uniform()) / static_cast<float>((1 << bits) - 1);
  const auto zero_point = static_cast<int>(std::lround(0.4f / scale));
  net.lookup("HardSwish", hard_swish, {.scale = scale, .zero_point = zero_point, .bits = bits});
}

TEST(HardSwishInLiteRt, ItsApproximationIsNear) {
  MINIQAT_NEED_RUNTIMES();
  testing::LiteRtComparison comparison;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    RandomModel net(seed, {9, 11, 3}, testing::kTfliteModels);
    grow(net, 8);
    comparison.add_both("HARD_SWISH", net.finish());
  }
  const testing::RuntimeAgreement agreement = comparison.run().at("HARD_SWISH");
  print("HARD_SWISH", agreement);
  EXPECT_GE(agreement.share(), 0.999);
  EXPECT_LE(agreement.largest, 1);
}

TEST(HardSwishInOnnxRuntime, RealNumbersGiveOurIntegers) {
  MINIQAT_NEED_RUNTIMES();
  std::vector<testing::OnnxGroup> groups;
  for (const int bits : {8, 2})
    groups.push_back(
        {testing::some_models(6, [bits](RandomModel& net) { grow(net, bits); }, {.fewest_activation_bits = bits})});
  for (const OnnxComparison& result : compare_in_onnx_runtime(groups, 6)) {
    print("HardSwish", result.agreement);
    EXPECT_GE(result.agreement.share(), 0.999) << "ties are rounded to even";
    EXPECT_LE(result.agreement.largest, 1);
    EXPECT_TRUE(result.kernels.contains("HardSwish") || result.kernels.contains("HardSigmoid"));
  }
}

}  // namespace
}  // namespace miniqat::exporters::hard_swish_test
