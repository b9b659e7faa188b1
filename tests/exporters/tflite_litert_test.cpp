// Exported models in LiteRT against the integer engine's reference.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "core/error.h"
#include "exporters/tflite.h"
#include "integer/reference/engine.h"
#include "tests/exporters/litert.h"
#include "tests/exporters/tflite_models.h"

namespace miniqat::exporters {
namespace {

using integer::Grid;
using integer::Model;
using testing::kTfliteModels;
using testing::LiteRtRun;
using testing::random_images;
using testing::RandomModel;
using testing::run_in_litert;
using testing::with_scales_per_tensor;
using testing::with_symmetric_weights;
using testing::with_wider_padding;

constexpr std::int64_t kImages = 4;
constexpr std::uint64_t kSeeds = 6;
const Shape kInput = {9, 11, 3};

struct Agreement {
  std::int64_t integers = 0;
  std::int64_t equal = 0;
  int largest = 0;
  double share() const { return static_cast<double>(equal) / static_cast<double>(integers); }
};

/// Collects models of several kinds and what the reference makes of them, then runs all at once.
class Comparison {
 public:
  void add(const std::string& kind, const Model& model, bool int8) {
    Random random(runs_.size());
    const Tensor images = random_images(random, model, kImages);
    runs_.push_back({.model = tflite(model, {.int8 = int8}), .images = images});
    cases_.push_back({.kind = kind, .expected = integer::reference::run(model, images)[model.output], .int8 = int8});
  }
  /// The model as uint8 and as int8.
  void add_both(const std::string& kind, const Model& model) {
    add(kind, with_scales_per_tensor(model), false);
    add(kind, with_symmetric_weights(model), true);
  }
  /// By kind; nothing where LiteRT is not installed.
  std::optional<std::map<std::string, Agreement>> run() const {
    const auto outputs = run_in_litert(runs_);
    if (!outputs) return std::nullopt;
    std::map<std::string, Agreement> agreements;
    for (std::size_t i = 0; i < cases_.size(); ++i) count(cases_[i], (*outputs)[i], agreements[cases_[i].kind]);
    for (const auto& [kind, agreement] : agreements)
      std::printf("%-20s %7ld integers, %8.4f%% equal, largest difference %d\n", kind.c_str(),
                  static_cast<long>(agreement.integers), 100 * agreement.share(), agreement.largest);
    return agreements;
  }

 private:
  struct Case {
    std::string kind;
    Tensor expected;
    bool int8;
  };

  static void count(const Case& one, const std::string& bytes, Agreement& agreement) {
    const auto expected = one.expected.values<std::uint8_t>();
    ASSERT_EQ(bytes.size(), expected.size()) << one.kind;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const int found = static_cast<std::uint8_t>(bytes[i]) ^ (one.int8 ? 0x80 : 0);
      ++agreement.integers;
      agreement.equal += found == expected[i];
      agreement.largest = std::max(agreement.largest, std::abs(found - expected[i]));
    }
  }

