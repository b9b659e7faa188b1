// The networks of MLPerf Tiny and mlp: figures as published, and what is special about each.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>

#include "core/engine/session.h"
#include "core/graph/source_ops.h"
#include "core/tensors/random.h"
#include "layers/layers.h"
#include "models/models.h"
#include "optim/sgd.h"
#include "tests/source_dir.h"

namespace miniqat::models::tiny_models_test {
namespace {

struct Net {
  /// With the published input and outputs, or others.
  explicit Net(std::string_view model, const Shape& input = {}, const ModelOptions& options = {}) {
    const Model& of = find_model(model);
    const bool published = input.rank() == 0;
    images = placeholder(graph, "images", published ? of.input(2) : input);
    result = of.build(graph, images, published ? ModelOptions{.outputs = of.outputs} : options);
    graph.set_outputs({result});
    graph.verify();
  }
  Shape shape_of(const std::string& node) const { return graph.at(node).output_specs()[0].shape; }
  bool has(const std::string& node) const { return graph.find(node) != nullptr; }
  std::int64_t count(std::string_view type) const {
    const auto nodes = graph.nodes();
    return std::ranges::count_if(nodes, [&](const Node* node) { return node->type() == type; });
  }
  /// The types of the nodes between the images and the result, along the first inputs.
  std::string way() const {
    std::string text;
    for (const Node* node = result.node; node != images.node; node = node->input(0).node)
      text = std::string(node->type()) + (text.empty() ? "" : " ") + text;
    return text;
  }

