// Statistics scale folded weights: the ranges of these follow estimate_statistics().

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/engine/session.h"
#include "layers/layers.h"
#include "quantize/quantize.h"
#include "tests/quantize/fold/folding_net.h"
#include "training/calibrate/batch_norm_statistics.h"

namespace miniqat::training::reestimated_ranges_test {
namespace {

using quantize::BnFold;
using quantize::RangeChoice;

constexpr double kEpsilon = 0.001;
const std::vector<std::string> kFolded = {"conv", "depthwise"};
const std::vector<std::string> kEnds = {"/weights_quant/min", "/weights_quant/max"};

/// Eight pictures of noise.
datasets::Dataset noise() {
  datasets::Dataset dataset{.name = "noise", .scale = 1.0f / 128};
  dataset.images = Tensor(Shape{8, 4, 4, 2}, DType::kUInt8);
  Random random(5);
  for (std::uint8_t& byte : dataset.images.values<std::uint8_t>())
    byte = static_cast<std::uint8_t>(256 * random.uniform());
  dataset.labels = Tensor(Shape{8}, DType::kInt32);
  return dataset;
}

/// A convolution and a depthwise one with batch norms, and a dense layer without: parameters of both signs, moving
/// statistics that are far from the truth, learned ranges narrower than the weights. `conv` has a gamma of 0 in channel
/// 1, `depthwise` no weight but 0 in channel 4.
class Net {
 public:
  explicit Net(const quantize::RewriteOptions& options) : options_(options) {
    Graph& graph = classifier_.graph;
    classifier_.images = layers::placeholder(graph, "images", {2, 4, 4, 2});
    Output y = layers::conv2d(graph, "conv/Conv2D", classifier_.images, weights("conv", {3, 3, 2, 3}));
    y = layers::relu(graph, "conv/Relu", norm("conv", y));
    y = layers::depthwise_conv2d(graph, "depthwise/Conv2D", y, weights("depthwise", {3, 3, 3, 2}));
    y = layers::relu(graph, "depthwise/Relu", norm("depthwise", y));
    const std::int64_t features = y.shape().elements() / 2;
    y = layers::reshape(graph, "flat", y, {.shape = {2, features}});
    graph.set_outputs({layers::matmul(graph, "dense/MatMul", y, weights("dense", {features, 5}))});
    quantize::create_training_graph(graph, options);
    classifier_.logits = graph.outputs().front();
    Session session(graph);
    testing::number_variables(graph, session);
    trained_ = session.checkpoint();
    trained_.tensors.at("conv/gamma").data<float>()[1] = 0;
    for (std::int64_t i = 4; i < 9 * 6; i += 6) trained_.tensors.at("depthwise/weights").data<float>()[i] = 0;
    for (const std::string& layer : kFolded) {
      for (float& variance : trained_.tensors.at(layer + "/variance").values<float>()) variance *= 5;
      narrow(layer);
    }
  }

  NamedTensors estimate() {
    RunObserver silent;
    return estimate_statistics({.training = classifier_, .checkpoint = trained_, .quantization_step = 1}, noise(),
                               {.batches = 3}, silent);
  }
  const NamedTensors& trained() const { return trained_.tensors; }
  NamedTensors with(const NamedTensors& others) const {
    Safetensors all = trained_;
    put_back(all, others);
    return all.tensors;
  }

  /// By the formulas of docs/rewrite.md; the channels are the innermost axis, or the innermost two.
  std::vector<double> folded_weights(const std::string& layer, const NamedTensors& tensors) const {
    const auto gammas = tensors.at(layer + "/gamma").values<float>();
    const auto variances = tensors.at(layer + "/variance").values<float>();
    const double floor = options_.bn_fold == BnFold::kSingle ? 0.001 : 0;
    std::vector<double> folded;
    for (const float weight : tensors.at(layer + "/weights").values<float>()) {
      const std::size_t c = folded.size() % gammas.size();
      const double gamma = std::abs(gammas[c]) < floor ? floor : gammas[c];
      folded.push_back(weight * gamma / std::sqrt(variances[c] + kEpsilon));
    }
    return folded;
  }

