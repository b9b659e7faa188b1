#include "quantize/calibrate/equalize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "layers/layers.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"

namespace miniqat::quantize::equalize_test {
namespace {

using testing::error_of;
using testing::mentions;
using Values = std::vector<float>;

Values values_of(Session& session, const std::string& name) {
  const auto values = session.variable(name).values<float>();
  return {values.begin(), values.end()};
}

/// Two convolutions of one pixel with two channels in between: conv1 1 -> 2, an activation, conv2 2 -> 1.
struct TwoLayers {
  enum class Between { kRelu, kRelu6, kNothing };

  explicit TwoLayers(Between between = Between::kRelu) {
    images = layers::placeholder(graph, "images", {2, 1, 1, 1});
    Output x = conv("conv1", images, 2);
    if (between == Between::kRelu) x = layers::relu(graph, "conv1/Relu", x);
    if (between == Between::kRelu6) x = layers::relu6(graph, "conv1/Relu6", x);
    logits = conv("conv2", x, 1);
    graph.set_outputs({logits});
    session = std::make_unique<Session>(graph);
    // Ranges 4 and 0.25 before 1 and 1.
    set("conv1/weights", {4, -0.25f});
    set("conv2/weights", {-1, 1});
    set("conv1/biases", {0, 0.5f});
  }

  Output conv(const std::string& scope, Output x, std::int64_t channels) {
    const Output weights = layers::variable(graph, scope + "/weights", {1, 1, x.shape().channels(), channels});
    const Output biases = layers::variable(graph, scope + "/biases", {channels}, Initializer::constant(0));
    return layers::bias_add(graph, scope + "/BiasAdd", layers::conv2d(graph, scope + "/Conv2D", x, weights), biases);
  }
  void set(const std::string& name, const Values& values) {
    session->set_variable(name, Tensor::from(session->variable(name).shape(), values));
  }
  Equalization equalize(const Values& pixels) {
    Equalizer equalizer(*session);
    equalizer.observe({{images, Tensor::from({2, 1, 1, 1}, pixels)}});
    return equalizer.finish();
  }

