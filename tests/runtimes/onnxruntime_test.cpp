// Exported models in ONNX Runtime beside the reference engine.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "exporters/onnx.h"
#include "exporters/onnx.pb.h"
#include "integer/reference/engine.h"
#include "tests/integer/random_model.h"
#include "tests/runtimes/judge.h"

namespace miniqat::exporters {
namespace {

using integer::Model;
using testing::Case;
using testing::judge;
using testing::random_images;
using testing::RandomModel;
using testing::RandomModelOptions;
using testing::Verdict;

const std::string kScript = "onnxruntime.mjs";

struct Comparison {
  std::int64_t outputs = 0;
  std::int64_t equal = 0;
  std::int64_t examples = 0;
  /// Examples whose largest output is in the same place.
  std::int64_t same_class = 0;
  int largest_difference = 0;
  /// The types of the nodes that the runtime made of the model.
  std::set<std::string> kernels = {};

  double share() const { return static_cast<double>(equal) / static_cast<double>(outputs); }
  void add(const Comparison& other) {
    outputs += other.outputs;
    equal += other.equal;
    examples += other.examples;
    same_class += other.same_class;
    largest_difference = std::max(largest_difference, other.largest_difference);
    kernels.insert(other.kernels.begin(), other.kernels.end());
  }
};

std::vector<int> integers_of(const std::string& bytes, const integer::Grid& grid) {
  std::vector<float> reals(bytes.size() / sizeof(float));
  std::memcpy(reals.data(), bytes.data(), reals.size() * sizeof(float));
  std::vector<int> integers;
  for (const float real : reals) integers.push_back(static_cast<int>(std::lround(real / grid.scale)) + grid.zero_point);
  return integers;
}

Comparison compare(const Model& model, const Tensor& images, const std::string& outputs, const std::string& optimized) {
  const std::vector<Tensor> tensors = integer::reference::run(model, images);
  const auto expected = tensors[model.output].values<std::uint8_t>();
  const std::vector<int> actual = integers_of(outputs, model.tensor(model.output).grid);
  if (actual.size() != expected.size()) fail(actual.size(), " outputs, not ", expected.size());

  Comparison result{.outputs = static_cast<std::int64_t>(actual.size()), .examples = images.shape()[0]};
  const auto classes = static_cast<std::ptrdiff_t>(actual.size()) / result.examples;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    result.equal += actual[i] == expected[i];
    result.largest_difference = std::max(result.largest_difference, std::abs(actual[i] - expected[i]));
  }
  for (std::ptrdiff_t n = 0; n < result.examples; ++n) {
    const auto a = actual.begin() + n * classes;
    const auto e = expected.begin() + n * classes;
    result.same_class += std::max_element(a, a + classes) - a == std::max_element(e, e + classes) - e;
  }
  pb::Model graph;
  if (!graph.ParseFromString(optimized)) fail("an optimized graph that cannot be read");
  for (const pb::Node& node : graph.graph().node()) result.kernels.insert(node.op_type());
  return result;
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
  const Verdict verdict = judge(kScript, cases, {}, true);
  if (verdict.status != 0) fail("status ", verdict.status, ": ", verdict.err);
  std::vector<Comparison> results;
  std::size_t i = 0;
  for (const Group& group : groups) {
    Comparison& all = results.emplace_back();
    for (const Model& model : group.models) {
      all.add(compare(model, cases[i].images, verdict.outputs[i], verdict.optimized[i]));
      ++i;
    }
  }
  return results;
}

void print(const std::string& what, const Comparison& result) {
  std::cout << "  " << what << ": " << result.outputs << " outputs, " << 100 * result.share() << "% equal, at most "
            << result.largest_difference << " apart; same class in " << result.same_class << " of " << result.examples
            << "\n";
}

using Build = std::function<void(RandomModel&)>;
std::vector<Model> some(int count, const Build& build, const RandomModelOptions& options = {}) {
  std::vector<Model> models;
  for (int seed = 1; seed <= count; ++seed) {
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
    {"AveragePool", [](RandomModel& net) { net.average_pool(); }, "QLinearAveragePool", 0.9},
    {"Mean", [](RandomModel& net) { net.mean(); }, "QLinearGlobalAveragePool", 0.9},
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
      groups.push_back({some(12, kind.build, {.fewest_weight_bits = bits, .fewest_activation_bits = bits})});
  const std::vector<Comparison> results = compare(groups, 3);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Kind& kind = kKinds[i / 2];
    const std::string what = concat(kind.name, i % 2 == 0 ? ", 8 bits" : ", 2 to 8 bits");
    print(what, results[i]);
    EXPECT_GE(results[i].share(), kind.share) << what;
    EXPECT_LE(results[i].largest_difference, 1) << what;
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
    print("2 to 8 bits", result);
    EXPECT_GE(result.share(), 0.99);
    EXPECT_LE(result.largest_difference, 1);
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
    print("networks", result);
    EXPECT_GE(result.share(), 0.9);
    EXPECT_LE(result.largest_difference, 2);
    EXPECT_GE(static_cast<double>(result.same_class) / static_cast<double>(result.examples), 0.97);
  }
}

/// The outputs do not depend on how many examples run at once, nor on the number of threads.
TEST(OnnxRuntime, TakesBatchesOfAnySize) {
  MINIQAT_NEED_RUNTIMES();
  const Model model = testing::random_network(3);
  Random random(1);
  const std::vector<Case> cases = {{onnx(model), random_images(random, model, 7)}};
  const Verdict one = judge(kScript, cases, {"--batch", "1"});
  const Verdict three = judge(kScript, cases, {"--batch", "3", "--threads", "2"});
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
  const auto expect = [](const Verdict& verdict, const std::string& part) {
    EXPECT_EQ(verdict.status, 1);
    EXPECT_EQ(std::ranges::count(verdict.err, '\n'), 1) << verdict.err;
    EXPECT_NE(verdict.err.find(part), std::string::npos) << verdict.err;
  };
  expect(judge(kScript, {{bytes, Tensor({2, 5}, DType::kUInt8)}}), "2 examples of 297 take 594");
  expect(judge(kScript, {{bytes, images}}, {"--threads", "0"}), "--threads");
  expect(judge(kScript, {{bytes.substr(0, 2000), images}}), "");
}

}  // namespace
}  // namespace miniqat::exporters
