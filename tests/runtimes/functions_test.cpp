// Functions of one number in LiteRT and ONNX Runtime against the integer engine's reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "exporters/tflite/tflite.h"
#include "exporters/tflite/tflite_generated.h"
#include "tests/runtimes/comparison.h"

namespace miniqat::exporters::functions_test {
namespace {

using integer::Grid;
using testing::RandomModel;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double hard_swish(double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }

/// What TensorFlow Lite wants behind LOGISTIC, and what it does not know.
constexpr Grid kOwn = {.scale = 1.0f / 256, .zero_point = 0};
constexpr Grid kOther = {.scale = 1.0f / 200, .zero_point = 20};

/// Numbers up to some 4 to 10, on both sides of 0. Returns their reach.
float grow_numbers(RandomModel& net) {
  const float reach = 4 + 6 * net.random().uniform();
  net.lookup("wide", [reach](double x) { return reach * x; },
             {.scale = reach / 128, .zero_point = 100 + static_cast<int>(net.random().below(50))});
  return reach;
}

void grow_sigmoid(RandomModel& net, const Grid& grid) {
  grow_numbers(net);
  net.lookup("Sigmoid", sigmoid, grid);
}
void grow_hard_swish(RandomModel& net, int bits) {
  grow_numbers(net);
  const float scale = (2 + 6 * net.random().uniform()) / static_cast<float>((1 << bits) - 1);
  const auto zero_point = static_cast<int>(std::lround(0.4f / scale));
  net.lookup("HardSwish", hard_swish, {.scale = scale, .zero_point = zero_point, .bits = bits});
}
void grow_leaky_relu(RandomModel& net, int bits) {
  const float reach = grow_numbers(net);
  const double alpha = 0.3 * net.random().uniform();
  net.lookup("LeakyRelu", [alpha](double x) { return x < 0 ? alpha * x : x; },
             {.scale = reach / static_cast<float>(1 << bits), .zero_point = (1 << bits) / 4, .bits = bits});
}

/// A function's form in a runtime, and how far that may be from ours.
struct Function {
  const char* name;
  void (*grow)(RandomModel& net, int bits);
  /// Equal integers, at least. An approximation of the runtime's, or ties that it rounds to even, take one step.
  double share = 1;
  /// What ONNX Runtime runs it with, and what would be real numbers.
  std::vector<std::string> kernels = {};
  std::string real = {};
};

const std::vector<Function> kInLiteRt = {
    {"HARD_SWISH", grow_hard_swish, 0.999},
    {"LOGISTIC", [](RandomModel& net, int) { grow_sigmoid(net, kOwn); }},
    {"Sigmoid by GATHER", [](RandomModel& net, int) { grow_sigmoid(net, kOther); }},
    {"LeakyRelu by GATHER", grow_leaky_relu}};

const std::vector<Function> kInOnnxRuntime = {
    {"Sigmoid",
     [](RandomModel& net, int bits) { grow_sigmoid(net, {.scale = std::ldexp(1.0f, -bits), .bits = bits}); },
     1,
     {"QLinearSigmoid"},
     "Sigmoid"},
    {"HardSwish", grow_hard_swish, 0.999, {"HardSwish", "HardSigmoid"}},
    {"LeakyRelu", grow_leaky_relu, 1, {"Gather"}, "LeakyRelu"}};

TEST(FunctionsInLiteRt, GiveOurIntegers) {
  MINIQAT_NEED_RUNTIMES();
  testing::LiteRtComparison comparison;
  for (const Function& function : kInLiteRt)
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      RandomModel net(seed, {9, 11, 3}, testing::kTfliteModels);
      function.grow(net, 8);
      comparison.add_both(function.name, net.finish());
    }
  const auto agreements = comparison.run();
  for (const Function& function : kInLiteRt) expect_near(function.name, agreements.at(function.name), function.share);
}

TEST(FunctionsInOnnxRuntime, GiveOurIntegers) {
  MINIQAT_NEED_RUNTIMES();
  std::vector<testing::OnnxGroup> groups;
  for (const Function& function : kInOnnxRuntime)
    for (const int bits : {8, 2})
      groups.push_back({testing::some_models(6, [&](RandomModel& net) { function.grow(net, bits); },
                                             {.fewest_activation_bits = bits})});
  const std::vector<testing::OnnxComparison> results = compare_in_onnx_runtime(groups, 6);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Function& function = kInOnnxRuntime[i / 2];
    expect_near(function.name, results[i].agreement, function.share);
    const auto runs = [&](const std::string& kernel) { return results[i].kernels.contains(kernel); };
    EXPECT_TRUE(std::ranges::any_of(function.kernels, runs)) << function.name;
    EXPECT_FALSE(runs(function.real)) << function.name << " runs on real numbers";
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
    integer::Model model = net.finish();
    model.operations[0].clamp = {.min = 0, .max = 255};
    EXPECT_EQ(kinds_of(tflite(model)), grid == kOwn ? std::vector{LOGISTIC} : (std::vector{CAST, GATHER}));
    EXPECT_EQ(kinds_of(tflite(model, {.int8 = true})),
              grid == kOwn ? std::vector{LOGISTIC} : (std::vector{CAST, ADD, GATHER}));
  }
}

}  // namespace
}  // namespace miniqat::exporters::functions_test
