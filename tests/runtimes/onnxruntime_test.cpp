// Exported models in ONNX Runtime beside the reference engine.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "exporters/onnx/onnx.h"
#include "exporters/onnx/onnx.pb.h"
#include "integer/reference/engine.h"
#include "tests/integer/random_model.h"
#include "tests/runtimes/agreement.h"
#include "tests/runtimes/judge.h"

namespace miniqat::exporters::onnxruntime_test {
namespace {

using integer::Model;
using testing::Case;
using testing::expect_complaint;
using testing::judge;
using testing::kOnnxRuntime;
using testing::random_images;
using testing::RandomModel;
using testing::RandomModelOptions;
using testing::RuntimeAgreement;
using testing::Verdict;

/// What the runtime made of models.
struct Comparison {
  RuntimeAgreement agreement = {};
  /// The types of the nodes that the runtime runs.
  std::set<std::string> kernels = {};
};

/// The numbers' places on the grid; throws Error for a number between two of them.
std::vector<int> integers_of(const std::string& bytes, const integer::Grid& grid) {
  std::vector<float> reals(bytes.size() / sizeof(float));
  std::memcpy(reals.data(), bytes.data(), reals.size() * sizeof(float));
  std::vector<int> integers;
  for (const float real : reals) {
    integers.push_back(static_cast<int>(std::lround(real / grid.scale)) + grid.zero_point);
    if (dequantize(grid, integers.back()) != real) fail(real, " is not on the grid of scale ", grid.scale);
  }
  return integers;
}

void add(const Model& model, const Tensor& images, const std::string& outputs, const std::string& optimized,
         Comparison& result) {
  result.agreement.add(integer::reference::run(model, images)[model.output],
                       integers_of(outputs, model.tensor(model.output).grid));
  pb::Model graph;
  if (!graph.ParseFromString(optimized)) fail("an optimized graph that cannot be read");
  for (const pb::Node& node : graph.graph().node()) result.kernels.insert(node.op_type());
}

/// Models to be compared with each other's sums.
struct Group {
  std::vector<Model> models;
  OnnxOptions options = {};
};

/// Runs all models in one process, on n random images each, and compares them group by group.
std::vector<Comparison> compare(const std::vector<Group>& groups, std::int64_t n) {
  std::vector<Case> cases;
  Random random(7);
  for (const Group& group : groups)
    for (const Model& model : group.models)
      cases.push_back({onnx(model, group.options), random_images(random, model, n)});
  const Verdict verdict = judge(kOnnxRuntime, cases, {}, true);
  if (verdict.status != 0) fail("status ", verdict.status, ": ", verdict.err);
  std::vector<Comparison> results;
  std::size_t i = 0;
  for (const Group& group : groups) {
    Comparison& all = results.emplace_back();
    for (const Model& model : group.models) {
      add(model, cases[i].images, verdict.outputs[i], verdict.optimized[i], all);
      ++i;
    }
  }
  return results;
}

using Build = std::function<void(RandomModel&)>;
std::vector<Model> some(int count, const Build& build, const RandomModelOptions& options = {}) {
  std::vector<Model> models;
  for (int seed = 7; seed < 7 + count; ++seed) {
    RandomModel net(static_cast<std::uint64_t>(seed), {9, 11, 6}, options);
    build(net);
    models.push_back(net.finish());
  }
  return models;
}

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
    {"Concat", [](RandomModel& net) { net.concat(net.rescale(), 0); }, "QLinearConcat", 0.95},
    {"Rescale", [](RandomModel& net) { net.rescale(), net.rescale(); }, "QuantizeLinear"},
    {"AveragePool", [](RandomModel& net) { net.average_pool(); }, "QLinearAveragePool", 0.93},
    {"Mean", [](RandomModel& net) { net.mean(); }, "QLinearGlobalAveragePool"},
    {"MaxPool", [](RandomModel& net) { net.max_pool(); }, "MaxPool", 1},
    {"Pad", [](RandomModel& net) { net.pad(); }, "Pad", 1},
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
  std::vector<Group> groups;
  for (const Kind& kind : kKinds)
    for (const int bits : {8, 2})
      groups.push_back({some(6, kind.build, {.fewest_weight_bits = bits, .fewest_activation_bits = bits})});
  const std::vector<Comparison> results = compare(groups, 6);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Kind& kind = kKinds[i / 2];
    const std::string what = concat(kind.name, i % 2 == 0 ? ", 8 bits" : ", 2 to 8 bits");
    const RuntimeAgreement& agreement = results[i].agreement;
    print(what, agreement);
    EXPECT_GE(agreement.share(), kind.share) << what;
    EXPECT_LE(agreement.largest, 1) << what;
    EXPECT_TRUE(results[i].kernels.contains(kind.kernel)) << what;
    for (const char* real : {"Conv", "Gemm", "AveragePool", "GlobalAveragePool", "Add", "Mul", "Concat"})
      EXPECT_FALSE(results[i].kernels.contains(real)) << what << " runs on real numbers: " << real;
  }
}

TEST(OnnxRuntime, RunsWeightsIn4And8BitsAlike) {
  MINIQAT_NEED_RUNTIMES();
  const std::vector<Model> models =
      some(6, [](RandomModel& net) { net.conv2d(7), net.depthwise_conv2d(), net.fully_connected(11); },
           {.fewest_weight_bits = 2, .fewest_activation_bits = 8});
  for (const Comparison& result :
       compare({{models, {.packed_4_bits = true}}, {models, {.packed_4_bits = false}}}, 20)) {
    print("2 to 8 bits", result.agreement);
    EXPECT_GE(result.agreement.share(), 0.999);
    EXPECT_LE(result.agreement.largest, 1);
    EXPECT_FALSE(result.kernels.contains("Conv") || result.kernels.contains("Gemm"));
  }
}

TEST(OnnxRuntime, AgreesOnWholeNetworks) {
  MINIQAT_NEED_RUNTIMES();
  std::vector<Group> groups;
  for (const int bits : {8, 2}) {
    Group& group = groups.emplace_back();
    for (std::uint64_t seed = 1; seed <= 10; ++seed)
      group.models.push_back(
          testing::random_network(seed, {.fewest_weight_bits = bits, .fewest_activation_bits = bits}));
  }
  for (const Comparison& result : compare(groups, 40)) {
    print("networks", result.agreement);
    EXPECT_GE(result.agreement.share(), 0.965);
    EXPECT_LE(result.agreement.largest, 2);
    EXPECT_GE(result.agreement.same_class_share(), 0.99);
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
