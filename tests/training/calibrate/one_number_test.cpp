#include "core/graph/graph_json.h"
#include "layers/layers.h"
#include "tests/errors.h"
#include "tests/training/run_fixture.h"
#include "training/calibrate/batch_norm_statistics.h"
#include "training/train/training_task.h"

namespace miniqat::training::one_number_test {
namespace {

using testing::error_of;
using testing::mentions;

Output vector(Graph& graph, const std::string& name, double value, bool trainable = true) {
  return layers::variable(graph, name, {16}, Initializer::constant(value), trainable);
}

/// In primitive ops, with the moments of x.
Output spelled_out(Graph& graph, Output x) {
  const Output mean = layers::mean(graph, "bn/mean", x, {.axes = {0}});
  const Output centred = layers::sub(graph, "bn/sub", x, mean);
  const Output variance =
      layers::mean(graph, "bn/variance", layers::square(graph, "bn/square", centred), {.axes = {0}});
  const Output shifted = layers::add(graph, "bn/shift", variance, layers::constant(graph, "bn/epsilon", {}, {0.001}));
  const Output scaled = layers::mul(graph, "bn/mul", centred, layers::rsqrt(graph, "bn/rsqrt", shifted));
  return layers::add(graph, "bn/add", scaled, vector(graph, "beta", 0));
}

/// Pictures, a dense layer with a batch norm, ten logits; what `dead` adds reaches no output.
std::string network(std::int64_t batch, bool in_primitive_ops = false) {
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {batch, 8, 8, 1});
  const Output flat = layers::reshape(graph, "flat", images, {.shape = {-1, 64}});
  const auto dense = [&](const std::string& name, Output x, std::int64_t to) {
    return layers::matmul(graph, name + "/MatMul", x,
                          layers::variable(graph, name + "/weights", {x.shape()[1], to}, Initializer::he_normal()));
  };
  const Output hidden = dense("fc1", flat, 16);
  const Output normal =
      in_primitive_ops
          ? spelled_out(graph, hidden)
          : layers::batch_norm(graph, "fc1/BatchNorm", hidden, vector(graph, "gamma", 1), vector(graph, "beta", 0),
                               vector(graph, "moving_mean", 0, false), vector(graph, "moving_variance", 1, false));
  graph.set_outputs({dense("fc2", layers::relu(graph, "Relu", normal), 10)});
  return graph_to_json(graph);
}

class OneNumberTest : public RunFixture {
 protected:
  OneNumberTest() { layers::register_ops(); }

  TrainSettings of(const std::string& json, std::int64_t batch) {
    place_.write("net.json", json);
    TrainSettings settings = RunFixture::settings();
    settings.model = path("net.json").string();
    settings.batch_size = batch;
    return settings;
  }
  std::string refusal(const TrainSettings& settings) {
    RunObserver silent;
    const std::string text = error_of([&] { train(settings, RunDirectory::fresh(path("run"), "none"), {}, silent); });
    EXPECT_FALSE(std::filesystem::exists(path("run") / "checkpoint.safetensors")) << "before the first step";
    return text;
  }
};

TEST_F(OneNumberTest, ARunWithBatchesOfOneIsRefusedBeforeItsFirstStep) {
  TrainSettings settings = of(network(1), 1);
  const std::vector<std::string> parts = {"[BatchNorm \"fc1/BatchNorm\"]", "batches of 1 (`batch_size`)", "beta"};
  EXPECT_TRUE(mentions(refusal(settings), parts));
  settings.float_only = true;
  EXPECT_TRUE(mentions(refusal(settings), parts));
  settings.float_only = false;
  settings.rewrite.freeze_bn_delay = 0;
  EXPECT_EQ(error_of([&] { const TrainingTask task(read_networks(settings)); }), "")
      << "the moving statistics normalise";
}

TEST_F(OneNumberTest, SlicesOfOneAreRefusedToo) {
  TrainSettings settings = of(network(1), 4);
  settings.shards = 4;
  EXPECT_TRUE(
      mentions(refusal(settings), {"[BatchNorm \"fc1/BatchNorm\"]", "slices of 1 (`batch_size` 4 in 4 `shards`)"}));
}

TEST_F(OneNumberTest, SpelledOutBatchNormsAreRefusedInFloat) {
  TrainSettings settings = of(network(1, true), 1);
  settings.float_only = true;
  EXPECT_TRUE(mentions(refusal(settings), {"[Add \"bn/add\"]", "batches of 1"}));
}

TEST_F(OneNumberTest, TwoPicturesAreEnough) {
  for (const bool in_primitive_ops : {false, true}) {
    TrainSettings settings = of(network(2, in_primitive_ops), 2);
    settings.float_only = in_primitive_ops;
    EXPECT_EQ(error_of([&] { const TrainingTask task(read_networks(settings)); }), "");
  }
}

}  // namespace
}  // namespace miniqat::training::one_number_test
