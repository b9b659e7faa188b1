// Trained networks in LiteRT and ONNX Runtime beside the integer engine, as `miniqat train` makes them and `miniqat
// verify` compares them. Random networks (the other tests here) have random ranges; these have those that were learned.

#include <gtest/gtest.h>

#include <optional>

#include "core/graph/graph_json.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "layers/layers.h"
#include "models/models.h"
#include "tests/cli/program.h"
#include "tests/datasets/mnist.h"
#include "tests/fewer_cases.h"
#include "tests/runtimes/judge.h"
#include "tests/sanitized.h"

namespace miniqat::testing::trained_networks_test {
namespace {

using Json = nlohmann::json;

// Under the sanitizers, which make everything ten times slower, only the way there is looked at, not where it ends:
// what comes out after so few steps is no classifier.
const bool kSanitized = is_sanitized();

/// The steps of a training, or of a delay in it.
std::string steps_of(int count) { return std::to_string(kSanitized ? count / 40 : count); }

/// In every run one network goes the way of uint8 and one that of int8; scripts/nightly trains all.
#define MINIQAT_TRAIN_WITH_ALL_CASES() \
  if (!tries_all_cases()) GTEST_SKIP() << "MobilenetV1 goes the same way; with MINIQAT_ALL_CASES=1 this network, too"

constexpr int kSide = 32;
constexpr int kClasses = 10;

/// A record of CIFAR-10's binary version: stripes in one of five colours, upright or lying, up to two pixels away from
/// their place, of a random brightness, under noise.
std::string striped_record(int label, Random& random) {
  constexpr int kPeriod = 8;
  constexpr bool kColours[5][3] = {
      {true, false, false}, {false, true, false}, {false, false, true}, {true, true, false}, {false, true, true}};
  const bool upright = label >= 5;
  const auto phase = static_cast<int>(random.below(3));
  const auto brightness = static_cast<int>(120 + random.below(40));
  std::string record(1, static_cast<char>(label));
  for (const bool lit : kColours[label % 5])
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x) {
        const bool stripe = ((upright ? x : y) + phase) % kPeriod < kPeriod / 2;
        record += static_cast<char>(40 + (stripe && lit ? brightness : 0) + random.below(30));
      }
  return record;
}

std::string striped_records(int count, const std::string& seed) {
  Random random(hash_text(seed));
  std::string records;
  for (int i = 0; i < count; ++i) records += striped_record(i % kClasses, random);
  return records;
}

constexpr std::int64_t kPictures = 1000;

/// How far a runtime's outputs may be from the engine's: the share of equal ones, and the farthest, in steps.
struct Nearness {
  double share = 1;
  int largest = 0;
};

/// What must hold of a trained run. Other CPUs learn other weights, with which other sums lie on a tie: on AVX-512,
/// AVX2 and SSE4.1, LiteRT gave 100, 99.8 and 93.8% equal outputs for MobileNetV1, 98.2, 92.1 and 99.2% for
/// MobileNetV2, 99.9, 99.7 and 99.97% for ResNet-20. So the bounds lie a little below the least of these; that every
/// operation has LiteRT's integers is bound more tightly, on models that are the same everywhere, in litert_test.cpp.
struct Expectation {
  std::int64_t pictures = tries_all_cases() ? kPictures : 300;
  double accuracy = 0.9;
  /// Of `miniqat verify`, beside --min-runtime-agreement and --max-steps.
  Arguments bounds = {};
  /// Empty where TensorFlow Lite cannot hold the model.
  std::optional<Nearness> litert = {};
  /// ONNX Runtime rounds the ties of means otherwise, which may take many outputs one step.
  Nearness onnx = {};
};

class TrainedNetworks : public ::testing::Test {
 protected:
  void SetUp() override {
    MINIQAT_NEED_RUNTIMES();
    layers::register_ops();
  }

  /// A data set of 500 and 1,000 pictures in CIFAR-10's files.
  void write_striped_pictures() const {
    for (int i = 1; i <= 5; ++i) {
      const std::string file = concat("pictures/data_batch_", i, ".bin");
      place_.write(file, striped_records(100, file));
    }
    place_.write("pictures/test_batch.bin", striped_records(kSanitized ? 50 : 1000, "test"));
  }

