// Exported models in ONNX Runtime beside the reference engine.

#include <gtest/gtest.h>

#include <functional>

#include "core/text/error.h"
#include "core/text/json.h"
#include "exporters/onnx/onnx.h"
#include "tests/fewer_cases.h"
#include "tests/runtimes/comparison.h"

namespace miniqat::exporters::onnxruntime_test {
namespace {

using integer::Model;
using testing::Case;
using testing::compare_in_onnx_runtime;
using testing::expect_complaint;
using testing::judge;
using testing::kOnnxRuntime;
using testing::OnnxComparison;
using testing::OnnxGroup;
using testing::random_images;
using testing::RandomModel;
using testing::some_models;
using testing::Verdict;

using Build = std::function<void(RandomModel&)>;

struct Kind {
  std::string name;
  Build build;
  /// What ONNX Runtime should run it with.
  std::string kernel;
  /// Equal integers, at least. The random scales make many ties in some kinds, and the runtime rounds ties to even.
  double share = 0.9999;
};

const std::vector<Kind> kKinds = {
    {"Conv2D", [](RandomModel& net) { net.conv2d(20); }, "QLinearConv"},
    {"DepthwiseConv2d", [](RandomModel& net) { net.depthwise_conv2d(2); }, "QLinearConv"},
    {"FullyConnected", [](RandomModel& net) { net.fully_connected(20); }, "QGemm"},
    {"Add", [](RandomModel& net) { net.add(net.rescale(), 0); }, "QLinearAdd"},
    {"Mul", [](RandomModel& net) { net.mul(net.rescale(), 0); }, "QLinearMul"},
    {"stretched Mul", [](RandomModel& net) { net.gate(); }, "QLinearMul", 0.98},
    {"Concat", [](RandomModel& net) { net.concat(net.rescale(), 0); }, "QLinearConcat", 0.95},
    {"Rescale", [](RandomModel& net) { net.rescale(), net.rescale(); }, "QuantizeLinear"},
    {"AveragePool", [](RandomModel& net) { net.average_pool(); }, "QLinearAveragePool", 0.93},
    {"Mean", [](RandomModel& net) { net.mean(); }, "QLinearGlobalAveragePool"},
    {"MaxPool", [](RandomModel& net) { net.max_pool(); }, "MaxPool", 1},
    {"Pad", [](RandomModel& net) { net.pad(); }, "Pad", 1},
    {"Slice", [](RandomModel& net) { net.slice(); }, "Slice", 1},
    {"Lookup", [](RandomModel& net) { net.lookup(); }, "Gather", 1},
    {"Reshape",
     [](RandomModel& net) {
       net.reshape({6, 11, 9});
     },
     "Reshape", 1},
    {"Flatten",
     [](RandomModel& net) {
       net.reshape({11, 54}), net.reshape({594});
     },
     "Reshape", 1}};

TEST(OnnxRuntime, GivesTheReferencesIntegersForEveryKind) {
  MINIQAT_NEED_RUNTIMES();
  std::vector<OnnxGroup> groups;
  for (const Kind& kind : kKinds)
    for (const int bits : {8, 2})
      groups.push_back(
          {some_models(static_cast<int>(testing::fewer(6, 2)), kind.build,
                       {.fewest_weight_bits = bits, .fewest_activation_bits = bits, .full_range_weights = true})});
  const std::vector<OnnxComparison> results = compare_in_onnx_runtime(groups, 6);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Kind& kind = kKinds[i / 2];
    const std::string what = concat(kind.name, i % 2 == 0 ? ", 8 bits" : ", 2 to 8 bits");
    expect_near(what, results[i].agreement, kind.share);
    EXPECT_TRUE(results[i].kernels.contains(kind.kernel)) << what;
    for (const char* real : {"Conv", "Gemm", "AveragePool", "GlobalAveragePool", "Add", "Mul", "Concat"})
      EXPECT_FALSE(results[i].kernels.contains(real)) << what << " runs on real numbers: " << real;
  }
}

TEST(OnnxRuntime, RunsWeightsIn4And8BitsAlike) {
  MINIQAT_NEED_RUNTIMES();
  const std::vector<Model> models =
      some_models(6, [](RandomModel& net) { net.conv2d(7), net.depthwise_conv2d(), net.fully_connected(11); },
                  {.fewest_weight_bits = 2, .fewest_activation_bits = 8, .full_range_weights = true});
  for (const OnnxComparison& result :
       compare_in_onnx_runtime({{models, {.packed_4_bits = true}}, {models, {.packed_4_bits = false}}}, 20)) {
    expect_near("2 to 8 bits", result.agreement, 0.999);
    EXPECT_FALSE(result.kernels.contains("Conv") || result.kernels.contains("Gemm"));
  }
}

TEST(OnnxRuntime, RunsEveryOpsetOnIntegers) {
  MINIQAT_NEED_RUNTIMES();
  const std::vector<Model> models = some_models(3, [](RandomModel& net) {
    net.conv2d(7), net.depthwise_conv2d();
    const int pooled = net.max_pool();
    net.add(net.rescale(), pooled), net.pad(), net.slice(), net.lookup(), net.mean(), net.fully_connected(11);
  });
  std::vector<OnnxGroup> groups;
  for (std::int64_t opset = kOldestOpset; opset <= kNewestOpset; ++opset)
    groups.push_back({models, {.packed_4_bits = false, .opset = opset}});
  std::set<std::string> first;
  for (const OnnxComparison& result : compare_in_onnx_runtime(groups, 10)) {
    expect_near("an opset", result.agreement, 0.97);
    for (const char* real : {"Conv", "Gemm", "Add"}) EXPECT_FALSE(result.kernels.contains(real)) << real;
    if (first.empty()) first = result.kernels;
    EXPECT_EQ(result.kernels, first);
  }
}

TEST(OnnxRuntime, AgreesOnWholeNetworks) {
  MINIQAT_NEED_RUNTIMES();
  std::vector<OnnxGroup> groups;
  for (const bool plain : {true, false})
    for (const int bits : {8, 2}) {
      OnnxGroup& group = groups.emplace_back();
      for (std::uint64_t seed = 1; seed <= 10; ++seed)
        group.models.push_back(testing::random_network(
            seed, {.fewest_weight_bits = bits, .fewest_activation_bits = bits, .plain_windows = plain}));
    }
  const std::vector<OnnxComparison> results = compare_in_onnx_runtime(groups, 40);
  for (std::size_t i = 0; i < results.size(); ++i) {
    // Average pools with padding of any width divide by other counts, with more ties, which the runtime rounds to even.
    expect_near("networks", results[i].agreement, i < 2 ? 0.965 : 0.9, 2);
    EXPECT_GE(results[i].agreement.same_class_share(), 0.99);
  }
}

/// The outputs do not depend on how many examples run at once, nor on the number of threads.
TEST(OnnxRuntime, TakesBatchesOfAnySize) {
  MINIQAT_NEED_RUNTIMES();
  const Model model = testing::random_network(3);
  Random random(1);
  const std::vector<Case> cases = {{onnx(model), random_images(random, model, 7)}};
  const Verdict one = judge(kOnnxRuntime, cases, {"--batch", "1"});
  const Verdict three = judge(kOnnxRuntime, cases, {"--batch", "3", "--threads", "2"});
  ASSERT_EQ(one.status, 0) << one.err;
  ASSERT_EQ(three.status, 0) << three.err;
  EXPECT_EQ(one.outputs, three.outputs);
  const nlohmann::json report = nlohmann::json::parse(one.out);
  EXPECT_EQ(report["runtime"], "onnxruntime");
  EXPECT_EQ(report["version"], "1.30.0");
  EXPECT_EQ(report["dtype"], "float32");
  EXPECT_EQ(report["outputs_per_example"], 5);
  EXPECT_GT(report["seconds"], 0);
}

TEST(OnnxRuntime, SaysInOneLineWhatIsWrong) {
  MINIQAT_NEED_RUNTIMES();
  const Model model = testing::random_network(1);
  const std::string bytes = onnx(model);
  Random random(1);
  const Tensor images = random_images(random, model, 2);
  expect_complaint(judge(kOnnxRuntime, {{bytes, Tensor({2, 5}, DType::kUInt8)}}), "2 examples of 297 take 594");
  expect_complaint(judge(kOnnxRuntime, {{bytes, images}}, {"--threads", "0"}), "--threads");
  expect_complaint(judge(kOnnxRuntime, {{bytes.substr(0, 2000), images}}), "protobuf");
}

}  // namespace
}  // namespace miniqat::exporters::onnxruntime_test
