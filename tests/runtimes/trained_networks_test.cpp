// Trained networks in LiteRT and ONNX Runtime beside the integer engine, as `miniqat train` makes them and `miniqat
// verify` compares them. Random networks (the other tests here) have random ranges; these have those that were learned.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/graph_json.h"
#include "core/random.h"
#include "layers/layers.h"
#include "models/models.h"
#include "tests/cli/program.h"
#include "tests/datasets/mnist.h"
#include "tests/runtimes/judge.h"

namespace miniqat::testing {
namespace {

using Json = nlohmann::json;

// Under the sanitizers, which make everything ten times slower, only the way there is looked at, not where it ends:
// what comes out after so few steps is no classifier.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

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

/// How far LiteRT's outputs may be from the engine's. A step that rounding takes in an early layer becomes several
/// behind many others, and how many depends on what was learned, which is not the same on every CPU. ONNX Runtime
/// rounds the ties of means otherwise, which may take many outputs one step, so there only the largest difference
/// counts.
struct Nearness {
  double share = 1;
  int largest = 0;
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
    place_.write("pictures/test_batch.bin", striped_records(1000, "test"));
  }

  /// A quarter of the model's channels, with moving statistics that keep up with a training of 200 steps.
  void write_model(const std::string& name, std::int64_t batch) const {
    Graph graph;
    const Output images = layers::placeholder(graph, "images", {batch, kSide, kSide, 3});
    graph.set_outputs({models::find_model(name).build(graph, images,
                                                      {.classes = kClasses, .width = 0.25, .batch_norm_decay = 0.95})});
    write_graph(place_.path() / (name + ".json"), graph);
  }

  /// Trains a run of so many steps, on one thread, so that it is the same each time.
  void train(int steps, const Arguments& more) const {
    Arguments line = {"train", "--out", "run", "--threads", "1", "--steps", std::to_string(kSanitized ? 3 : steps)};
    line.insert(line.end(), more.begin(), more.end());
    expect_success(miniqat(line, place_.path()));
  }

  void train_on_stripes(const std::string& model, std::int64_t batch, const Arguments& more) const {
    write_striped_pictures();
    write_model(model, batch);
    Arguments line = {"--model",     model + ".json", "--dataset",       "cifar10",
                      "--data-dir",  "pictures",      "--batch-size",    std::to_string(batch),
                      "--augment",   "none",          "--quant-delay",   "150",
                      "--ema-decay", "0.9",           "--learning-rate", "0.02"};
    line.insert(line.end(), more.begin(), more.end());
    train(200, line);
  }

  /// The run's integer model knows the classes, and both runtimes find those that it finds on all test pictures.
  void expect_runtimes_agree(std::int64_t pictures, const Nearness& nearness) const {
    const std::int64_t examples = kSanitized ? 50 : pictures;
    Arguments line = {"verify", "--run", "run", "--threads", "1", "--json", "--examples", std::to_string(examples)};
    if (!kSanitized) line.insert(line.end(), {"--min-runtime-agreement", "99.5"});
    const Outcome outcome = miniqat(line, place_.path());
    expect_success(outcome);
    const Json report = Json::parse(outcome.out);
    EXPECT_EQ(report["left_out"], Json::array());
    EXPECT_EQ(report["failed"], Json::array());
    ASSERT_EQ(report["runtimes"].size(), 2u);
    expect_runtime(report["runtimes"][0], "LiteRT ", examples, 0.999, nearness);
    expect_runtime(report["runtimes"][1], "onnxruntime ", examples, 0.995, {.share = 0, .largest = nearness.largest});
    EXPECT_GE(report["integer"]["accuracy"], kSanitized ? 0 : 0.9);
  }

  TempDir place_;

 private:
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
    std::printf("  %s: same class in %.2f%% of %ld pictures, %.3f%% of the outputs equal, accuracy %.2f%%\n",
                found.c_str(), 100 * score["top1_agreement_with_integer"].get<double>(), static_cast<long>(examples),
                100 * score["outputs"]["share"].get<double>(), 100 * score["accuracy"].get<double>());
  }
};

TEST_F(TrainedNetworks, LenetOnAllOfMnist) {
  const std::filesystem::path mnist = mnist_folder();
  if (!std::filesystem::exists(mnist)) GTEST_SKIP() << "MNIST is not there";
  train(80,
        {"--model", "lenet", "--dataset", "mnist", "--data-dir", mnist, "--batch-size", "32", "--quant-delay", "40"});
  expect_runtimes_agree(10000, {.share = 0.999, .largest = 1});
}

TEST_F(TrainedNetworks, MobilenetV1) {
  train_on_stripes("mobilenet_v1", 32, {"--freeze-bn-delay", "150"});
  expect_runtimes_agree(1000, {.share = 0.9, .largest = 8});
}

TEST_F(TrainedNetworks, MobilenetV2) {
  train_on_stripes("mobilenet_v2", 20, {"--freeze-bn-delay", "150"});
  expect_runtimes_agree(1000, {.share = 0.85, .largest = 8});
}

/// Such a run becomes int8 in LiteRT; the others become uint8.
TEST_F(TrainedNetworks, Resnet20WithScalesPerChannel) {
  train_on_stripes("resnet20", 20, {"--bn-fold", "single", "--per-channel", "--symmetric"});
  expect_runtimes_agree(1000, {.share = 0.85, .largest = 2});
}

}  // namespace
}  // namespace miniqat::testing
