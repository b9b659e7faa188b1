// The integer models of networks that people train, against their evaluation graphs: operation by operation given equal
// inputs, and as a whole.

#include <gtest/gtest.h>

#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "models/models.h"
#include "quantize/convert/convert.h"
#include "tests/quantize/convert/integer_check.h"
#include "tests/quantize/trained_net.h"

namespace miniqat::quantize::convert_models_test {
namespace {

using testing::kPictures;
using testing::TrainedNet;

struct ModelCase {
  const char* name;
  const char* model;
  double width;
  Shape image;
  RewriteOptions options;
  /// What differences of a step grow to in layers behind.
  int most_steps;
};

class ConvertModels : public ::testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override { set_thread_count(1); }
};

TEST_P(ConvertModels, OperationsAndOutputsAgree) {
  const ModelCase& c = GetParam();
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {4, c.image[0], c.image[1], c.image[2]});
  graph.set_outputs({models::find_model(c.model).build(graph, images, {.classes = 7, .width = c.width})});
  const TrainedNet net = testing::train_briefly(graph, c.options);
  const integer::Model model = convert(net.evaluation, net.variables, {.input = kPictures, .name = c.model});
  EXPECT_EQ(model.name, c.model);
  EXPECT_EQ(model.tensor(model.input).shape, c.image);
  EXPECT_EQ(model.tensor(model.output).shape, Shape{7});
  const Tensor integers = testing::images_for(net.evaluation, model, 3);
  testing::expect_faithful(net.evaluation, net.variables, model, integers);
  EXPECT_LE(testing::output_difference(net.evaluation, net.variables, model, integers), c.most_steps);
}

const RewriteOptions kMixed = {.layer_bits = {{.pattern = "conv2/*", .weight_bits = 4, .activation_bits = 5},
                                              {.pattern = "fc*", .weight_bits = 3, .per_channel = true}}};

INSTANTIATE_TEST_SUITE_P(
    Nets, ConvertModels,
    ::testing::Values(
        ModelCase{"Lenet5", "lenet5", 1, {28, 28, 1}, {}, 2},
        ModelCase{"Lenet5W4A4", "lenet5", 1, {28, 28, 1}, {.weight_bits = 4, .activation_bits = 4}, 1},
        ModelCase{"Lenet5W2A8", "lenet5", 1, {28, 28, 1}, {.weight_bits = 2}, 4},
        ModelCase{"Lenet5W2A2Channel",
                  "lenet5",
                  1,
                  {28, 28, 1},
                  {.weight_bits = 2, .activation_bits = 2, .per_channel = true},
                  1},
        ModelCase{"Lenet5Mixed", "lenet5", 1, {28, 28, 1}, kMixed, 4},
        ModelCase{"Lenet5Symmetric", "lenet5", 1, {28, 28, 1}, {.symmetric = true, .quantize_input = true}, 2},
        ModelCase{"Resnet20", "resnet20", 0.25, {16, 16, 3}, {}, 6},
        ModelCase{"Resnet20W4A4Channel",
                  "resnet20",
                  0.25,
                  {16, 16, 3},
                  {.weight_bits = 4, .activation_bits = 4, .per_channel = true},
                  3},
        ModelCase{"MobilenetV1ChannelSingle",
                  "mobilenet_v1",
                  0.125,
                  {16, 16, 3},
                  {.symmetric = true, .per_channel = true, .bn_fold = BnFold::kSingle},
                  8},
        ModelCase{"MobilenetV1Late",
                  "mobilenet_v1",
                  0.125,
                  {16, 16, 3},
                  {.ranges = RangeChoice::kLearned, .per_channel = true, .bn_fold = BnFold::kLate},
                  12},
        ModelCase{"Resnet20W4A4Late",
                  "resnet20",
                  0.25,
                  {16, 16, 3},
                  {.weight_bits = 4, .activation_bits = 4, .per_channel = true, .bn_fold = BnFold::kLate},
                  3},
        ModelCase{
            "Lenet5SymmetricWeights", "lenet5", 1, {28, 28, 1}, {.symmetric_weights = true, .per_channel = true}, 2},
        ModelCase{"MobilenetV1Frozen", "mobilenet_v1", 0.125, {16, 16, 3}, {.freeze_bn_delay = 2}, 8},
        ModelCase{"MobilenetV2", "mobilenet_v2", 0.25, {16, 16, 3}, {.quantize_input = true}, 8}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace miniqat::quantize::convert_models_test
