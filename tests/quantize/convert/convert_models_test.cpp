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
  /// Without the batch.
  Shape image;
  RewriteOptions options;
  /// What differences of a step grow to in layers behind.
  int most_steps;
};

class ConvertModels : public ::testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override { set_thread_count(1); }
};

std::int64_t parameters_of(const integer::Model& model) {
  std::size_t sum = 0;
  for (const integer::Operation& operation : model.operations)
    if (const auto* layer = std::get_if<integer::Layer>(&operation.action))
      sum += layer->weights.size() + layer->bias.size();
  return static_cast<std::int64_t>(sum);
}

TEST_P(ConvertModels, OperationsAndOutputsAgree) {
  const ModelCase& c = GetParam();
  const models::Model& built_in = models::find_model(c.model);
  Graph graph;
  std::vector<std::int64_t> batch = {4};
  batch.insert(batch.end(), c.image.extents().begin(), c.image.extents().end());
  const Output images = layers::placeholder(graph, "images", Shape(batch));
  graph.set_outputs({built_in.build(graph, images, {.outputs = 7, .width = c.width})});
  RewriteOptions options = c.options;
  options.strict = true;
  const TrainedNet net = testing::train_briefly(graph, options);
  const integer::Model model = convert(net.evaluation, net.variables, {.input = kPictures, .name = c.model});
  EXPECT_EQ(model.name, c.model);
  EXPECT_EQ(model.tensor(model.input).shape, c.image);
  EXPECT_EQ(model.tensor(model.output).shape, Shape{built_in.reconstructs ? c.image.elements() : 7});
  EXPECT_EQ(parameters_of(model), models::count_parameters(built_in, graph).folded);
  const Tensor integers = testing::images_for(net.evaluation, model, 3);
  testing::expect_faithful(net.evaluation, net.variables, model, integers);
  EXPECT_LE(testing::output_difference(net.evaluation, net.variables, model, integers), c.most_steps);
}

const RewriteOptions kFourBits = {.weight_bits = 4, .activation_bits = 4, .per_channel = true};
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
        ModelCase{"MobilenetV2", "mobilenet_v2", 0.25, {16, 16, 3}, {.quantize_input = true}, 8},
        ModelCase{"Resnet8", "resnet8", 0.25, {16, 16, 3}, {}, 4},
        ModelCase{"Resnet8W4A4", "resnet8", 0.25, {16, 16, 3}, kFourBits, 3},
        ModelCase{"DsCnn", "ds_cnn", 0.25, {49, 10}, {}, 4},
        ModelCase{"DsCnnW4A4", "ds_cnn", 0.25, {49, 10, 1}, kFourBits, 3},
        ModelCase{"VisualWakeWords", "visual_wake_words", 0.5, {16, 16, 3}, {}, 8},
        ModelCase{"VisualWakeWordsW4A4", "visual_wake_words", 0.5, {16, 16, 3}, kFourBits, 3},
        ModelCase{"Autoencoder", "autoencoder", 0.25, {640}, {}, 3},
        ModelCase{"AutoencoderW4A4", "autoencoder", 0.25, {5, 16}, kFourBits, 2},
        ModelCase{"WakeWord", "wake_word", 0.25, {30, 40}, {}, 4},
        ModelCase{"WakeWordW4A4", "wake_word", 0.25, {32, 40}, kFourBits, 3},
        ModelCase{"Mlp", "mlp", 0.25, {30}, {}, 2}, ModelCase{"MlpW4A4", "mlp", 0.25, {5, 6}, kFourBits, 2}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace miniqat::quantize::convert_models_test
