// What the models with batch norm have in common, and what is special about each: mobilenet_v1, mobilenet_v2, resnet20.

#include <gtest/gtest.h>

#include <cmath>

#include "core/engine/session.h"
#include "core/tensors/random.h"
#include "layers/layers.h"
#include "models/models.h"
#include "optim/sgd.h"
#include "tests/sanitized.h"

namespace miniqat::models::batch_norm_models_test {
namespace {

constexpr std::array<std::string_view, 3> kModels = {"mobilenet_v1", "mobilenet_v2", "resnet20"};

struct Net {
  explicit Net(std::string_view model, const Shape& image = {2, 32, 32, 3}, const ModelOptions& options = {}) {
    images = placeholder(graph, "images", image);
    logits = find_model(model).build(graph, images, options);
    graph.set_outputs({logits});
  }
  Shape shape_of(const std::string& node) const { return graph.at(node).output_specs()[0].shape; }
  bool has(const std::string& node) const { return graph.find(node) != nullptr; }

  Graph graph;
  Output images;
  Output logits;
};

Tensor random_images(const Shape& shape) {
  Tensor images(shape);
  Random random(5);
  for (float& value : images.values<float>()) value = random.uniform(-1, 1);
  return images;
}

std::string scope_of(const std::string& name) { return name.substr(0, name.rfind('/')); }

TEST(BatchNormModels, EveryConvolutionIsNormalisedInItsScope) {
  for (const std::string_view model : kModels) {
    const Net net(model, {2, 32, 32, 3}, {.batch_norm_decay = 0.75});
    const double epsilon = model == "resnet20" ? 1e-5 : 1e-3;
    for (const Node* node : net.graph.nodes()) {
      if (node->type() != "Conv2D" && node->type() != "DepthwiseConv2d") continue;
      const std::string scope = scope_of(node->name());
      EXPECT_EQ(node->name(), scope + "/" + std::string(node->type()));
      EXPECT_EQ(node->input(1).name(), scope + "/weights");
      const auto uses = node->uses(0);
      ASSERT_EQ(uses.size(), 1u) << node->name();
      const Node& norm = *uses[0].node;
      ASSERT_EQ(norm.name(), scope + "/BatchNorm");
      const char* const variables[] = {"gamma", "beta", "moving_mean", "moving_variance"};
      for (int k = 0; k < 4; ++k) {
        const Node& variable = *norm.input(k + 1).node;
        EXPECT_EQ(variable.name(), norm.name() + "/" + variables[k]);
        const auto& attributes = *variable.as<Variable>();
        EXPECT_EQ(attributes.trainable, k < 2) << variable.name();
        EXPECT_EQ(attributes.initializer.value, k == 0 || k == 3 ? 1 : 0) << variable.name();
      }
      EXPECT_EQ(norm.as<layers::BatchNorm>()->epsilon, epsilon) << norm.name();
      EXPECT_EQ(norm.as<layers::BatchNorm>()->decay, 0.75) << norm.name();
    }
  }
}

TEST(BatchNormModels, MobilenetsBeginWithStrideOneUpTo64Pixels) {
  for (const std::string_view model : {"mobilenet_v1", "mobilenet_v2"}) {
    EXPECT_EQ(Net(model, {2, 64, 64, 3}).shape_of("conv0/Conv2D"), (Shape{2, 64, 64, 32})) << model;
    EXPECT_EQ(Net(model, {2, 65, 65, 3}).shape_of("conv0/Conv2D"), (Shape{2, 33, 33, 32})) << model;
    EXPECT_EQ(Net(model, {2, 32, 65, 3}).shape_of("conv0/Conv2D"), (Shape{2, 16, 33, 32})) << model;
  }
  EXPECT_EQ(Net("mobilenet_v1").shape_of("block13/pointwise/Relu6"), (Shape{2, 2, 2, 1024}));
  EXPECT_EQ(Net("mobilenet_v2").shape_of("conv1/Relu6"), (Shape{2, 2, 2, 1280}));
  EXPECT_EQ(Net("mobilenet_v1", {1, 224, 224, 3}).shape_of("block13/pointwise/Relu6"), (Shape{1, 7, 7, 1024}));
  EXPECT_EQ(Net("mobilenet_v2", {1, 224, 224, 3}).shape_of("conv1/Relu6"), (Shape{1, 7, 7, 1280}));
  EXPECT_EQ(Net("resnet20", {1, 224, 224, 3}).shape_of("stage3/block3/Relu"), (Shape{1, 56, 56, 64}));
}

TEST(BatchNormModels, MobilenetV2HasLinearProjectionsAndTheirBypasses) {
  const Net net("mobilenet_v2");
  EXPECT_FALSE(net.has("block1/expand/Conv2D"));
  EXPECT_EQ(net.shape_of("block2/expand/Conv2D").channels(), 96);
  for (int block = 1; block <= 17; ++block) {
    const std::string name = "block" + std::to_string(block);
    EXPECT_TRUE(net.has(name + "/depthwise/Relu6")) << name;
    EXPECT_FALSE(net.has(name + "/project/Relu6")) << name;
    // The first of a sequence changes channels or size.
    const bool first =
        block == 1 || block == 2 || block == 4 || block == 7 || block == 11 || block == 14 || block == 17;
    ASSERT_EQ(net.has(name + "/Add"), !first) << name;
    if (first) continue;
    const Node& add = net.graph.at(name + "/Add");
    EXPECT_EQ(add.input(0).name(), name + "/project/BatchNorm");
    EXPECT_EQ(add.input(1).name(), net.graph.at(name + "/expand/Conv2D").input(0).name());
  }
  EXPECT_FALSE(net.has("block18/project/Conv2D"));
}

TEST(BatchNormModels, MobilenetV2RoundsToEightsButKeepsItsLastLayer) {
  const Net thin("mobilenet_v2", {1, 32, 32, 3}, {.width = 0.35});
  // 11.2 would be 8, which is less than 90% of it.
  EXPECT_EQ(thin.shape_of("conv0/Conv2D").channels(), 16);
  EXPECT_EQ(thin.shape_of("block1/project/Conv2D").channels(), 8);
  EXPECT_EQ(thin.shape_of("block17/project/Conv2D").channels(), 112);
  EXPECT_EQ(thin.shape_of("conv1/Conv2D").channels(), 1280);
  EXPECT_EQ(Net("mobilenet_v2", {1, 32, 32, 3}, {.width = 1.4}).shape_of("conv1/Conv2D").channels(), 1792);
}

TEST(BatchNormModels, Resnet20ShortcutsTakeEverySecondPixelAndPadChannels) {
  Net net("resnet20", {2, 9, 8, 3});
  const Output from = net.graph.at("stage1/block3/Relu").output();
  const Output to = net.graph.at("stage2/block1/shortcut/Pad").output();
  ASSERT_EQ(to.shape(), (Shape{2, 5, 4, 32}));
  EXPECT_EQ(net.graph.at("stage2/block1/Add").input(1).name(), to.name());
  EXPECT_EQ(net.graph.at("stage2/block2/Add").input(1).name(), "stage2/block1/Relu");
  Session session(net.graph);
  const RunResult run = session.run({.fetches = {from, to}}, {{net.images, random_images(net.images.shape())}});
  const float* x = run.fetched[0].data<float>();
  const float* y = run.fetched[1].data<float>();
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t i = 0; i < 5; ++i)
      for (std::int64_t j = 0; j < 4; ++j)
        for (std::int64_t c = 0; c < 32; ++c) {
          const bool kept = c >= 8 && c < 24;
          EXPECT_EQ(y[((n * 5 + i) * 4 + j) * 32 + c], kept ? x[((n * 9 + 2 * i) * 8 + 2 * j) * 16 + c - 8] : 0.0f);
        }
}

TEST(BatchNormModels, LossFallsOnAFixedBatch) {
  for (const std::string_view model : kModels) {
    Net net(model, {8, 32, 32, 3}, {.width = 0.25});
    const Output labels = placeholder(net.graph, "labels", {8}, DType::kInt32);
    const Output loss = layers::softmax_cross_entropy(net.graph, net.logits, labels);
    const Feeds feeds = {{net.images, random_images(net.images.shape())},
                         {labels, Tensor::from<std::int32_t>({8}, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7})}};
    const optim::Sgd optimizer({.learning_rate = 0.05, .momentum = 0.9});
    Session session(net.graph, {.seed = 1});
    const float first = session.train_step(loss, optimizer, feeds);
    float last = first;
    const int steps = testing::is_sanitized() ? 12 : 30;
    for (int step = 1; step < steps; ++step) last = session.train_step(loss, optimizer, feeds);
    EXPECT_LT(last, (steps == 30 ? 0.5f : 1) * first) << model;
  }
}

TEST(BatchNormModels, TheSmallestPicturesRun) {
  // A single one would leave a batch norm one number a channel.
  const Shape two = {2, 1, 1, 3};
  for (const std::string_view model : kModels) {
    Net net(model, two, {.width = 0.25});
    Session session(net.graph);
    for (const bool training : {false, true}) {
      const RunResult run =
          session.run({.fetches = {net.logits}, .training = training}, {{net.images, random_images(two)}});
      for (const float logit : run.fetched[0].values<float>()) EXPECT_TRUE(std::isfinite(logit)) << model;
    }
  }
}

}  // namespace
}  // namespace miniqat::models::batch_norm_models_test
