#include "quantize/calibrate/bias_correction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "layers/layers.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"
#include "tests/quantize/fold/batch_norm_classifier.h"

namespace miniqat::quantize::bias_correction_test {
namespace {

using testing::BatchNormClassifier;
using testing::error_of;
using testing::mentions;
using Values = std::vector<float>;

/// Feeds two batches.
FeedsOfBatches two_batches(Output images, const Tensor& first, const Tensor& second) {
  return [=](const std::function<void(const Feeds&)>& visit) {
    visit({{images, first}});
    visit({{images, second}});
  };
}

TEST(BiasCorrection, SubtractsTheMeanErrorOfOneLayer) {
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {2, 1});
  const Output weights = layers::variable(graph, "fc/weights", {1, 3});
  const Output biases = layers::variable(graph, "fc/biases", {3}, Initializer::constant(0));
  const Output x = layers::matmul(graph, "fc/MatMul", images, weights);
  graph.set_outputs({layers::bias_add(graph, "fc/BiasAdd", x, biases)});
  create_eval_graph(graph, {.weight_bits = 2, .activation_bits = 8, .symmetric_weights = true});
  Session session(graph);
  session.set_variable("fc/weights", Tensor::from({1, 3}, Values{1, 0.25f, 0.75f}));
  session.set_variable("fc/biases", Tensor::from({3}, Values{5, 6, 7}));
  const auto batches = two_batches(images, Tensor::from({2, 1}, Values{1, 2}), Tensor::from({2, 1}, Values{2, 3}));
  Calibrator calibrator(session, {.method = CalibrationMethod::kMinMax});
  batches([&](const Feeds& feeds) { calibrator.observe(feeds); });
  calibrator.finish();
  const BiasCorrection result = correct_biases(session, batches);
  // The grid of the weights is -1, 0, 1, and the mean of x is 2.
  ASSERT_EQ(result.corrected.size(), 1u);
  EXPECT_EQ(result.corrected[0].layer, "fc/MatMul");
  EXPECT_EQ(result.corrected[0].variable, "fc/biases");
  EXPECT_EQ(result.corrected[0].errors, (std::vector<double>{0, -0.5, 0.5}));
  const auto corrected = session.variable("fc/biases").values<float>();
  EXPECT_EQ(Values(corrected.begin(), corrected.end()), (Values{5, 6.5f, 6.5f}));
  EXPECT_EQ(result.text(), "  corrected  fc/MatMul: 3 channels, mean errors -0.5 to 0.5\n");
  EXPECT_TRUE(mentions(error_of([&] { correct_biases(session, [](const auto&) {}); }), {"no batch"}));
}

/// The classifier with ranges for three bits.
struct QuantizedClassifier {
  BatchNormClassifier net;
  Session trained{net.graph, {.seed = 3}};
  Graph graph;
  std::unique_ptr<Session> session;
  FeedsOfBatches batches;

  QuantizedClassifier() {
    const auto optimizer = BatchNormClassifier::optimizer();
    for (int step = 0; step < 40; ++step) trained.train_step(net.loss, optimizer, net.batch());
    graph = net.graph.clone();
    create_eval_graph(graph, {.weight_bits = 3, .activation_bits = 3});
    session = std::make_unique<Session>(graph);
    session->restore(trained.checkpoint(), Session::Restore::kByName, "the trained net");
    const Tensor images = net.batch()[0].second;
    Tensor dimmed = images.clone();
    for (float& pixel : dimmed.values<float>()) pixel /= 2;
    batches = two_batches(graph.output_at("images"), images, dimmed);
    Calibrator calibrator(*session, {.method = CalibrationMethod::kMinMax});
    batches([&](const Feeds& feeds) { calibrator.observe(feeds); });
    calibrator.finish();
  }

