// Sigmoid in LiteRT and ONNX Runtime against the integer engine's reference.

#include <gtest/gtest.h>

#include <cmath>

#include "exporters/tflite/tflite.h"
#include "exporters/tflite/tflite_generated.h"
#include "tests/exporters/tflite/tflite_models.h"
#include "tests/runtimes/comparison.h"

namespace miniqat::exporters::sigmoid_test {
namespace {

using integer::Grid;
using integer::Model;
using testing::OnnxComparison;
using testing::RandomModel;
using testing::RuntimeAgreement;

/// What TensorFlow Lite wants behind LOGISTIC, and what it does not know.
constexpr Grid kOwn = {.scale = 1.0f / 256, .zero_point = 0};
constexpr Grid kOther = {.scale = 1.0f / 200, .zero_point = 20};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Of numbers on a grid drawn at random, up to some 4 to 10.
void grow(RandomModel& net, const Grid& grid) {
  const float reach = 4 + 6 * net.random().uniform();
  net.lookup("wide", [reach](double x) { return reach * x; },
             {.scale = reach / 128, .zero_point = 100 + static_cast<int>(net.random().below(50))});
  net.lookup("Sigmoid", sigmoid, grid);
}

TEST(SigmoidInLiteRt, LogisticAndTheTableGiveOurIntegers) {
  MINIQAT_NEED_RUNTIMES();
  testing::LiteRtComparison comparison;
  for (std::uint64_t seed = 0; seed < 6; ++seed)
    for (const Grid& grid : {kOwn, kOther}) {
      RandomModel net(seed, {9, 11, 3}, testing::kTfliteModels);
      grow(net, grid);
      comparison.add_both(grid == kOwn ? "LOGISTIC" : "GATHER", net.finish());
    }
  for (const auto& [kind, agreement] : comparison.run()) {
    print(kind, agreement);
    EXPECT_EQ(agreement.share(), 1) << kind;
  }
}

std::vector<tflite_schema::OperatorKind> kinds_of(const std::string& bytes) {
  const auto* model = tflite_schema::GetModel(bytes.data());
  std::vector<tflite_schema::OperatorKind> kinds;
  for (const auto* op : *model->subgraphs()->Get(0)->operators())
    kinds.push_back(model->operator_codes()->Get(op->code())->kind());
  return kinds;
}

TEST(SigmoidInTflite, IsLogisticOnItsOwnGridOnly) {
  using enum tflite_schema::OperatorKind;
  for (const Grid& grid : {kOwn, kOther}) {
    RandomModel net(1, {4}, testing::kTfliteModels);
    net.lookup("Sigmoid", sigmoid, grid);
    Model model = net.finish();
    model.operations[0].clamp = {.min = 0, .max = 255};
    EXPECT_EQ(kinds_of(tflite(model)), grid == kOwn ? std::vector{LOGISTIC} : (std::vector{CAST, GATHER}));
    EXPECT_EQ(kinds_of(tflite(model, {.int8 = true})),
              grid == kOwn ? std::vector{LOGISTIC} : (std::vector{CAST, ADD, GATHER}));
  }
}

TEST(SigmoidInOnnxRuntime, ItsTableGivesOurIntegers) {
  MINIQAT_NEED_RUNTIMES();
  std::vector<testing::OnnxGroup> groups;
  for (const int bits : {8, 2})
    groups.push_back({testing::some_models(
        6, [bits](RandomModel& net) { grow(net, {.scale = std::ldexp(1.0f, -bits), .bits = bits}); },
        {.fewest_activation_bits = bits})});
  for (const OnnxComparison& result : compare_in_onnx_runtime(groups, 6)) {
    print("Sigmoid", result.agreement);
    EXPECT_EQ(result.agreement.share(), 1);
    EXPECT_TRUE(result.kernels.contains("QLinearSigmoid"));
    EXPECT_FALSE(result.kernels.contains("Sigmoid")) << "runs on real numbers";
  }
}

}  // namespace
}  // namespace miniqat::exporters::sigmoid_test