  /// A quarter of the model's channels, with moving statistics that keep up with a training of 200 steps.
  void write_model(const std::string& name, std::int64_t batch) const {
    Graph graph;
    const Output images = layers::placeholder(graph, "images", {batch, kSide, kSide, 3});
    graph.set_outputs({models::find_model(name).build(graph, images,
                                                      {.outputs = kClasses, .width = 0.25, .batch_norm_decay = 0.95})});
    write_graph(place_.path() / (name + ".json"), graph);
  }

  /// Trains a run of so many steps, on one thread, so that it is the same each time.
  void train(int steps, const Arguments& more) const {
    Arguments line = {"train", "--out", "run", "--threads", "1", "--steps", steps_of(steps)};
    line.insert(line.end(), more.begin(), more.end());
    // After its first epoch a network may have learned too little, and a warning says so.
    const Outcome outcome = miniqat(line, place_.path());
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }

  void train_on_stripes(const std::string& model, std::int64_t batch, const Arguments& more) const {
    write_striped_pictures();
    write_model(model, batch);
    Arguments line = {"--model",     model + ".json", "--dataset",       "cifar10",
                      "--data-dir",  "pictures",      "--batch-size",    std::to_string(batch),
                      "--augment",   "none",          "--quant-delay",   steps_of(150),
                      "--ema-decay", "0.9",           "--learning-rate", "0.02"};
    line.insert(line.end(), more.begin(), more.end());
    train(200, line);
  }

  /// The run's integer model knows the classes, and the runtimes find those that it finds on all test pictures.
  void expect_runtimes_agree(const Expectation& expected) const {
    const std::int64_t examples = kSanitized ? 50 : expected.pictures;
    Arguments line = {"verify", "--run", "run", "--threads", "1", "--json", "--examples", std::to_string(examples)};
    if (!kSanitized) {
      line.insert(line.end(), {"--min-runtime-agreement", "99.5", "--max-steps", "1"});
      line.insert(line.end(), expected.bounds.begin(), expected.bounds.end());
    }
    const Outcome outcome = miniqat(line, place_.path());
    expect_success(outcome);
    const Json report = Json::parse(outcome.out);
    print(report);
    EXPECT_EQ(report["failed"], Json::array());
    EXPECT_GE(report["integer"]["accuracy"], kSanitized ? 0 : expected.accuracy);
    const std::size_t count = expected.litert ? 2 : 1;
    EXPECT_EQ(report["left_out"].size(), 2 - count) << report["left_out"];
    ASSERT_EQ(report["runtimes"].size(), count);
    if (expected.litert) expect_runtime(report["runtimes"][0], "LiteRT ", examples, 0.999, *expected.litert);
    expect_runtime(report["runtimes"].back(), "onnxruntime ", examples, 0.995, expected.onnx);
  }

  TempDir place_;

 private:
  /// Lines for people who read the test's output.
  static void print(const Json& report) {
    const auto percent = [](const Json& share) { return 100 * share.get<double>(); };
    std::printf("  %s; accuracy simulated %.2f%%, integer %.2f%%, same class %.2f%%\n",
                report["title"].get<std::string>().c_str(), percent(report["simulated"]["accuracy"]),
                percent(report["integer"]["accuracy"]), percent(report["simulated"]["top1_agreement_with_integer"]));
    for (const Json& score : report["runtimes"])
      std::printf("  %s: same class %.2f%%, equal outputs %.3f%%, the farthest %d steps apart\n",
                  score["name"].get<std::string>().c_str(), percent(score["top1_agreement_with_integer"]),
                  percent(score["outputs"]["share"]), score["outputs"]["largest_difference"].get<int>());
  }