  /// Where `tensors` have the weights and `ranges` the ranges.
  std::vector<int> integers(const std::string& layer, const NamedTensors& tensors, const NamedTensors& ranges) const {
    const auto& quantizer = *classifier_.graph.at(layer + "/weights_quant").as<quantize::FakeQuant>();
    const auto mins = ranges.at(layer + kEnds[0]).values<float>(), maxs = ranges.at(layer + kEnds[1]).values<float>();
    std::vector<int> integers;
    for (const double weight : folded_weights(layer, tensors)) {
      const std::size_t c = integers.size() % mins.size();
      const Affine<double> grid =
          quantize::grid_of(quantize::Range<double>{mins[c], maxs[c]}, quantizer.grid_options());
      EXPECT_FALSE(grid.empty()) << layer << " " << c;
      integers.push_back(static_cast<int>(
          std::clamp(std::round(weight / grid.scale + grid.zero_point), grid.quant_min, grid.quant_max)));
    }
    return integers;
  }

 private:
  Output weights(const std::string& layer, const Shape& shape) {
    return layers::variable(classifier_.graph, layer + "/weights", shape, Initializer::constant(0));
  }
  Output norm(const std::string& layer, Output x) {
    const auto vector = [&](const char* name, bool trainable) {
      return layers::variable(classifier_.graph, layer + name, {x.shape().channels()}, Initializer::constant(1),
                              trainable);
    };
    return layers::batch_norm(classifier_.graph, layer + "/BatchNorm", x, vector("/gamma", true), vector("/beta", true),
                              vector("/mean", false), vector("/variance", false), {.epsilon = kEpsilon});
  }
  /// The longer end at 0.8 of the largest weight; a channel without weights keeps what it has.
  void narrow(const std::string& layer) {
    const auto mins = trained_.tensors.at(layer + kEnds[0]).values<float>();
    const auto maxs = trained_.tensors.at(layer + kEnds[1]).values<float>();
    std::vector<double> largest(mins.size());
    const std::vector<double> folded = folded_weights(layer, trained_.tensors);
    for (std::size_t i = 0; i < folded.size(); ++i)
      largest[i % mins.size()] = std::max(largest[i % mins.size()], std::abs(folded[i]));
    for (std::size_t c = 0; c < mins.size(); ++c) {
      if (largest[c] == 0) continue;
      maxs[c] = static_cast<float>(0.8 * largest[c]);
      mins[c] = options_.asymmetric_weights ? -0.5f * maxs[c] : -maxs[c];
    }
  }