  /// Of each channel of a tensor, over both batches.
  Values means(Session& of, const std::string& name) const {
    const Output tensor = of.graph().output_at(name), place = of.graph().output_at("images");
    Values means(static_cast<std::size_t>(tensor.shape().channels()));
    batches([&](const Feeds& feeds) {
      const Tensor values = of.run({.fetches = {tensor}}, {{place, feeds[0].second}}).fetched[0];
      for (std::int64_t i = 0; i < values.elements(); ++i)
        means[static_cast<std::size_t>(i) % means.size()] +=
            values.data<float>()[i] * static_cast<float>(means.size()) / static_cast<float>(2 * values.elements());
    });
    return means;
  }
};

TEST(BiasCorrection, GivesEachLayerTheMeansOfTheFloatNetwork) {
  QuantizedClassifier net;
  NamedTensors before;
  for (const auto& [name, value] : net.session->variables()) before[name] = value.clone();
  const BiasCorrection first = correct_biases(*net.session, net.batches);
  ASSERT_EQ(first.corrected.size(), 3u);
  EXPECT_EQ(first.corrected[0].variable, "conv/beta");
  EXPECT_EQ(first.corrected[1].variable, "dw/beta");
  EXPECT_EQ(first.corrected[2].variable, "fc/biases");
  for (const auto& [name, value] : net.session->variables())
    EXPECT_EQ(std::ranges::equal(value.values<float>(), before.at(name).values<float>()),
              name != "conv/beta" && name != "dw/beta" && name != "fc/biases")
        << name;
  // Each layer of the corrected network has the float network's means, whatever the layers before it do.
  for (const auto& [quantized, in_float] :
       {std::pair("conv/add_fold", "conv/BatchNorm"), std::pair("dw/add_fold", "dw/BatchNorm"),
        std::pair("fc/BiasAdd", "fc/BiasAdd")}) {
    const Values expected = net.means(net.trained, in_float), corrected = net.means(*net.session, quantized);
    for (std::size_t c = 0; c < expected.size(); ++c) EXPECT_NEAR(corrected[c], expected[c], 1e-5) << quantized;
  }
}

TEST(BiasCorrection, LeavesOutChannelsThatShareOneBias) {
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {2, 1});
  const Output x = layers::matmul(graph, "fc/MatMul", images, layers::variable(graph, "fc/weights", {1, 3}));
  const Output bias = layers::variable(graph, "fc/bias", {1}, Initializer::constant(0));
  graph.set_outputs({layers::add(graph, "fc/Add", x, bias)});
  create_eval_graph(graph, {.weight_bits = 2});
  Session session(graph);
  const auto batches = two_batches(images, Tensor(Shape{2, 1}), Tensor(Shape{2, 1}));
  const BiasCorrection result = correct_biases(session, batches);
  EXPECT_TRUE(result.corrected.empty());
  ASSERT_EQ(result.left_out.size(), 1u);
  EXPECT_EQ(result.left_out[0].reason, "its channels share one bias");
}

TEST(BiasCorrection, LeavesOutLayersWithoutABiasOfTheirOwn) {
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {2, 2});
  const Output shared = layers::variable(graph, "biases", {2}, Initializer::constant(0));
  Output x = images;
  for (const char* name : {"fc1", "fc2", "fc3", "fc4"}) {
    x = layers::matmul(graph, concat(name, "/MatMul"), x, layers::variable(graph, concat(name, "/weights"), {2, 2}));
    if (name != std::string("fc3")) x = layers::bias_add(graph, concat(name, "/BiasAdd"), x, shared);
  }
  graph.set_outputs({x});
  create_eval_graph(graph, {.scope = "fc1"});
  create_eval_graph(graph, {.scope = "fc3"});
  Session session(graph);
  const auto batches = two_batches(images, Tensor(Shape{2, 2}), Tensor(Shape{2, 2}));
  const BiasCorrection result = correct_biases(session, batches);
  EXPECT_TRUE(result.corrected.empty());
  ASSERT_EQ(result.left_out.size(), 4u);
  EXPECT_TRUE(mentions(result.left_out[0].reason, {"no bias or beta that is a Variable of its own"}));
  EXPECT_TRUE(mentions(result.left_out[1].reason, {"its weights are not quantized"}));
  EXPECT_TRUE(mentions(result.left_out[2].reason, {"no bias or beta"}));
  EXPECT_TRUE(result.text().starts_with("  left out   fc1/MatMul: it has no bias")) << result.text();
}

}  // namespace
}  // namespace miniqat::quantize::bias_correction_test