  std::vector<LiteRtRun> runs_;
  std::vector<Case> cases_;
};

/// Ends a test that has no LiteRT to run: skipped, but in CI a failure.
#define SKIP_WITHOUT_LITERT()                                                                        \
  do {                                                                                               \
    if (std::getenv("CI") != nullptr) FAIL() << "tests/runtimes: Node or @litertjs/core is missing"; \
    GTEST_SKIP() << "tests/runtimes: Node or @litertjs/core is missing, so LiteRT judges nothing";   \
  } while (false)

/// A kind of model, and how far LiteRT may be from the reference.
struct Kind {
  std::string name;
  double share;
  int largest;
  std::function<void(RandomModel&)> make;
};

// LiteRT multiplies in float32, which places a number within 2e-5 steps of a tie on either side.
constexpr double kFloatProducts = 0.9998;
// Means of an even number of pixels are often ties, which int8 rounds away from its zero.
constexpr double kAverages = 0.85;

const std::vector<Kind> kKinds = {
    {"MaxPool", 1, 0, [](RandomModel& net) { net.max_pool(); }},
    {"Pad", 1, 0, [](RandomModel& net) { net.pad(); }},
    {"Reshape", 1, 0,
     [](RandomModel& net) {
       net.reshape({33, 9});
     }},
    {"Conv2D", kFloatProducts, 1, [](RandomModel& net) { net.conv2d(16); }},
    {"DepthwiseConv2d", kFloatProducts, 1, [](RandomModel& net) { net.depthwise_conv2d(1); }},
    {"DepthwiseConv2d x2", kFloatProducts, 1, [](RandomModel& net) { net.depthwise_conv2d(2); }},
    {"FullyConnected", kFloatProducts, 1, [](RandomModel& net) { net.fully_connected(16); }},
    {"Add", kFloatProducts, 1, [](RandomModel& net) { net.add(0, net.rescale()); }},
    {"Mul", kFloatProducts, 1, [](RandomModel& net) { net.mul(0, net.rescale()); }},
    {"Rescale", kFloatProducts, 1, [](RandomModel& net) { net.rescale(); }},
    {"Concat", kFloatProducts, 1, [](RandomModel& net) { net.concat(0, net.rescale()); }},
    {"Mean", kFloatProducts, 1, [](RandomModel& net) { net.mean(); }},
    {"AveragePool", kAverages, 1, [](RandomModel& net) { net.average_pool(); }}};
const Kind kNetworks = {"networks", 0.95, 2, {}};
const Kind kPadded = {"wider padding", kFloatProducts, 1, {}};

/// Whether a window has more than one pixel each way and no padding yet, so that one more border may be looked at.
bool can_widen(const Model& model) {
  const auto& action = model.operations[0].action;
  const auto* pool = std::get_if<integer::MaxPool>(&action);
  const auto& [rows, columns] = pool != nullptr ? pool->window : std::get<integer::Layer>(action).window;
  return rows.window > 1 && columns.window > 1 && rows.pad_before + rows.pad_after == 0 &&
         columns.pad_before + columns.pad_after == 0;
}

void add_padded(Comparison& comparison) {
  for (std::uint64_t seed = 0; seed < 10 * kSeeds; ++seed) {
    RandomModel net(seed, kInput, kTfliteModels);
    if (seed % 2 == 0)
      net.max_pool();
    else
      net.conv2d(5);
    if (can_widen(net.finish())) comparison.add_both(kPadded.name, with_wider_padding(net.finish(), 1));
  }
}

TEST(TfliteInLiteRt, AgreesWithTheReference) {
  Comparison comparison;
  for (const Kind& kind : kKinds)
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      RandomModel net(seed, kInput, kTfliteModels);
      kind.make(net);
      comparison.add_both(kind.name, net.finish());
    }
  for (std::uint64_t seed = 0; seed < 4 * kSeeds; ++seed)
    comparison.add_both(kNetworks.name, testing::random_network(seed, kTfliteModels));
  add_padded(comparison);

  const auto agreements = comparison.run();
  if (!agreements) SKIP_WITHOUT_LITERT();
  std::vector<Kind> kinds = kKinds;
  kinds.insert(kinds.end(), {kNetworks, kPadded});
  for (const Kind& kind : kinds) {
    const Agreement& agreement = agreements->at(kind.name);
    EXPECT_GE(agreement.share(), kind.share) << kind.name;
    EXPECT_LE(agreement.largest, kind.largest) << kind.name;
  }
}

TEST(TfliteInLiteRt, FloatInputAndOutput) {
  for (const bool int8 : {false, true}) {
    RandomModel net(3, kInput, kTfliteModels);
    net.conv2d(7);
    const Model model = with_symmetric_weights(with_scales_per_tensor(net.finish()));
    const Tensor images = random_images(net.random(), model, kImages);
    const Grid& in = model.tensor(model.input).grid;
    const auto outputs = run_in_litert({{.model = tflite(model, {.float_io = true, .int8 = int8}), .images = images}},
                                       concat("--input-scale ", in.scale, " --input-zero-point ", in.zero_point));
    if (!outputs) SKIP_WITHOUT_LITERT();
    const Tensor integers = integer::reference::run(model, images)[model.output];
    const auto expected = integers.values<std::uint8_t>();
    ASSERT_EQ(outputs->front().size(), expected.size() * sizeof(float));
    const Grid& grid = model.tensor(model.output).grid;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      float found = 0;
      std::copy_n(outputs->front().data() + i * sizeof(float), sizeof(float), reinterpret_cast<char*>(&found));
      ASSERT_EQ(found, dequantize(grid, expected[i])) << i;
    }
  }
}

TEST(TfliteInLiteRt, AFileCutShortIsRefused) {
  RandomModel net(1, kInput, kTfliteModels);
  net.conv2d(4);
  const Model model = net.finish();
  const std::string whole = tflite(with_symmetric_weights(model));
  const LiteRtRun run = {.model = whole.substr(0, whole.size() / 2), .images = random_images(net.random(), model, 1)};
  if (!run_in_litert({{.model = whole, .images = run.images}})) SKIP_WITHOUT_LITERT();
  EXPECT_THROW(run_in_litert({run}), Error);
}

}  // namespace
}  // namespace miniqat::exporters
