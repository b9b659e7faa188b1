#include "quantize/calibrate/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/tensors/tensor.h"
#include "quantize/quantizers.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"
#include "tests/quantize/fold/batch_norm_classifier.h"

namespace miniqat::quantize::calibrate_test {
namespace {

using testing::BatchNormClassifier;
using testing::error_of;
using testing::mentions;

using Method = CalibrationMethod;

/// The classifier trained in float, and its batches: the same pictures, dimmed.
class CalibratorTest : public ::testing::Test {
 protected:
  CalibratorTest() : trained_(net_.graph, {.seed = 3}) {
    const auto optimizer = BatchNormClassifier::optimizer();
    for (int step = 0; step < 40; ++step) trained_.train_step(net_.loss, optimizer, net_.batch());
  }

  Tensor images(double brightness) const {
    Tensor images = net_.batch()[0].second;
    for (float& pixel : images.values<float>()) pixel = static_cast<float>(pixel * brightness);
    return images;
  }

  double accuracy(Session& session, Output logits) const {
    const Tensor values =
        session.run({.fetches = {logits}}, {{session.graph().output_at("images"), images(1)}}).fetched[0];
    int correct = 0;
    for (std::int64_t i = 0; i < BatchNormClassifier::kImages; ++i)
      correct += argmax(values.values<float>().subspan(static_cast<std::size_t>(3 * i), 3)) == i % 3;
    return static_cast<double>(correct) / BatchNormClassifier::kImages;
  }

  BatchNormClassifier net_;
  Session trained_;
};

/// An evaluation graph of the classifier, calibrated.
struct Calibrated {
  Graph graph;
  std::unique_ptr<Session> session;
  std::map<std::string, CalibratedRange> ranges;

  Calibrated(const Graph& float_graph, Session& trained, const RewriteOptions& rewrite) : graph(float_graph.clone()) {
    create_eval_graph(graph, rewrite);
    session = std::make_unique<Session>(graph, SessionOptions{.seed = 77});
    session->restore(trained.checkpoint(), Session::Restore::kByName, "the trained net");
  }