  Graph graph;
  Output images;
  Output logits;
  std::unique_ptr<Session> session;
};

TEST(Equalizer, MovesScalesToTheNextLayer) {
  TwoLayers net;
  // Channel 0 reaches 4 and channel 1 reaches 0.75.
  const Equalization result = net.equalize({1, -1});
  ASSERT_EQ(result.pairs.size(), 1u);
  EXPECT_EQ(result.pairs[0].first, "conv1/Conv2D");
  EXPECT_EQ(result.pairs[0].second, "conv2/Conv2D");
  // sqrt(4 * 1) / 1 and sqrt(0.25 * 1) / 1.
  EXPECT_EQ(result.pairs[0].scales, (std::vector<double>{2, 0.5}));
  EXPECT_EQ(result.pairs[0].limited, 0);
  EXPECT_EQ(values_of(*net.session, "conv1/weights"), (Values{2, -0.5f}));
  EXPECT_EQ(values_of(*net.session, "conv1/biases"), (Values{0, 1}));
  EXPECT_EQ(values_of(*net.session, "conv2/weights"), (Values{-2, 0.5f}));
  EXPECT_EQ(values_of(*net.session, "conv2/biases"), (Values{0}));
  ASSERT_EQ(result.left_out.size(), 1u);
  EXPECT_EQ(result.left_out[0].layer, "conv2/Conv2D");
  EXPECT_TRUE(mentions(result.left_out[0].reason, {"conv2/BiasAdd", "output of the graph"}));
}

TEST(Equalizer, ChangesNothingMoreTheSecondTime) {
  TwoLayers net;
  net.equalize({1, -1});
  EXPECT_EQ(net.equalize({1, -1}).pairs[0].scales, (std::vector<double>{1, 1}));
}

TEST(Equalizer, KeepsTheRangeOfTheActivation) {
  TwoLayers net;
  net.set("conv1/biases", {0, 3});
  // Channel 1 reaches 3.25 of 4: half of 3.25 / 4 would widen the range.
  const Equalization result = net.equalize({1, -1});
  EXPECT_EQ(result.pairs[0].scales, (std::vector<double>{2, 3.25 / 4}));
  EXPECT_EQ(result.pairs[0].limited, 1);
}

TEST(Equalizer, ScalesOnlyChannelsThatStayBelowSixBeforeARelu6) {
  TwoLayers net(TwoLayers::Between::kRelu6);
  // Channel 0 reaches 8; channel 1 reaches 1 of 6.
  const Equalization result = net.equalize({2, -2});
  EXPECT_EQ(result.pairs[0].scales, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(result.pairs[0].clipped, 1);
  // And with nothing above 6 both.
  TwoLayers small(TwoLayers::Between::kRelu6);
  EXPECT_EQ(small.equalize({1, -1}).pairs[0].scales, (std::vector<double>{2, 0.5}));
}

TEST(Equalizer, TakesMagnitudesWithoutAnActivation) {
  TwoLayers net(TwoLayers::Between::kNothing);
  net.set("conv1/biases", {0, -3});
  // Channel 1 reaches -3.25 of 4.
  EXPECT_EQ(net.equalize({1, -1}).pairs[0].scales, (std::vector<double>{2, 3.25 / 4}));
}

TEST(Equalizer, KeepsChannelsOfZeros) {
  for (const char* zeros : {"conv1/weights", "conv2/weights"}) {
    TwoLayers net;
    const Values before = values_of(*net.session, zeros);
    net.set(zeros, {before[0], 0});
    const Equalization result = net.equalize({1, -1});
    EXPECT_EQ(result.pairs[0].scales, (std::vector<double>{2, 1})) << zeros;
    EXPECT_EQ(result.pairs[0].empty, 1) << zeros;
    EXPECT_NE(result.text().find(", 1 kept because their weights are 0\n"), std::string::npos) << result.text();
  }
}

TEST(Equalizer, RefusesWhatIsNotANumber) {
  TwoLayers net;
  EXPECT_TRUE(mentions(error_of([&] { Equalizer(*net.session).finish(); }), {"no batch"}));
  EXPECT_TRUE(mentions(error_of([&] { net.set("conv1/weights", {4, NAN}); }), {"conv1/weights", "finite"}));
  const std::string text = error_of([&] { net.equalize({NAN, 1}); });
  EXPECT_TRUE(mentions(text, {"conv1/", "not finite"})) << text;
}

TEST(Equalizer, SavesWhatOneLargeChannelTakes) {
  // Channel 0 has weights a thousand times larger than channel 1, and the second layer makes up for it.
  const auto noise = [](bool equalized) {
    TwoLayers net;
    net.set("conv1/weights", {1, 0.001f});
    net.set("conv1/biases", {0, 0});
    net.set("conv2/weights", {0.001f, 1});
    const Tensor pixels = Tensor::from({2, 1, 1, 1}, Values{1, 0.7f});
    const auto run = [&](Session& session) {
      return session
          .run({.fetches = {session.graph().outputs().front()}}, {{session.graph().output_at("images"), pixels}})
          .fetched[0];
    };
    const Tensor in_float = run(*net.session);
    if (equalized) {
      Equalizer equalizer(*net.session);
      equalizer.observe({{net.images, pixels}});
      equalizer.finish();
    }
    Graph graph = net.graph.clone();
    create_eval_graph(graph, {});
    Session session(graph);
    session.restore(net.session->checkpoint(), Session::Restore::kByName, "the net");
    Calibrator calibrator(session, {.method = CalibrationMethod::kMinMax});
    calibrator.observe({{graph.output_at("images"), pixels}});
    calibrator.finish();
    const Tensor quantized = run(session);
    double error = 0, signal = 0;
    for (int i = 0; i < 2; ++i) {
      const double expected = in_float.data<float>()[i];
      error += std::pow(quantized.data<float>()[i] - expected, 2);
      signal += expected * expected;
    }
    return error / signal;
  };
  EXPECT_GT(noise(false), 0.2);
  EXPECT_LT(noise(true), 1e-4);
}

}  // namespace
}  // namespace miniqat::quantize::equalize_test
