#include "models/models.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/source_ops.h"

namespace miniqat::models {
namespace {

Graph build(std::string_view name, std::int64_t batch, const ModelOptions& options = {}) {
  const Model& model = find_model(name);
  Graph graph;
  const Output images = placeholder(graph, "images", {batch, model.image[0], model.image[1], model.image[2]});
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

TEST(Models, MultiplyAddsAreForOnePicture) {
  for (const Model& model : model_table())
    EXPECT_EQ(size_of(build(model.name, 8), 8).multiply_adds, size_of(build(model.name, 1), 1).multiply_adds)
        << model.name;
}

TEST(Models, EveryModelTakesClassesAndWidth) {
  for (const Model& model : model_table()) {
    const Graph narrow = build(model.name, 2, {.classes = 7, .width = 0.5});
    EXPECT_EQ(narrow.outputs().front().shape(), (Shape{2, 7})) << model.name;
    EXPECT_LT(size_of(narrow, 2).parameters, size_of(build(model.name, 2), 2).parameters) << model.name;
    const Graph thinnest = build(model.name, 1, {.classes = 2, .width = 1e-9});
    EXPECT_EQ(thinnest.at("conv1/weights").output_specs()[0].shape.channels(), 1) << model.name;
  }
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
}  // namespace miniqat::models