  const quantize::RewriteOptions options_;
  Classifier classifier_;
  Safetensors trained_;
};

quantize::RewriteOptions learned(BnFold fold, bool per_channel) {
  return {.weight_bits = 4, .ranges = RangeChoice::kAuto, .per_channel = per_channel, .bn_fold = fold};
}

int differences(const std::vector<int>& a, const std::vector<int>& b) {
  int count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
  return count;
}

TEST(ReestimatedRanges, LearnedForEachChannelLeaveTheIntegersOfFoldedWeights) {
  for (const BnFold fold : {BnFold::kTf, BnFold::kSingle})
    for (const bool asymmetric : {false, true}) {
      SCOPED_TRACE(static_cast<int>(fold) + 10 * asymmetric);
      quantize::RewriteOptions options = learned(fold, true);
      options.asymmetric_weights = asymmetric;
      Net net(options);
      const NamedTensors after = net.with(net.estimate());
      for (const std::string& layer : kFolded) {
        const std::vector<int> integers = net.integers(layer, net.trained(), net.trained());
        EXPECT_EQ(net.integers(layer, after, after), integers) << layer;
        EXPECT_GT(differences(net.integers(layer, after, net.trained()), integers), 5) << layer << " in old ranges";
      }
    }
}

TEST(ReestimatedRanges, LearnedStayWhereNoWeightIsOtherThanZero) {
  Net net(learned(BnFold::kTf, true));
  const NamedTensors after = net.with(net.estimate());
  for (const std::string& end : kEnds) {
    const auto of = [&](const NamedTensors& tensors, const std::string& layer, int channel) {
      return tensors.at(layer + end).values<float>()[channel];
    };
    EXPECT_NE(after.at("conv/variance").values<float>()[1], net.trained().at("conv/variance").values<float>()[1]);
    EXPECT_EQ(of(after, "conv", 1), of(net.trained(), "conv", 1)) << "gamma of 0";
    EXPECT_EQ(of(after, "depthwise", 4), of(net.trained(), "depthwise", 4)) << "weights of 0";
    EXPECT_NE(of(after, "conv", 0), of(net.trained(), "conv", 0));
  }
}

// Neither end of a range nor the weights in it move otherwise than by powers of two: all integers stay.
TEST(ReestimatedRanges, WhoseScalesArePowersOfTwoMoveByPowersOfTwo) {
  for (const BnFold fold : {BnFold::kTf, BnFold::kSingle}) {
    SCOPED_TRACE(static_cast<int>(fold));
    quantize::RewriteOptions options = learned(fold, true);
    options.scales = quantize::ScaleChoice::kPowerOfTwo;
    Net net(options);
    const NamedTensors after = net.with(net.estimate());
    std::set<double> moves;
    for (const std::string& layer : kFolded) {
      EXPECT_EQ(net.integers(layer, after, after), net.integers(layer, net.trained(), net.trained())) << layer;
      const auto of = [&](const NamedTensors& tensors, const std::string& name) {
        return tensors.at(layer + name).values<float>();
      };
      EXPECT_FALSE(std::ranges::equal(of(after, "/mean"), of(net.trained(), "/mean"))) << layer;
      for (std::size_t c = 0; c < of(after, "/variance").size(); ++c) {
        const double growth =
            std::sqrt((of(net.trained(), "/variance")[c] + kEpsilon) / (of(after, "/variance")[c] + kEpsilon));
        const double move = of(after, kEnds[1])[c] / of(net.trained(), kEnds[1])[c];
        EXPECT_EQ(move, std::exp2(std::round(std::log2(move)))) << layer << c;
        EXPECT_EQ(of(after, kEnds[0])[c], of(net.trained(), kEnds[0])[c] * move) << layer << c;
        EXPECT_NEAR(growth, move, 1e-4 * move) << layer << c;
        moves.insert(move);
      }
    }
    EXPECT_GT(*moves.rbegin(), 1) << "the estimate is far below the moving variance";
  }
}

TEST(ReestimatedRanges, OneThatIsLearnedForAllChannelsGrowsAsTheWeightsTogether) {
  for (const BnFold fold : {BnFold::kTf, BnFold::kSingle}) {
    SCOPED_TRACE(static_cast<int>(fold));
    Net net(learned(fold, false));
    const NamedTensors after = net.with(net.estimate());
    for (const std::string& layer : kFolded) {
      const auto squares = [&](const NamedTensors& tensors) {
        double sum = 0;
        for (const double weight : net.folded_weights(layer, tensors)) sum += weight * weight;
        return sum;
      };
      const double growth = std::sqrt(squares(after) / squares(net.trained()));
      EXPECT_GT(std::abs(growth - 1), 0.05);
      for (const std::string& end : kEnds) {
        const float former = *net.trained().at(layer + end).data<float>();
        EXPECT_NEAR(*after.at(layer + end).data<float>() / former, growth, 1e-5 * growth) << layer << end;
      }
    }
  }
}

std::set<std::string> names_of(const NamedTensors& tensors) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) names.insert(name);
  return names;
}

// The weights of the dense layer have a learned range as well, activations observed ones (8 bits).
TEST(ReestimatedRanges, AreThoseOfFoldedWeightsOnly) {
  std::set<std::string> statistics, ranges;
  for (const std::string& layer : kFolded) {
    statistics.insert({layer + "/mean", layer + "/variance"});
    for (const std::string& end : kEnds) ranges.insert(layer + end);
  }
  ranges.insert(statistics.begin(), statistics.end());
  EXPECT_EQ(names_of(Net(learned(BnFold::kTf, true)).estimate()), ranges);
  EXPECT_EQ(names_of(Net(learned(BnFold::kSingle, false)).estimate()), ranges);
  EXPECT_EQ(names_of(Net(learned(BnFold::kLate, true)).estimate()), statistics);
}

}  // namespace
}  // namespace miniqat::training::reestimated_ranges_test
