// Exported models in LiteRT against the integer engine's reference.

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "core/text/error.h"
#include "core/text/json.h"
#include "exporters/tflite/tflite.h"
#include "integer/reference/engine.h"
#include "tests/fewer_cases.h"
#include "tests/integer/random_model.h"
#include "tests/runtimes/comparison.h"

namespace miniqat::exporters::litert_test {
namespace {

using integer::Grid;
using integer::Model;
using testing::expect_complaint;
using testing::judge;
using testing::kLiteRt;
using testing::kTfliteModels;
using testing::LiteRtComparison;
using testing::random_images;
using testing::RandomModel;
using testing::RuntimeAgreement;
using testing::Verdict;
using testing::with_int4_weights;
using testing::with_scales_per_tensor;
using testing::with_symmetric_weights;
using testing::with_wider_padding;

constexpr std::int64_t kImages = 4;
const Shape kInput = {9, 11, 3};

/// Random models of each kind: $MINIQAT_TEST_MODELS, or the first three of six (which the bounds are for).
std::uint64_t models() {
  const char* given = std::getenv("MINIQAT_TEST_MODELS");
  if (given == nullptr) return testing::tries_all_cases() ? 6 : 3;
  const long count = std::strtol(given, nullptr, 10);
  if (count < 1) fail("MINIQAT_TEST_MODELS must be a number of 1 or more, not ", given);
  return static_cast<std::uint64_t>(count);
}

/// A kind of model, and how far LiteRT may be from the reference.
struct Kind {
  std::string name;
  double share;
  int largest;
  std::function<void(RandomModel&)> make;
};

// LiteRT multiplies sums by float32 ratios: rounding may take a product that lies within some 4e-6 steps of a tie (at
// 100 steps) to the other side. Most models have no such product; those that have one have few. An Add has integers
// alone.
constexpr double kFloatProducts = 0.9999;
// Means of an even number of pixels are often ties, which int8 rounds away from its zero.
constexpr double kAverages = 0.95;

const std::vector<Kind> kKinds = {
    {"MaxPool", 1, 0, [](RandomModel& net) { net.max_pool(); }},
    {"Lookup", 1, 0, [](RandomModel& net) { net.lookup(); }},
    {"Pad", 1, 0, [](RandomModel& net) { net.pad(); }},
    {"Slice", 1, 0, [](RandomModel& net) { net.slice(); }},
    {"Reshape", 1, 0,
     [](RandomModel& net) {
       net.reshape({33, 9});
     }},
    {"Conv2D", kFloatProducts, 1, [](RandomModel& net) { net.conv2d(16); }},
    {"DepthwiseConv2d", kFloatProducts, 1, [](RandomModel& net) { net.depthwise_conv2d(1); }},
    {"DepthwiseConv2d x2", kFloatProducts, 1, [](RandomModel& net) { net.depthwise_conv2d(2); }},
    {"FullyConnected", kFloatProducts, 1, [](RandomModel& net) { net.fully_connected(16); }},
    {"Add", 1, 0, [](RandomModel& net) { net.add(0, net.rescale()); }},
    {"Mul", kFloatProducts, 1, [](RandomModel& net) { net.mul(0, net.rescale()); }},
    {"stretched Mul", kFloatProducts, 1, [](RandomModel& net) { net.gate(); }},
    {"Rescale", kFloatProducts, 1, [](RandomModel& net) { net.rescale(); }},
    {"Concat", kFloatProducts, 1, [](RandomModel& net) { net.concat(0, net.rescale()); }},
    {"Mean", kFloatProducts, 1, [](RandomModel& net) { net.mean(); }},
    {"AveragePool", kAverages, 1, [](RandomModel& net) { net.average_pool(); }}};
// Some 1% of the outputs of random layers lie so close to a tie that the rounding of a bias to INT4's scale decides, or
// that of LiteRT's depthwise convolutions, which round another way than its other layers.
constexpr double kInt4 = 0.95;

const std::set<std::string> kInt4Kinds = {"Conv2D", "DepthwiseConv2d", "DepthwiseConv2d x2", "FullyConnected"};
const Kind kPadded = {"wider padding", kFloatProducts, 1, {}};
const Kind kTies = {"Add on ties", 1, 0, {}};

/// Whether a window has more than one pixel each way and no padding yet, so that one more border may be looked at.
bool can_widen(const Model& model) {
  const auto& action = model.operations[0].action;
  const auto* pool = std::get_if<integer::MaxPool>(&action);
  const auto& [rows, columns] = pool != nullptr ? pool->window : std::get<integer::Layer>(action).window;
  return rows.window > 1 && columns.window > 1 && rows.pad_before + rows.pad_after == 0 &&
         columns.pad_before + columns.pad_after == 0;
}

void add_padded(LiteRtComparison& comparison) {
  for (std::uint64_t seed = 0; seed < 10 * models(); ++seed) {
    RandomModel net(seed, kInput, kTfliteModels);
    if (seed % 2 == 0)
      net.max_pool();
    else
      net.conv2d(5);
    if (can_widen(net.finish())) comparison.add_both(kPadded.name, with_wider_padding(net.finish(), 1));
  }
}

/// A model of a Rescale and the Add of it and its input, on scales of 1, 3 and 2 * `odd`: many sums are ties.
Model with_ties(Model model, int odd) {
  const std::array scales = {1.0F, 3.0F, 2.0F * static_cast<float>(odd)};
  for (std::size_t i = 0; i < scales.size(); ++i) model.tensors[i].grid.scale = scales[i] / 16;
  std::get<integer::Rescale>(model.operations[0].action).multiplier = integer::multiplier_for(1.0 / 3);
  std::get<integer::Add>(model.operations[1].action).multipliers =
      integer::shared_multipliers_for(std::array<double, 2>{scales[0] / scales[2], scales[1] / scales[2]});
  model.check();
  return model;
}

/// On which side a tie falls shows the last bits of an Add's multipliers. Random scales hardly ever make one; learned
/// ones do.
void add_ties(LiteRtComparison& comparison) {
  for (std::uint64_t seed = 0; seed < models(); ++seed) {
    RandomModel net(seed, kInput, kTfliteModels);
    net.add(0, net.rescale());
    comparison.add_both(kTies.name, with_ties(net.finish(), 3 + 2 * static_cast<int>(seed % 20)));
  }
}

TEST(LiteRt, GivesTheReferencesIntegersForEveryKind) {
  MINIQAT_NEED_RUNTIMES();
  LiteRtComparison comparison;
  for (const Kind& kind : kKinds)
    for (std::uint64_t seed = 0; seed < models(); ++seed) {
      RandomModel net(seed, kInput, kTfliteModels);
      kind.make(net);
      comparison.add_both(kind.name, net.finish());
    }
  add_padded(comparison);
  add_ties(comparison);
  const std::map<std::string, RuntimeAgreement> agreements = comparison.run();
  std::vector<Kind> kinds = kKinds;
  kinds.insert(kinds.end(), {kPadded, kTies});
  for (const Kind& kind : kinds) {
    expect_near(kind.name, agreements.at(kind.name), kind.share, kind.largest);
  }
}

/// With biases of whole steps of the weights: those that INT4 holds.
Model with_coarse_bias(Model model) {
  for (integer::Operation& operation : model.operations)
    if (auto* layer = std::get_if<integer::Layer>(&operation.action))
      for (std::int32_t& bias : layer->bias) bias -= bias % (1 << layer->weight_shift());
  return model;
}

/// LiteRT takes INT4 for every kind of layer. In those that are not depthwise only biases, in steps that are 8 times
/// ours, make other integers.
TEST(LiteRt, TakesInt4Weights) {
  MINIQAT_NEED_RUNTIMES();
  const std::string coarse = ", coarse bias";
  LiteRtComparison comparison;
  for (const Kind& kind : kKinds) {
    if (!kInt4Kinds.contains(kind.name)) continue;
    for (std::uint64_t seed = 0; seed < models(); ++seed) {
      RandomModel net(seed, kInput, kTfliteModels);
      kind.make(net);
      const Model model = with_int4_weights(net.finish());
      comparison.add(kind.name, model, {.int4 = true});
      comparison.add(kind.name + coarse, with_coarse_bias(model), {.int4 = true});
    }
  }
  for (std::uint64_t seed = 0; seed < models(); ++seed)
    comparison.add("networks", with_int4_weights(testing::random_network(seed, kTfliteModels)), {.int4 = true});
  const std::map<std::string, RuntimeAgreement> agreements = comparison.run();
  EXPECT_EQ(agreements.size(), 2 * kInt4Kinds.size() + 1);
  for (const auto& [kind, agreement] : agreements) {
    const bool exact = kind.ends_with(coarse) && !kind.starts_with("Depthwise");
    expect_near("INT4 " + kind, agreement, exact ? kFloatProducts : kInt4);
  }
}

TEST(LiteRt, AgreesOnWholeNetworks) {
  MINIQAT_NEED_RUNTIMES();
  LiteRtComparison comparison;
  for (std::uint64_t seed = 0; seed < 4 * models(); ++seed)
    comparison.add_both("networks", testing::random_network(seed, kTfliteModels));
  const RuntimeAgreement agreement = comparison.run().at("networks");
  // What pools round otherwise reaches the outputs.
  expect_near("networks", agreement, 0.985);
  EXPECT_GE(agreement.same_class_share(), 0.99);
}

TEST(LiteRt, FloatInputAndOutput) {
  MINIQAT_NEED_RUNTIMES();
  for (const bool int8 : {false, true}) {
    RandomModel net(3, kInput, kTfliteModels);
    net.conv2d(7);
    const Model model = with_symmetric_weights(with_scales_per_tensor(net.finish()));
    const Tensor images = random_images(net.random(), model, kImages);
    const Grid& in = model.tensor(model.input).grid;
    const Verdict verdict = judge(kLiteRt, {{tflite(model, {.float_io = true, .int8 = int8}), images}},
                                  {"--input-scale", concat(in.scale), "--input-zero-point", concat(in.zero_point)});
    ASSERT_EQ(verdict.status, 0) << verdict.err;
    const Tensor integers = integer::reference::run(model, images)[model.output];
    const auto expected = integers.values<std::uint8_t>();
    const std::string& bytes = verdict.outputs.front();
    ASSERT_EQ(bytes.size(), expected.size() * sizeof(float));
    const Grid& grid = model.tensor(model.output).grid;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      float found = 0;
      std::memcpy(&found, bytes.data() + i * sizeof(float), sizeof(float));
      ASSERT_EQ(found, dequantize(grid, expected[i])) << i;
    }
  }
}

TEST(LiteRt, ReportsEachRun) {
  MINIQAT_NEED_RUNTIMES();
  const Model model = with_symmetric_weights(with_scales_per_tensor(testing::random_network(3, kTfliteModels)));
  Random random(1);
  const Tensor images = random_images(random, model, 7);
  const Verdict verdict = judge(kLiteRt, {{tflite(model), images}, {tflite(model, {.int8 = true}), images}});
  ASSERT_EQ(verdict.status, 0) << verdict.err;
  std::istringstream lines(verdict.out);
  for (const char* dtype : {"uint8", "int8"}) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    const nlohmann::json report = nlohmann::json::parse(line);
    EXPECT_EQ(report["runtime"], "LiteRT");
    EXPECT_EQ(report["version"], "2.5.3");
    EXPECT_EQ(report["dtype"], dtype);
    EXPECT_EQ(report["outputs_per_example"], model.tensor(model.output).shape.elements());
    EXPECT_GT(report["seconds"], 0);
  }
}

TEST(LiteRt, SaysInOneLineWhatIsWrong) {
  MINIQAT_NEED_RUNTIMES();
  RandomModel net(1, kInput, kTfliteModels);
  net.conv2d(4);
  const Model model = with_symmetric_weights(net.finish());
  const std::string bytes = tflite(model);
  const Tensor images = random_images(net.random(), model, 2);
  expect_complaint(judge(kLiteRt, {{bytes, Tensor({2, 5}, DType::kUInt8)}}),
                   "has 10 bytes; 2 examples of 297 have 594");
  expect_complaint(judge(kLiteRt, {{tflite(model, {.float_io = true}), images}}), "--input-scale");
  expect_complaint(judge(kLiteRt, {{bytes.substr(0, bytes.size() / 2), images}}), "model0: ");
}

}  // namespace
}  // namespace miniqat::exporters::litert_test
