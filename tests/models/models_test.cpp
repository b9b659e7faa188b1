#include "models/models.h"

#include <gtest/gtest.h>

#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "tests/errors.h"

namespace miniqat::models::models_test {
namespace {

/// With the published input, or one of `side` pixels a side.
Graph build(std::string_view name, std::int64_t batch, const ModelOptions& options = {}, std::int64_t side = 0) {
  const Model& model = find_model(name);
  Graph graph;
  const Shape input =
      side == 0 ? model.input(batch) : Shape{batch, side, side, model.image.rank() == 3 ? model.image.channels() : 3};
  const Output images = placeholder(graph, "images", input);
  graph.set_outputs({model.build(graph, images, options)});
  graph.verify();
  return graph;
}

TEST(Models, LenetHasTheTutorialsSize) {
  const ModelSize size = size_of(build("lenet", 1), 1);
  EXPECT_EQ(size.parameters, (5 * 5 * 1 * 32 + 32) + (5 * 5 * 32 * 64 + 64) + (3136 * 1024 + 1024) + (1024 * 10 + 10));
  EXPECT_EQ(size.multiply_adds, 28 * 28 * 25 * 32 + 14 * 14 * 25 * 32 * 64 + 3136 * 1024 + 1024 * 10);
}

TEST(Models, Lenet5HasThePublishedSize) {
  const ModelSize size = size_of(build("lenet5", 1), 1);
  EXPECT_EQ(size.parameters, (25 * 6 + 6) + (25 * 6 * 16 + 16) + (400 * 120 + 120) + (120 * 84 + 84) + (84 * 10 + 10));
  EXPECT_EQ(size.multiply_adds, 28 * 28 * 25 * 6 + 10 * 10 * 25 * 6 * 16 + 400 * 120 + 120 * 84 + 84 * 10);
}

TEST(Models, LenetBnHasBatchNormsForTheBiasesOfItsConvolutions) {
  const Graph graph = build("lenet_bn", 1);
  const ModelSize size = size_of(graph, 1), plain = size_of(build("lenet", 1), 1);
  EXPECT_EQ(size.parameters, plain.parameters + 32 + 64);
  EXPECT_EQ(size.multiply_adds, plain.multiply_adds);
  EXPECT_EQ(graph.at("conv2/Relu").input(0).node->type(), "BatchNorm");
}

/// Adds up a network with batch norm layer by layer.
struct Tally {
  std::int64_t parameters = 0;
  std::int64_t multiply_adds = 0;