  static void expect_runtime(const Json& score, const std::string& name, std::int64_t examples, double agreement,
                             const Nearness& nearness) {
    const std::string found = score["name"];
    EXPECT_TRUE(found.starts_with(name)) << found;
    EXPECT_EQ(score["examples"], examples) << name;
    EXPECT_EQ(score["outputs"]["count"], examples * kClasses) << name;
    if (kSanitized) return;
    EXPECT_GE(score["top1_agreement_with_integer"], agreement) << name;
    EXPECT_GE(score["outputs"]["share"], nearness.share) << name;
    EXPECT_LE(score["outputs"]["largest_difference"], nearness.largest) << name;
  }
};

class TrainedLenet : public TrainedNetworks {
 protected:
  void SetUp() override {
    MINIQAT_TRAIN_WITH_ALL_CASES();
    TrainedNetworks::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (mnist_folder().empty()) GTEST_SKIP() << kNoMnist;
  }

  void train_on_mnist(const Arguments& more) const {
    Arguments line = {"--model",      "lenet", "--dataset",     "mnist",     "--data-dir", mnist_folder().string(),
                      "--batch-size", "32",    "--quant-delay", steps_of(40)};
    line.insert(line.end(), more.begin(), more.end());
    train(80, line);
  }
};

TEST_F(TrainedLenet, OnAllOfMnist) {
  train_on_mnist({});
  expect_runtimes_agree({.pictures = 10000,
                         .bounds = {"--max-accuracy-difference", "0.1"},
                         .litert = {{.share = 0.999, .largest = 1}},
                         .onnx = {.share = 0.999, .largest = 1}});
}

// After so few steps, and with so few bits, some pictures are nearly as much of one class as of another, so that a step
// decides; each is 0.1 points of 1,000. Given equal inputs, a step is the most nevertheless.

TEST_F(TrainedLenet, In4Bits) {
  train_on_mnist({"--weight-bits", "4", "--activation-bits", "4"});
  expect_runtimes_agree(
      {.bounds = {"--max-accuracy-difference", "1", "--min-agreement", "98"}, .onnx = {.share = 0.999, .largest = 1}});
}

TEST_F(TrainedLenet, WeightsIn2BitsPerChannel) {
  train_on_mnist({"--weight-bits", "2", "--per-channel", "--symmetric"});
  expect_runtimes_agree({.accuracy = 0.8,
                         .bounds = {"--max-accuracy-difference", "0.5", "--min-agreement", "99"},
                         .litert = {{.share = 0.999, .largest = 1}},
                         .onnx = {.share = 0.999, .largest = 1}});
}

TEST_F(TrainedNetworks, MobilenetV1) {
  train_on_stripes("mobilenet_v1", 32, {"--freeze-bn-delay", steps_of(150)});
  expect_runtimes_agree({.litert = {{.share = 0.9, .largest = 4}}, .onnx = {.share = 0.9, .largest = 4}});
}

TEST_F(TrainedNetworks, MobilenetV2) {
  MINIQAT_TRAIN_WITH_ALL_CASES();
  train_on_stripes("mobilenet_v2", 20, {"--freeze-bn-delay", steps_of(150)});
  expect_runtimes_agree({.litert = {{.share = 0.9, .largest = 6}}, .onnx = {.share = 0.7, .largest = 8}});
}

/// Such a run becomes int8 in LiteRT; the others become uint8.
TEST_F(TrainedNetworks, Resnet20WithScalesPerChannel) {
  train_on_stripes("resnet20", 20, {"--bn-fold", "single", "--per-channel", "--symmetric"});
  expect_runtimes_agree({.litert = {{.share = 0.99, .largest = 2}}, .onnx = {.share = 0.95, .largest = 2}});
}

TEST_F(TrainedNetworks, Resnet20WithBatchNormsFoldedLate) {
  MINIQAT_TRAIN_WITH_ALL_CASES();
  train_on_stripes("resnet20", 20, {"--bn-fold", "late", "--per-channel", "--ranges", "learned"});
  expect_runtimes_agree({.litert = {{.share = 0.99, .largest = 2}}, .onnx = {.share = 0.95, .largest = 2}});
}

}  // namespace
}  // namespace miniqat::testing::trained_networks_test