  Calibrated& run(const CalibrationOptions& options, const std::vector<Tensor>& batches) {
    Calibrator calibrator(*session, options);
    for (const Tensor& batch : batches) calibrator.observe({{graph.output_at("images"), batch}});
    for (CalibratedRange& range : calibrator.finish()) ranges.emplace(range.quantizer, range);
    return *this;
  }
  float stored(const std::string& name) { return *session->variable(name).data<float>(); }
};

TEST_F(CalibratorTest, SeesTheFloatNetworkWithItsBatchNormsFolded) {
  Calibrated net(net_.graph, trained_, {.weight_bits = 2, .activation_bits = 2});
  net.run({.method = Method::kMinMax}, {images(1), images(0.5)});
  for (const auto& [quantizer, tensor] :
       {std::pair("conv/act_quant", "conv/Relu"), std::pair("dw/act_quant", "dw/Relu6"),
        std::pair("pool/activation_Mean_quant", "pool"), std::pair("fc/act_quant", "fc/BiasAdd")}) {
    Range<float> expected;
    for (const double brightness : {1.0, 0.5}) {
      const Tensor values =
          trained_.run({.fetches = {net_.graph.output_at(tensor)}}, {{net_.images, images(brightness)}}).fetched[0];
      const auto [low, high] = std::ranges::minmax(values.values<float>());
      expected = {std::min(expected.min, low), std::max(expected.max, high)};
    }
    ASSERT_TRUE(net.ranges.contains(quantizer)) << quantizer;
    const float tolerance = 1e-4f * (expected.max - expected.min);
    EXPECT_GT(expected.max, 0.1f) << quantizer;
    EXPECT_NEAR(net.stored(std::string(quantizer) + "/min"), expected.min, tolerance) << quantizer;
    EXPECT_NEAR(net.stored(std::string(quantizer) + "/max"), expected.max, tolerance) << quantizer;
    EXPECT_EQ(net.stored(std::string(quantizer) + "/num_updates"), 2);
  }
}

TEST_F(CalibratorTest, MovingAveragesAreZeroDebiased) {
  const double brightness[] = {0.5, 2, 1};
  std::vector<Range<float>> each;
  for (const double one : brightness) {
    Calibrated net(net_.graph, trained_, {});
    each.push_back(net.run({.method = Method::kMinMax}, {images(one)}).ranges.at("fc/act_quant").set[0]);
  }
  constexpr double kDecay = 0.7;
  double low = 0, high = 0;
  for (const Range<float>& range : each) {
    low = kDecay * low + (1 - kDecay) * range.min;
    high = kDecay * high + (1 - kDecay) * range.max;
  }
  const double bias = 1 - std::pow(kDecay, 3);
  Calibrated net(net_.graph, trained_, {.ema_decay = kDecay});
  net.run({.method = Method::kMovingAverage}, {images(0.5), images(2), images(1)});
  EXPECT_NEAR(net.stored("fc/act_quant/min"), low / bias, 1e-5 * std::abs(low));
  EXPECT_NEAR(net.stored("fc/act_quant/max"), high / bias, 1e-5 * high);
  EXPECT_EQ(net.stored("fc/act_quant/num_updates"), 3);
}

TEST_F(CalibratorTest, ItsBatchesAreNoStepsOfDampening) {
  Graph graph = net_.graph.clone();
  create_eval_graph(graph);
  EXPECT_GT(dampen_weights(graph, 0.5, 10), 0);
  Session session(graph);
  session.restore(trained_.checkpoint(), Session::Restore::kByName, "the trained net");
  session.set_variable("fc/weights_quant/num_dampened", Tensor::scalar(20.0f));
  Calibrator calibrator(session, {});
  calibrator.observe({{graph.output_at("images"), images(1)}});
  calibrator.finish();
  EXPECT_EQ(*session.variable("fc/weights_quant/num_dampened").data<float>(), 20);
  EXPECT_EQ(*session.variable("fc/act_quant/num_updates").data<float>(), 1);
}

TEST_F(CalibratorTest, TrainingGoesOnFromTheRanges) {
  Calibrated net(net_.graph, trained_, {});
  net.run({.method = Method::kMinMax}, {images(1), images(1), images(1)});
  const float calibrated = net.stored("fc/act_quant/max");
  Graph training = net_.graph.clone();
  create_training_graph(training);
  Session session(training);
  session.restore(net.session->checkpoint(), Session::Restore::kVariables, "the calibrated net");
  Feeds feeds;
  for (const auto& [output, tensor] : net_.batch()) feeds.emplace_back(training.output_at(output.name()), tensor);
  for (float& pixel : feeds[0].second.values<float>()) pixel *= 3;
  const Output logits = training.output_at("fc/BiasAdd");
  const RunResult result = session.run({.fetches = {logits, training.outputs()[0]}, .training = true}, feeds);
  const auto high = std::ranges::max(result.fetched[0].values<float>());
  EXPECT_NEAR(*session.variable("fc/act_quant/max").data<float>(), calibrated + (high - calibrated) / 4,
              0.01f * std::abs(high - calibrated));
}

TEST_F(CalibratorTest, APercentileLeavesOneBrightPictureOut) {
  Tensor bright = images(1);
  bright.values<float>()[5] = 1e4f;
  Calibrated all(net_.graph, trained_, {.quantize_input = true});
  all.run({.method = Method::kMinMax}, {bright});
  EXPECT_EQ(all.stored("images/input_quant/max"), 1e4f);
  Calibrated most(net_.graph, trained_, {.quantize_input = true});
  most.run({.method = Method::kPercentile, .percentile = 99.9}, {bright});
  EXPECT_LT(most.stored("images/input_quant/max"), 3);
  EXPECT_GT(most.stored("images/input_quant/max"), 1);
  EXPECT_EQ(most.ranges.at("images/input_quant").seen[0].max, 1e4f);
  EXPECT_EQ(most.ranges.at("fc/weights_quant").set[0].max, all.ranges.at("fc/weights_quant").set[0].max);
}

double weight_error(const Tensor& weights, const CalibratedRange& range) {
  const FakeQuantAttributes& attributes = range.attributes;
  const GridOptions options{static_cast<int>(attributes.bits), attributes.narrow_range, attributes.symmetric};
  double error = 0;
  for (std::size_t i = 0; i < weights.values<float>().size(); ++i) {
    const float value = weights.values<float>()[i];
    error += std::pow(fake_quantize(grid_of(range.set[i % range.set.size()], options), value) - value, 2);
  }
  return error;
}

TEST_F(CalibratorTest, WeightsHaveARangeForEachChannelOfTheFoldedFilter) {
  for (const bool symmetric : {false, true}) {
    const RewriteOptions rewrite{.weight_bits = 3, .symmetric = symmetric, .per_channel = true};
    Calibrated plain(net_.graph, trained_, rewrite), least(net_.graph, trained_, rewrite);
    plain.run({.method = Method::kMinMax}, {images(1)});
    least.run({.method = Method::kMse}, {images(1)});
    for (const auto& [name, channels] :
         {std::pair("conv/weights_quant", 4u), std::pair("dw/weights_quant", 4u), std::pair("fc/weights_quant", 3u)}) {
      Node& node = plain.graph.at(name);
      const Tensor weights = plain.session->run({.fetches = {node.input(0)}}, {}).fetched[0];
      const CalibratedRange& range = plain.ranges.at(name);
      EXPECT_TRUE(range.is_weights);
      ASSERT_EQ(range.set.size(), channels) << name;
      for (std::size_t c = 0; c < channels; ++c) {
        Range<float> expected;
        for (std::size_t i = c; i < weights.values<float>().size(); i += channels) {
          expected.min = std::min(expected.min, weights.values<float>()[i]);
          expected.max = std::max(expected.max, weights.values<float>()[i]);
        }
        if (symmetric) expected = widen_symmetric(expected, {.bits = 3, .narrow_range = true});
        EXPECT_EQ(plain.session->variable(std::string(name) + "/min").data<float>()[c], expected.min);
        EXPECT_EQ(plain.session->variable(std::string(name) + "/max").data<float>()[c], expected.max);
      }
      EXPECT_LT(weight_error(weights, least.ranges.at(name)), weight_error(weights, range)) << name;
    }
  }
}

TEST_F(CalibratorTest, EightBitsKeepTheAccuracyByEveryMethod) {
  const double before = accuracy(trained_, net_.logits);
  ASSERT_GE(before, 0.9);
  for (const Method method : {Method::kMinMax, Method::kMovingAverage, Method::kPercentile, Method::kMse}) {
    for (const bool per_channel : {false, true}) {
      Calibrated net(net_.graph, trained_, {.per_channel = per_channel});
      net.run({.method = method}, {images(1), images(0.9)});
      EXPECT_GE(accuracy(*net.session, net.graph.outputs()[0]), before - 0.05) << static_cast<int>(method);
    }
  }
}

TEST_F(CalibratorTest, FixedRangesStay) {
  Calibrated net(net_.graph, trained_, {});
  Node& node = net.graph.at("fc/act_quant");
  FakeQuantAttributes attributes = *node.as<FakeQuant>();
  attributes.range = RangeKind::kFixed;
  net.graph.replace_op(node, FakeQuant::make(attributes));
  const float before = net.stored("fc/act_quant/max");
  net.run({}, {images(1)});
  EXPECT_EQ(net.stored("fc/act_quant/max"), before);
  EXPECT_FALSE(net.ranges.contains("fc/act_quant"));
}

TEST_F(CalibratorTest, SaysWhatIsWrong) {
  EXPECT_TRUE(mentions(error_of([&] { Calibrator(trained_, {}); }), {"no quantizers"}));
  Calibrated net(net_.graph, trained_, {});
  for (const double percentile : {50.0, 100.1, std::nan("")})
    EXPECT_TRUE(mentions(error_of([&] { Calibrator(*net.session, {.percentile = percentile}); }), {"percentile"}));
  Calibrator calibrator(*net.session, {});
  EXPECT_TRUE(mentions(error_of([&] { calibrator.finish(); }), {"no batch"}));
  EXPECT_TRUE(mentions(error_of([&] { calibrator.observe({}); }), {"images", "must be fed"}));
  Tensor broken = images(1);
  broken.values<float>()[100] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(mentions(error_of([&] {
                         calibrator.observe({{net.graph.output_at("images"), broken}});
                       }),
                       {"[FakeQuant \"", "_quant\"]", "not finite"}));
}

TEST_F(CalibratorTest, WeightsThatBlewUpAreNamed) {
  Calibrated net(net_.graph, trained_, {});
  net.session->variable("fc/weights").values<float>()[2] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(mentions(error_of([&] { Calibrator(*net.session, {}); }), {"fc/weights", "inf"}));
}

TEST_F(CalibratorTest, KnowsTheWeightsAmongLearnedRanges) {
  const RewriteOptions learned = {.weight_bits = 4, .ranges = RangeChoice::kLearned, .per_channel = true};
  Calibrated net(net_.graph, trained_, learned);
  net.run({.method = Method::kMinMax}, {images(1), images(0.5)});
  for (const auto& [name, range] : net.ranges) {
    EXPECT_EQ(range.is_weights, name.ends_with("weights_quant")) << name;
    EXPECT_EQ(range.attributes.range, RangeKind::kLearned);
  }
  Calibrated observed(net_.graph, trained_, {.weight_bits = 4, .symmetric_weights = true, .per_channel = true});
  observed.run({.method = Method::kMinMax}, {images(1), images(0.5)});
  ASSERT_EQ(observed.ranges.size(), net.ranges.size());
  for (const auto& [name, range] : net.ranges)
    for (std::size_t c = 0; c < range.set.size(); ++c) {
      EXPECT_EQ(range.set[c].min, observed.ranges.at(name).set[c].min) << name;
      EXPECT_EQ(range.set[c].max, observed.ranges.at(name).set[c].max) << name;
    }
  EXPECT_EQ(net.ranges.at("fc/weights_quant").set.size(), 3u) << "of a MatMul";
  EXPECT_EQ(net.ranges.at("conv/act_quant").set[0].min, 0);
}

TEST_F(CalibratorTest, LearnedRangesThatAreNoVariablesStayAsTheyAre) {
  BatchNormClassifier net;
  const Output low = layers::constant(net.graph, "low", {}, {-1}), high = layers::constant(net.graph, "high", {}, {2});
  const auto mine = FakeQuant::make({.range = RangeKind::kLearned, .is_training = false});
  net.graph.set_outputs({net.graph.add("mine", mine, {net.graph.outputs()[0], low, high}).output()});
  Calibrated calibrated(net.graph, trained_, {.ranges = RangeChoice::kLearned});
  calibrated.run({}, {images(1)});
  EXPECT_FALSE(calibrated.ranges.contains("mine"));
  EXPECT_TRUE(calibrated.ranges.contains("conv/act_quant"));
}

}  // namespace
}  // namespace miniqat::quantize::calibrate_test
