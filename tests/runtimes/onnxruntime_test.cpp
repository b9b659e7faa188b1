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
#include "core/files.h"
#include "exporters/onnx.h"
#include "exporters/onnx.pb.h"
#include "integer/reference/engine.h"
#include "tests/integer/random_model.h"
#include "tests/runtimes/judge.h"
#include "tests/temp_dir.h"

namespace miniqat::exporters {
namespace {

using integer::Model;
using testing::judge;
using testing::random_images;
using testing::RandomModel;
using testing::RandomModelOptions;
using testing::TempDir;
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

/// Writes, runs and compares a model. Sets `result` only when nothing failed.
void compare(const Model& model, const Tensor& images, const OnnxOptions& options, Comparison& result) {
  const TempDir directory;
  const auto file = directory.write("model.onnx", onnx(model, options));
  const auto optimized = directory.path() / "optimized.onnx";
  const Verdict verdict = judge(kScript, file, images, {"--optimized", optimized.string()});
  ASSERT_EQ(verdict.status, 0) << verdict.err;
  const std::vector<Tensor> tensors = integer::reference::run(model, images);
  const auto expected = tensors[model.output].values<std::uint8_t>();
  const std::vector<int> actual = integers_of(verdict.outputs, model.tensor(model.output).grid);
  ASSERT_EQ(actual.size(), expected.size());

  result = {.outputs = static_cast<std::int64_t>(actual.size()), .examples = images.shape()[0]};
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
  ASSERT_TRUE(graph.ParseFromString(read_file(optimized)));
  for (const pb::Node& node : graph.graph().node()) result.kernels.insert(node.op_type());
}

/// The comparison of several random models of one kind.
using Build = std::function<void(RandomModel&)>;
Comparison compare_some(int models, const RandomModelOptions& random_options, const Build& build,
                        const OnnxOptions& options = {}) {
  Comparison all;
  for (int seed = 1; seed <= models; ++seed) {
    RandomModel net(static_cast<std::uint64_t>(seed), {9, 11, 6}, random_options);
    build(net);
    const Model model = net.finish();
    Comparison one;
    compare(model, random_images(net.random(), model, 24), options, one);
    if (::testing::Test::HasFatalFailure()) return all;
    all.add(one);
  }
  std::cout << "  " << all.outputs << " outputs, " << 100 * all.share() << "% equal, at most " << all.largest_difference
            << " apart\n";
  return all;
}

struct Kind {
  std::string name;
  Build build;
  /// What ONNX Runtime should run it with.
  std::string kernel;
  /// Equal integers, at least. Sums of small integers with simple scales tie often, and ties are rounded to even there.
  double share = 0.9999;
};

void PrintTo(const Kind& kind, std::ostream* stream) { *stream << kind.name; }

class OnnxRuntimeKinds : public ::testing::TestWithParam<Kind> {};

TEST_P(OnnxRuntimeKinds, GiveTheReferencesIntegers) {
  MINIQAT_NEED_RUNTIMES();
  const Kind& kind = GetParam();
  const Comparison result = compare_some(3, {}, kind.build);
  EXPECT_GE(result.share(), kind.share);
  EXPECT_LE(result.largest_difference, 1);
  EXPECT_TRUE(result.kernels.contains(kind.kernel)) << ::testing::PrintToString(result.kernels);
  for (const char* real : {"Conv", "Gemm", "AveragePool", "Add", "Mul", "Concat"})
    EXPECT_FALSE(result.kernels.contains(real)) << real << " runs on real numbers";
}

INSTANTIATE_TEST_SUITE_P(
    , OnnxRuntimeKinds,
    ::testing::Values(Kind{"Conv2D", [](RandomModel& net) { net.conv2d(20); }, "QLinearConv"},
                      Kind{"DepthwiseConv2d", [](RandomModel& net) { net.depthwise_conv2d(2); }, "QLinearConv"},
                      Kind{"FullyConnected", [](RandomModel& net) { net.fully_connected(20); }, "QGemm"},
                      Kind{"Add", [](RandomModel& net) { net.add(net.rescale(), 0); }, "QLinearAdd"},
                      Kind{"Mul", [](RandomModel& net) { net.mul(net.rescale(), 0); }, "QLinearMul"},
                      Kind{"Concat", [](RandomModel& net) { net.concat(net.rescale(), 0); }, "QLinearConcat"},
                      Kind{"Rescale", [](RandomModel& net) { net.rescale(), net.rescale(); }, "QuantizeLinear"},
                      Kind{"AveragePool", [](RandomModel& net) { net.average_pool(); }, "QLinearAveragePool", 0.8},
                      Kind{"Mean", [](RandomModel& net) { net.mean(); }, "QLinearGlobalAveragePool", 0.95},
                      Kind{"MaxPool", [](RandomModel& net) { net.max_pool(); }, "MaxPool", 1},
                      Kind{"Pad", [](RandomModel& net) { net.pad(); }, "Pad", 1},
                      Kind{"Reshape",
                           [](RandomModel& net) {
                             net.reshape({6, 11, 9});
                           },
                           "Reshape", 1},
                      Kind{"Flatten",
                           [](RandomModel& net) {
                             net.reshape({11, 54}), net.reshape({594});
                           },
                           "Reshape", 1}),
    [](const auto& info) { return info.param.name; });

TEST(OnnxRuntime, RunsWeightsIn4And8BitsAlike) {
  MINIQAT_NEED_RUNTIMES();
  for (const bool packed : {true, false}) {
    const Comparison result =
        compare_some(3, {.fewest_weight_bits = 2, .fewest_activation_bits = 8},
                     [](RandomModel& net) { net.conv2d(7), net.depthwise_conv2d(), net.fully_connected(11); },
                     {.packed_4_bits = packed});
    EXPECT_GE(result.share(), 0.9999);
    EXPECT_FALSE(result.kernels.contains("Conv") || result.kernels.contains("Gemm"));
  }
}

TEST(OnnxRuntime, AgreesOnWholeNetworks) {
  MINIQAT_NEED_RUNTIMES();
  for (const int bits : {8, 2}) {
    Comparison all;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const Model model = testing::random_network(seed, {.fewest_weight_bits = bits, .fewest_activation_bits = bits});
      Random random(seed);
      Comparison one;
      compare(model, random_images(random, model, 100), {}, one);
      if (HasFatalFailure()) return;
      all.add(one);
    }
    EXPECT_GE(all.share(), 0.9) << bits << " bits";
    EXPECT_LE(all.largest_difference, 2) << bits << " bits";
    EXPECT_GE(static_cast<double>(all.same_class) / static_cast<double>(all.examples), 0.97) << bits << " bits";
  }
}

/// The outputs do not depend on how many examples run at once, nor on the number of threads.
TEST(OnnxRuntime, TakesBatchesOfAnySize) {
  MINIQAT_NEED_RUNTIMES();
  const Model model = testing::random_network(3);
  Random random(1);
  const Tensor images = random_images(random, model, 7);
  const TempDir directory;
  const auto file = directory.write("model.onnx", onnx(model));
  const Verdict one = judge(kScript, file, images, {"--batch", "1"});
  const Verdict three = judge(kScript, file, images, {"--batch", "3", "--threads", "2"});
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
  const TempDir directory;
  const Model model = testing::random_network(1);
  Random random(1);
  const Tensor images = random_images(random, model, 2);
  const auto expect = [](const Verdict& verdict, const std::string& part) {
    EXPECT_EQ(verdict.status, 1);
    EXPECT_EQ(std::ranges::count(verdict.err, '\n'), 1) << verdict.err;
    EXPECT_NE(verdict.err.find(part), std::string::npos) << verdict.err;
  };
  expect(judge(kScript, directory.path() / "none.onnx", images), "none.onnx");
  const auto file = directory.write("model.onnx", onnx(model));
  expect(judge(kScript, file, Tensor({2, 5}, DType::kUInt8)), "2 examples of 297 take 594");
  expect(judge(kScript, file, images, {"--threads", "0"}), "--threads");
  expect(judge(kScript, file, images, {"--colour", "red"}), "--colour");
  expect(judge(kScript, directory.write("half.onnx", onnx(model).substr(0, 2000)), images), "");
}

}  // namespace
}  // namespace miniqat::exporters