  /// To `side` x `side` pixels, each output a sum over `fan_in` products, then gamma and beta.
  void conv(std::int64_t side, std::int64_t fan_in, std::int64_t outputs) {
    parameters += fan_in * outputs + 2 * outputs;
    multiply_adds += side * side * fan_in * outputs;
  }
  void dense(std::int64_t inputs, std::int64_t outputs) {
    parameters += inputs * outputs + outputs;
    multiply_adds += inputs * outputs;
  }
};

/// The published model is of that size, which is `parameters` and `multiply_adds` exactly.
void expect_size(std::string_view name, const Tally& tally, std::int64_t parameters, std::int64_t multiply_adds) {
  const ModelSize size = size_of(build(name, 1, {.outputs = find_model(name).outputs}), 1);
  EXPECT_EQ(size.parameters, tally.parameters) << name;
  EXPECT_EQ(size.multiply_adds, tally.multiply_adds) << name;
  EXPECT_EQ(size.parameters, parameters) << name;
  EXPECT_EQ(size.multiply_adds, multiply_adds) << name;
}

TEST(Models, MobilenetV1HasThePublishedSize) {
  Tally tally;
  tally.conv(112, 3 * 3 * 3, 32);
  struct Block {
    std::int64_t side, inputs, outputs;
  };
  for (const auto& [side, inputs, outputs] : std::vector<Block>{{112, 32, 64},
                                                                {56, 64, 128},
                                                                {56, 128, 128},
                                                                {28, 128, 256},
                                                                {28, 256, 256},
                                                                {14, 256, 512},
                                                                {14, 512, 512},
                                                                {14, 512, 512},
                                                                {14, 512, 512},
                                                                {14, 512, 512},
                                                                {14, 512, 512},
                                                                {7, 512, 1024},
                                                                {7, 1024, 1024}}) {
    tally.conv(side, 3 * 3, inputs);
    tally.conv(side, inputs, outputs);
  }
  tally.dense(1024, 1000);
  expect_size("mobilenet_v1", tally, 4'231'976, 568'740'352);  // table 8: 4.2 M and 569 M
}

TEST(Models, MobilenetV2HasThePublishedSize) {
  Tally tally;
  tally.conv(112, 3 * 3 * 3, 32);
  tally.conv(112, 3 * 3, 32);
  tally.conv(112, 32, 16);
  struct Block {
    std::int64_t side_before, side, inputs, outputs;
  };
  for (const auto& [side_before, side, inputs, outputs] : std::vector<Block>{{112, 56, 16, 24},
                                                                             {56, 56, 24, 24},
                                                                             {56, 28, 24, 32},
                                                                             {28, 28, 32, 32},
                                                                             {28, 28, 32, 32},
                                                                             {28, 14, 32, 64},
                                                                             {14, 14, 64, 64},
                                                                             {14, 14, 64, 64},
                                                                             {14, 14, 64, 64},
                                                                             {14, 14, 64, 96},
                                                                             {14, 14, 96, 96},
                                                                             {14, 14, 96, 96},
                                                                             {14, 7, 96, 160},
                                                                             {7, 7, 160, 160},
                                                                             {7, 7, 160, 160},
                                                                             {7, 7, 160, 320}}) {
    tally.conv(side_before, inputs, 6 * inputs);
    tally.conv(side, 3 * 3, 6 * inputs);
    tally.conv(side, 6 * inputs, outputs);
  }
  tally.conv(7, 320, 1280);
  tally.dense(1280, 1000);
  expect_size("mobilenet_v2", tally, 3'504'872, 300'774'272);  // the authors' code: 3.47 M + 34 k of batch norm, 300 M
}

TEST(Models, Resnet20HasThePublishedSize) {
  Tally tally;
  tally.conv(32, 3 * 3 * 3, 16);
  for (int k = 0; k < 6; ++k) tally.conv(32, 3 * 3 * 16, 16);
  tally.conv(16, 3 * 3 * 16, 32);
  for (int k = 0; k < 5; ++k) tally.conv(16, 3 * 3 * 32, 32);
  tally.conv(8, 3 * 3 * 32, 64);
  for (int k = 0; k < 5; ++k) tally.conv(8, 3 * 3 * 64, 64);
  tally.dense(64, 10);
  expect_size("resnet20", tally, 269'722, 40'551'040);  // table 6: 0.27 M; 41 M
}

TEST(Models, WidthsHaveThePublishedMultiplyAdds) {
  struct Case {
    std::string_view model;
    double width;
    std::int64_t side;
    double millions;
  };
  // Howard et al., tables 6 and 7; the list of checkpoints of MobileNetV2's authors.
  for (const auto& [model, width, side, millions] : std::vector<Case>{{"mobilenet_v1", 0.75, 224, 325},
                                                                      {"mobilenet_v1", 0.5, 224, 149},
                                                                      {"mobilenet_v1", 0.25, 224, 41},
                                                                      {"mobilenet_v1", 1, 160, 290},
                                                                      {"mobilenet_v2", 1.4, 224, 582},
                                                                      {"mobilenet_v2", 1.3, 224, 509},
                                                                      {"mobilenet_v2", 0.75, 224, 209},
                                                                      {"mobilenet_v2", 0.5, 224, 97},
                                                                      {"mobilenet_v2", 0.35, 224, 59},
                                                                      {"mobilenet_v2", 1, 96, 56}}) {
    const ModelSize size = size_of(build(model, 1, {.outputs = 1000, .width = width}, side), 1);
    EXPECT_NEAR(static_cast<double>(size.multiply_adds) * 1e-6, millions, 1) << model << ", width " << width;
  }
}

TEST(Models, MultiplyAddsAreForOnePicture) {
  for (const Model& model : model_table())
    EXPECT_EQ(size_of(build(model.name, 8), 8).multiply_adds, size_of(build(model.name, 1), 1).multiply_adds)
        << model.name;
}

TEST(Models, EveryModelTakesOutputsAndWidth) {
  for (const Model& model : model_table()) {
    const Graph narrow = build(model.name, 2, {.outputs = 7, .width = 0.5});
    EXPECT_EQ(narrow.outputs().front().shape(), (Shape{2, model.reconstructs ? 640 : 7})) << model.name;
    EXPECT_LT(size_of(narrow, 2).parameters, size_of(build(model.name, 2), 2).parameters) << model.name;
    const Graph thinnest = build(model.name, 1, {.outputs = 2, .width = 1e-9});
    const Node* first = nullptr;
    for (const char* layer : {"conv0", "conv1", "fc1", "encode1", "block1/pointwise"})
      if (first == nullptr) first = thinnest.find(layer + std::string("/weights"));
    ASSERT_NE(first, nullptr) << model.name;
    EXPECT_EQ(first->output_specs()[0].shape.channels(), model.name == "mobilenet_v2" ? 8 : 1) << model.name;
  }
}

TEST(Models, PicturesOfAnySizeAreBuiltOrRefusedInWords) {
  for (const Model& model : model_table())
    for (const std::int64_t side : {1, 2, 3, 7, 8, 13, 29, 30, 32, 224}) {
      const bool is_lenet = model.name.starts_with("lenet"), is_wake_word = model.name == "wake_word";
      try {
        const Graph graph = build(model.name, 2, {}, side);
        const std::int64_t outputs = model.reconstructs ? side * side * 3 : 10;
        EXPECT_EQ(graph.outputs().front().shape(), (Shape{2, outputs})) << model.name << " at " << side;
      } catch (const Error& error) {
        EXPECT_TRUE(is_lenet || is_wake_word) << model.name << " at " << side << ": " << error.what();
        EXPECT_LT(side, is_lenet ? 13 : 30) << model.name << ": " << error.what();
        const char* const begin = is_lenet ? "[" : "wake_word takes at least 30 steps, got ";
        EXPECT_TRUE(std::string(error.what()).starts_with(begin)) << error.what();
      }
    }
}

std::string refusal(std::string_view model, const Shape& input) {
  Graph graph;
  return testing::error_of([&] { find_model(model).build(graph, placeholder(graph, "images", input), {}); });
}

TEST(Models, OtherRanksAreRefusedWithTheModelsThatTakeThem) {
  int pictures = 0, steps = 0;
  for (const Model& model : model_table()) {
    const std::string name(model.name);
    switch (model.examples) {
      case Examples::kPictures:
        ++pictures;
        EXPECT_EQ(refusal(name, {2, 640}), name + " takes pictures [h, w, c]; autoencoder, mlp take [640]");
        EXPECT_EQ(refusal(name, {2, 50, 40}),
                  name + " takes pictures [h, w, c]; autoencoder, ds_cnn, mlp, wake_word take [50,40]");
        break;
      case Examples::kSteps:
        ++steps;
        EXPECT_EQ(refusal(name, {2, 640}),
                  name + " takes [steps, channels] or pictures [h, w, c]; autoencoder, mlp take [640]");
        EXPECT_EQ(refusal(name, {2, 50, 40}), "");
        break;
      case Examples::kAny:
        for (const Shape& input : {Shape{2, 640}, Shape{2, 50, 40}, Shape{2, 3, 4, 5, 6}})
          EXPECT_EQ(refusal(name, input), "");
        EXPECT_EQ(refusal(name, {640}), name + " takes examples [...], not []");
        break;
    }
    EXPECT_EQ(refusal(name, {2, 50, 40, 3}), "");
  }
  EXPECT_EQ(pictures, 8);
  EXPECT_EQ(steps, 2);
}

TEST(Models, UnknownNameListsTheKnownOnes) {
  try {
    find_model("lenet6");
    FAIL() << "found a model that does not exist";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("lenet, lenet5"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace miniqat::models::models_test