  Graph graph;
  Output images;
  Output result;
};

struct PublishedFigures {
  std::string_view model;
  std::int64_t trained, folded, keras, multiply_adds;
};

TEST(TinyModels, CountsAreThosePublished) {
  // The last two: MLPerf Tiny's reference networks, as Keras describes them.
  for (const auto& [name, trained, folded, keras, multiply_adds] :
       {PublishedFigures{"resnet8", 77'946, 77'706, 78'666, 12'501'632},
        PublishedFigures{"ds_cnn", 23'180, 22'604, 24'908, 2'656'768},
        PublishedFigures{"visual_wake_words", 213'586, 210'850, 221'794, 7'489'664},
        PublishedFigures{"autoencoder", 266'896, 265'864, 269'992, 264'192},
        PublishedFigures{"wake_word", 46'875, 46'883, 47'707, 826'368},
        PublishedFigures{"mlp", 109'386, 109'386, 109'386, 109'184}}) {
    const Net net(name);
    const ParameterCounts counts = count_parameters(find_model(name), net.graph);
    EXPECT_EQ(counts.trained, trained) << name;
    EXPECT_EQ(counts.folded, folded) << name;
    EXPECT_EQ(counts.keras, keras) << name;
    EXPECT_EQ(size_of(net.graph, 2).multiply_adds, multiply_adds) << name;
  }
}

/// 1234567 as "1,234,567".
std::string in_thousands(std::int64_t number) {
  std::string text = std::to_string(number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

TEST(TinyModels, ThePageHasTheFiguresOfEveryModel) {
  std::ifstream file(source_dir() / "docs/models.md");
  std::string page{std::istreambuf_iterator<char>(file), {}};
  std::erase(page, '*');
  for (const Model& model : model_table()) {
    const Net net(model.name);
    const ParameterCounts counts = count_parameters(model, net.graph);
    std::string figures;
    for (const std::int64_t count : {counts.trained, counts.folded, counts.keras, size_of(net.graph, 2).multiply_adds})
      figures += " | " + in_thousands(count);
    const std::size_t row = page.find("\n| `" + std::string(model.name) + "` | ");
    ASSERT_NE(row, page.npos) << model.name;
    EXPECT_NE(page.substr(row, page.find('\n', row + 1) - row).find(figures + " |"), page.npos)
        << model.name << figures;
  }
}

// As https://keras.io/api/applications has them.
TEST(TinyModels, KerasCountsItsOwnMobilenets) {
  for (const auto& [name, parameters] :
       {std::pair<const char*, std::int64_t>{"mobilenet_v1", 4'253'864}, {"mobilenet_v2", 3'538'984}})
    EXPECT_EQ(count_parameters(find_model(name), Net(name).graph).keras, parameters) << name;
}

TEST(TinyModels, OnlyWhatReachesAnOutputCounts) {
  Net net("resnet8");
  layers::conv2d(net.graph, "more/Conv2D", net.images, variable(net.graph, "more/weights", {3, 3, 3, 4}));
  EXPECT_EQ(count_parameters(find_model("resnet8"), net.graph).folded, 77'706);
}

TEST(TinyModels, Resnet8HasShortcutsWithBiases) {
  const Net net("resnet8");
  EXPECT_EQ(net.count("Conv2D"), 9);
  EXPECT_EQ(net.count("BatchNorm"), 7);
  EXPECT_EQ(net.count("Relu"), 7);
  EXPECT_FALSE(net.has("stage1/shortcut/Conv2D"));
  for (const std::string stage : {"stage2", "stage3"}) {
    const Node& add = net.graph.at(stage + "/Add");
    EXPECT_EQ(add.input(0).name(), stage + "/conv2/BatchNorm");
    EXPECT_EQ(add.input(1).name(), stage + "/shortcut/BiasAdd");
    EXPECT_EQ(net.shape_of(stage + "/shortcut/weights").extents()[0], 1);
  }
  EXPECT_EQ(net.graph.at("stage1/Add").input(1).name(), "conv0/Relu");
  EXPECT_EQ(net.shape_of("stage1/Relu"), (Shape{2, 32, 32, 16}));
  EXPECT_EQ(net.shape_of("stage3/Relu"), (Shape{2, 8, 8, 64}));
}

TEST(TinyModels, DsCnnBeginsWithAFilterOfTenByFour) {
  const Net net("ds_cnn");
  EXPECT_EQ(net.shape_of("conv0/weights"), (Shape{10, 4, 1, 64}));
  EXPECT_EQ(net.shape_of("conv0/Relu"), (Shape{2, 25, 5, 64}));
  EXPECT_EQ(net.shape_of("block4/pointwise/Relu"), (Shape{2, 25, 5, 64}));
  EXPECT_EQ(net.count("Dropout"), 2);
  EXPECT_FALSE(net.has("image"));
  const Net of_steps("ds_cnn", {2, 49, 10}, {.outputs = 12});
  EXPECT_EQ(of_steps.shape_of("image"), (Shape{2, 49, 10, 1}));
  EXPECT_EQ(count_parameters(find_model("ds_cnn"), of_steps.graph).keras, 24'908);
}

TEST(TinyModels, VisualWakeWordsIsAQuarterMobilenetWithRelu) {
  const Net net("visual_wake_words");
  EXPECT_EQ(net.count("Relu"), 27);
  EXPECT_EQ(net.count("Relu6"), 0);
  EXPECT_EQ(net.shape_of("conv0/Relu"), (Shape{2, 48, 48, 8}));
  EXPECT_EQ(net.shape_of("block13/pointwise/Relu"), (Shape{2, 3, 3, 256}));
  EXPECT_EQ(Net("visual_wake_words", {2, 96, 96, 3}, {.width = 2}).shape_of("conv0/Relu"), (Shape{2, 48, 48, 16}));
}

TEST(TinyModels, TheAutoencoderGivesBackTheShapeOfItsInput) {
  const std::string layer = "MatMul BatchNorm Relu ";
  std::string layers;
  for (int k = 0; k < 9; ++k) layers += layer;
  const Net net("autoencoder");
  EXPECT_EQ(net.way(), layers + "MatMul BiasAdd");
  EXPECT_EQ(net.shape_of("code/Relu"), (Shape{2, 8}));
  EXPECT_EQ(net.shape_of("decode4/Relu"), (Shape{2, 128}));
  const Net of_steps("autoencoder", {3, 5, 128}, {.outputs = 10});
  EXPECT_EQ(of_steps.way(), "Reshape " + layers + "MatMul BiasAdd");
  EXPECT_EQ(of_steps.result.shape(), (Shape{3, 640}));
  EXPECT_EQ(Net("autoencoder", {3, 4, 5, 6}).result.shape(), (Shape{3, 120}));
}

TEST(TinyModels, WakeWordConvolvesOverSteps) {
  std::string blocks;
  for (int k = 0; k < 4; ++k) blocks += "DepthwiseConv2d Conv2D BatchNorm Relu Dropout ";
  const Net net("wake_word");
  EXPECT_EQ(net.way(), "Reshape " + blocks + "Reshape MatMul BiasAdd");
  EXPECT_EQ(net.shape_of("steps"), (Shape{2, 30, 1, 40}));
  for (const auto& [block, filter, after] :
       std::vector<std::tuple<int, Shape, Shape>>{{1, {3, 1, 40, 1}, {2, 28, 1, 128}},
                                                  {2, {5, 1, 128, 1}, {2, 24, 1, 128}},
                                                  {3, {10, 1, 128, 1}, {2, 15, 1, 128}},
                                                  {4, {15, 1, 128, 1}, {2, 1, 1, 32}}}) {
    const std::string name = "block" + std::to_string(block);
    EXPECT_EQ(net.shape_of(name + "/depthwise/weights"), filter);
    EXPECT_EQ(net.shape_of(name + "/pointwise/Relu"), after);
  }
  // Columns of pixels as they are, and the rows of a picture as steps.
  EXPECT_EQ(Net("wake_word", {2, 30, 1, 40}).way(), blocks + "Reshape MatMul BiasAdd");
  EXPECT_EQ(Net("wake_word", {2, 32, 8, 3}).shape_of("steps"), (Shape{2, 32, 1, 24}));
  EXPECT_EQ(Net("wake_word", {2, 32, 8, 3}).shape_of("flatten"), (Shape{2, 96}));
}

TEST(TinyModels, MlpTakesAnything) {
  EXPECT_EQ(Net("mlp", {2, 640}, {.outputs = 3}).way(), "MatMul BiasAdd Relu MatMul BiasAdd Relu MatMul BiasAdd");
  for (const Shape& input : {Shape{2, 12}, Shape{2, 4, 3}, Shape{2, 2, 3, 2}}) {
    const Net net("mlp", input, {.outputs = 3, .width = 0.5});
    EXPECT_EQ(net.shape_of("fc1/weights"), (Shape{12, 64}));
    EXPECT_EQ(net.shape_of("fc2/weights"), (Shape{64, 32}));
    EXPECT_EQ(net.result.shape(), (Shape{2, 3}));
  }
}

TEST(TinyModels, LossFallsOnAFixedBatch) {
  for (const std::string_view model : {"resnet8", "ds_cnn", "visual_wake_words", "autoencoder", "wake_word", "mlp"}) {
    const bool is_picture = find_model(model).image.rank() == 3;
    Net net(model, is_picture ? Shape{8, 32, 32, 3} : find_model(model).input(8), {.outputs = 8, .width = 0.25});
    const Output labels = placeholder(net.graph, "labels", {8}, DType::kInt32);
    const Output loss = layers::softmax_cross_entropy(net.graph, net.result, labels);
    Tensor images(net.images.shape());
    Random random(5);
    for (float& value : images.values<float>()) value = random.uniform(-1, 1);
    const Feeds feeds = {{net.images, images},
                         {labels, Tensor::from<std::int32_t>({8}, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7})}};
    const optim::Sgd optimizer({.learning_rate = 0.005, .momentum = 0.9});
    Session session(net.graph, {.seed = 1});
    const float first = session.train_step(loss, optimizer, feeds);
    float last = first;
    for (int step = 1; step < 12; ++step) last = session.train_step(loss, optimizer, feeds);
    EXPECT_LT(last, first) << model;
  }
}

}  // namespace
}  // namespace miniqat::models::tiny_models_test
