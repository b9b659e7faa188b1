#include "training/calibrate/batch_norm_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/engine/session.h"
#include "layers/layers.h"
#include "quantize/quantize.h"
#include "tests/errors.h"

namespace miniqat::training::batch_norm_statistics_test {
namespace {

using testing::error_of;
using testing::mentions;

TEST(PooledStatistics, AreThoseOfAllValues) {
  // 1, 3 and 5, 5, 8: mean 22 / 5; squares of the distances 11.56 + 1.96 + 0.36 + 0.36 + 12.96 = 27.2.
  PooledStatistics pooled;
  pooled.add(2, std::vector{2.0f}, std::vector{1.0f});
  pooled.add(3, std::vector{6.0f}, std::vector{2.0f});
  EXPECT_FLOAT_EQ(*pooled.mean().data<float>(), 4.4f);
  EXPECT_FLOAT_EQ(*pooled.variance().data<float>(), 27.2f / 4);
}

TEST(PooledStatistics, OfEqualBatchesAreMeansAndTheVarianceOfTheMeans) {
  PooledStatistics pooled;
  pooled.add(100, std::vector{1.0f, 1e6f}, std::vector{4.0f, 1.0f});
  pooled.add(100, std::vector{3.0f, 1e6f + 2}, std::vector{6.0f, 1.0f});
  EXPECT_EQ(pooled.mean().values<float>()[0], 2);
  EXPECT_EQ(pooled.mean().values<float>()[1], 1e6f + 1);
  EXPECT_FLOAT_EQ(pooled.variance().values<float>()[0], (5 + 1) * 200.0f / 199);
  EXPECT_FLOAT_EQ(pooled.variance().values<float>()[1], (1 + 1) * 200.0f / 199) << "no digits lost far from 0";
}

TEST(PooledStatistics, OfOneValueHaveNoVariance) {
  PooledStatistics pooled;
  pooled.add(1, std::vector{7.0f}, std::vector{0.0f});
  EXPECT_EQ(*pooled.variance().data<float>(), 0);
}

/// Pictures of 1x2 whose bytes are their values; two to a batch.
datasets::Dataset pictures(const std::vector<std::uint8_t>& bytes) {
  datasets::Dataset dataset{.name = "bytes", .scale = 1};
  const auto count = static_cast<std::int64_t>(bytes.size()) / 2;
  dataset.images = Tensor::from<std::uint8_t>({count, 1, 2, 1}, bytes);
  dataset.labels = Tensor(Shape{count}, DType::kInt32);
  return dataset;
}

/// A batch norm, or more, right behind the pictures.
struct Net {
  Net() { classifier.images = layers::placeholder(classifier.graph, "images", {2, 1, 2, 1}); }
  Output vector(const std::string& name, double value) {
    return layers::variable(classifier.graph, name, {1}, Initializer::constant(value), false);
  }
  Node& norm(const std::string& name, Output x, const layers::BatchNormAttributes& attributes = {}) {
    if (!mean.node) mean = vector("mean", 5), variance = vector("variance", 7);
    return *layers::batch_norm(classifier.graph, name, x, vector(name + "/gamma", 1), vector(name + "/beta", 0), mean,
                               variance, attributes)
                .node;
  }
  NamedTensors estimate(const datasets::Dataset& train, std::int64_t batches, RunObserver& observer) {
    const Safetensors checkpoint = Session(classifier.graph).checkpoint();
    return estimate_statistics({.training = classifier, .checkpoint = checkpoint, .quantization_step = 3}, train,
                               {.batches = batches}, observer);
  }
  NamedTensors estimate(const datasets::Dataset& train, std::int64_t batches) {
    RunObserver silent;
    return estimate(train, batches, silent);
  }

  Classifier classifier;
  Output mean, variance;
};

float value(const NamedTensors& tensors, const std::string& name) { return *tensors.at(name).data<float>(); }

struct Listener : RunObserver {
  void on_batch(std::int64_t done, std::int64_t total) override {
    batches = done;
    EXPECT_EQ(total, 3);
  }
  bool wants_to_stop() override { return batches == last; }
  std::int64_t batches = 0;
  std::int64_t last = -1;
};

TEST(BatchNormStatistics, AreThoseOfThePicturesThatTheBatchesHold) {
  Net net;
  net.norm("norm", net.classifier.images);
  Listener listener;
  // In whatever order: 0, 1, ..., 11 have mean 5.5 and variance 143 / 11.
  const NamedTensors all = net.estimate(pictures({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), 50, listener);
  EXPECT_EQ(listener.batches, 3) << "one pass";
  EXPECT_EQ(all.size(), 2u);
  EXPECT_FLOAT_EQ(value(all, "mean"), 5.5f);
  EXPECT_FLOAT_EQ(value(all, "variance"), 13);
  // One batch of equal pictures: 2, 8, 2, 8.
  const NamedTensors one = net.estimate(pictures({2, 8, 2, 8, 2, 8}), 1);
  EXPECT_FLOAT_EQ(value(one, "mean"), 5);
  EXPECT_FLOAT_EQ(value(one, "variance"), 12);
}

// Of weights that all round to 0 another variance would make others that do not.
TEST(BatchNormStatistics, AreThoseOfAugmentedPicturesIfAsked) {
  Net net;
  net.classifier.images = layers::placeholder(net.classifier.graph, "square", {2, 2, 2, 1});
  net.norm("norm", net.classifier.images);
  const Safetensors checkpoint = Session(net.classifier.graph).checkpoint();
  const TrainedNetwork network{.training = net.classifier, .checkpoint = checkpoint, .quantization_step = 3};
  datasets::Dataset train = pictures(std::vector<std::uint8_t>(128, 200));
  train.images = train.images.reshaped({32, 2, 2, 1});
  train.labels = Tensor(Shape{32}, DType::kInt32);
  RunObserver silent;
  const auto mean = [&](const datasets::AugmentOptions& augment) {
    return value(estimate_statistics(network, train, {.batches = 16, .augment = augment}, silent), "mean");
  };
  EXPECT_EQ(mean({}), 200);
  // A crop shows two thirds of the rows and of the columns, on average.
  EXPECT_NEAR(mean({.pad = 1}), 200 * 4 / 9.0, 20);
}

TEST(BatchNormStatistics, OfAConstantChannelKeepTheirVariance) {
  Net net;
  net.norm("norm", net.classifier.images, {.epsilon = 300});
  const NamedTensors constant = net.estimate(pictures({6, 6, 6, 6}), 1);
  EXPECT_FLOAT_EQ(value(constant, "mean"), 6);
  EXPECT_EQ(value(constant, "variance"), 7);
  // 1/3, beside 300 / 1000.
  EXPECT_FLOAT_EQ(value(net.estimate(pictures({6, 7, 6, 7}), 1), "variance"), 1.0f / 3);
}

TEST(BatchNormStatistics, StopWhereSomebodyWantsIt) {
  Net net;
  net.norm("norm", net.classifier.images);
  Listener listener;
  listener.last = 2;
  EXPECT_THROW(net.estimate(pictures({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), 50, listener), Stopped);
}

TEST(BatchNormStatistics, RefuseWhatOverflows) {
  Net net;
  const Output x = net.classifier.images;
  net.norm("norm", layers::mul(net.classifier.graph, "huge", x, net.vector("factor", 3e38)));
  const std::string error = error_of([&] { net.estimate(pictures({9, 9, 9, 9}), 1); });
  EXPECT_TRUE(mentions(error, {"overflows on some examples", "\"mean\" became"})) << error;
  EXPECT_THROW(net.estimate(pictures({9, 9, 9, 9}), 1), NonFiniteValue);
}

TEST(BatchNormStatistics, AreEstimatedWhereATrainingStepUpdatesThem) {
  Net net;
  Node& norm = net.norm("norm", net.classifier.images, {.freeze_delay = 10});
  const Graph& graph = net.classifier.graph;
  EXPECT_EQ(updating_batch_norms(graph, 9), std::vector<Node*>{&norm});
  EXPECT_EQ(why_none_updates(graph, 9), "");
  EXPECT_EQ(updating_batch_norms(graph, 10), std::vector<Node*>{});
  EXPECT_TRUE(mentions(why_none_updates(graph, 10), {"frozen its batch norms at step 10", "--freeze-bn-delay"}));
  EXPECT_EQ(why_none_updates(Graph(), 0), "has no batch norm");
  Net fixed;
  fixed.norm("norm", fixed.classifier.images, {.is_training = false});
  EXPECT_TRUE(mentions(why_none_updates(fixed.classifier.graph, 0), {"keep their moving statistics in training"}));
  EXPECT_TRUE(mentions(error_of([&] { fixed.estimate(pictures({1, 2, 3, 4}), 1); }), {"the network has only batch"}));
}

/// Two quantized layers whose moving statistics are far from the truth, and learn fast.
Classifier quantized_net(quantize::BnFold fold) {
  Classifier net;
  Graph& graph = net.graph;
  net.images = layers::placeholder(graph, "images", {2, 1, 2, 1});
  Output y = net.images;
  for (const std::string layer : {"a", "b"}) {
    const std::int64_t in = y.shape().channels();
    y = layers::conv2d(graph, layer + "/Conv2D", y,
                       layers::variable(graph, layer + "/weights", {1, 1, in, 3}, Initializer::he_normal()));
    const auto vector = [&](const char* name, double value) {
      return layers::variable(graph, layer + name, {3}, Initializer::constant(value), false);
    };
    y = layers::batch_norm(graph, layer + "/BatchNorm", y, vector("/gamma", 1), vector("/beta", 0.5), vector("/mm", 1),
                           vector("/mv", 3), {.decay = 0.5});
    y = layers::relu(graph, layer + "/Relu", y);
  }
  graph.set_outputs({layers::reshape(graph, "logits", y, {.shape = {2, 6}})});
  quantize::create_training_graph(graph, {.weight_bits = 3, .activation_bits = 3, .bn_fold = fold, .ema_decay = 0.5});
  net.logits = graph.outputs().front();
  return net;
}

TEST(BatchNormStatistics, EveryBatchMeetsTheNetworkOfTheCheckpoint) {
  for (const quantize::BnFold fold : {quantize::BnFold::kTf, quantize::BnFold::kSingle}) {
    SCOPED_TRACE(static_cast<int>(fold));
    Classifier net = quantized_net(fold);
    const Safetensors checkpoint = Session(net.graph).checkpoint();
    const TrainedNetwork network{.training = net, .checkpoint = checkpoint, .quantization_step = 1};
    // Equal pictures: so are all batches.
    const datasets::Dataset train = pictures({3, 200, 3, 200, 3, 200, 3, 200, 3, 200, 3, 200, 3, 200, 3, 200});
    RunObserver silent;
    const NamedTensors one = estimate_statistics(network, train, {.batches = 1}, silent);
    const NamedTensors four = estimate_statistics(network, train, {.batches = 4}, silent);
    ASSERT_EQ(one.size(), 8u) << "and two ranges";
    int varying = 0;
    for (const std::string name : {"a/mm", "a/mv", "b/mm", "b/mv"}) {
      const Tensor& tensor = one.at(name);
      for (int c = 0; c < 3; ++c) {
        // 4 values a channel in one batch, 16 in four: the unbiased variances differ by their divisors.
        const bool kept = name.ends_with("mv") && tensor.values<float>()[c] == 3;
        varying += name.ends_with("mv") && !kept;
        const double factor = name.ends_with("mv") && !kept ? (16.0 / 15) / (4.0 / 3) : 1;
        EXPECT_FLOAT_EQ(four.at(name).values<float>()[c], tensor.values<float>()[c] * factor) << name;
      }
    }
    EXPECT_GE(varying, 4);
    // The batch norm has seen what a training step takes in.
    Session session(net.graph);
    session.run({.fetches = {net.logits}, .training = true},
                {{net.images, Tensor::from<float>({2, 1, 2, 1}, std::vector{3.0f, 200.0f, 3.0f, 200.0f})}});
    for (const std::string name : {"a/mm", "a/mv", "b/mm", "b/mv"})
      for (int c = 0; c < 3; ++c) {
        const float initial = name.ends_with("mv") ? 3 : 1, seen = one.at(name).values<float>()[c];
        if (seen == initial) continue;
        EXPECT_NEAR(session.variable(name).values<float>()[c], (initial + seen) / 2, 1e-3) << name;
      }
    // The weights are scaled with the new variance, and lie between the bounds that they have then.
    float least = 0, most = 0;
    for (int c = 0; c < 3; ++c) {
      const float weight = checkpoint.tensors.at("a/weights").values<float>()[c];
      const float scaled = weight / std::sqrt(one.at("a/mv").values<float>()[c] + 0.001f);
      least = std::min(least, scaled);
      most = std::max(most, scaled);
    }
    EXPECT_NEAR(value(one, "a/weights_quant/min"), least, 1e-5 * std::abs(least));
    EXPECT_NEAR(value(one, "a/weights_quant/max"), most, 1e-5 * std::abs(most));
  }
}

TEST(BatchNormStatistics, ACheckpointKeepsWhatTheyReplace) {
  Safetensors checkpoint;
  checkpoint.tensors.emplace("mean", Tensor::from<float>({1}, std::vector{1.0f}));
  checkpoint.tensors.emplace("weights", Tensor::from<float>({1}, std::vector{2.0f}));
  EXPECT_TRUE(take_trained(checkpoint).empty());
  put_estimated(checkpoint, {{"mean", Tensor::from<float>({1}, std::vector{3.0f})}});
  EXPECT_EQ(checkpoint.tensors.size(), 3u);
  EXPECT_EQ(value(checkpoint.tensors, "mean"), 3);
  EXPECT_EQ(value(checkpoint.tensors, "trained:mean"), 1);
  const NamedTensors trained = take_trained(checkpoint);
  EXPECT_EQ(checkpoint.tensors.size(), 2u);
  put_back(checkpoint, trained);
  EXPECT_EQ(value(checkpoint.tensors, "mean"), 1);
  EXPECT_EQ(value(checkpoint.tensors, "weights"), 2);
}

}  // namespace
}  // namespace miniqat::training::batch_norm_statistics_test
