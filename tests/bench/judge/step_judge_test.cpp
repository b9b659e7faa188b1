// The judge of training steps: right ones pass, and each kind of mistake is found where it is.

#include "bench/judge/step_judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/engine/session.h"
#include "core/graph/op.h"
#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "models/models.h"
#include "quantize/quantize.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"
#include "tests/sanitized.h"

namespace miniqat::bench::step_judge_test {
namespace {

using testing::mentions;

/// y = 2 x, with a mistake of the fast backend.
class Double final : public Op {
 public:
  enum class Mistake { kNone, kForward, kBackward, kForgetsInput };
  explicit Double(Mistake mistake) : mistake_(mistake) {}
  std::string_view type() const override { return "Double"; }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override { return {inputs[0]}; }
  OpTraits traits() const override {
    OpTraits traits;
    traits.forward_in_place = true;
    return traits;
  }
  void forward(const ForwardContext& context) const override {
    scale(context.input(0), context.output(0));
    if (mistake_ == Mistake::kForward) context.output(0).data<float>()[1] *= 1.001f;
    // As a kernel does that writes past its buffer.
    if (mistake_ == Mistake::kForgetsInput && context.input(0).raw() != context.output(0).raw())
      const_cast<float*>(context.input(0).data<float>())[0] += 1;
  }
  void backward(const BackwardContext& context) const override {
    scale(*context.d_outputs[0], *context.d_inputs[0]);
    if (mistake_ == Mistake::kBackward) context.d_inputs[0]->data<float>()[2] = 0;
  }
  void reference_forward(const ForwardContext& context) const override { scale(context.input(0), context.output(0)); }
  void reference_backward(const BackwardContext& context) const override {
    scale(*context.d_outputs[0], *context.d_inputs[0]);
  }

 private:
  static void scale(const Tensor& x, Tensor& y) {
    with_float_type(x, [&]<class T>(T) {
      for (std::int64_t i = 0; i < x.elements(); ++i) y.data<T>()[i] = 2 * x.data<T>()[i];
    });
  }
  Mistake mistake_;
};

/// What is found in one step of sum((2 x)^2 + x) with that mistake.
std::vector<StepFinding> findings_of(Graph& graph, Double::Mistake mistake) {
  const Output x = layers::placeholder(graph, "x", {3, 5});
  const Output doubled = graph.add("doubled", std::make_unique<Double>(mistake), {x}).output();
  const Output loss = layers::add(graph, "loss", layers::square(graph, "squared", doubled), x);
  Tensor fed(x.shape());
  Random random(1);
  for (float& value : fed.values<float>()) value = random.uniform(1, 2);
  Session session(graph);
  StepJudge judge;
  session.set_observer(&judge);
  session.run({.fetches = {loss}, .gradients_of = loss, .gradient_targets = {x}, .training = true}, {{x, fed}});
  EXPECT_EQ(judge.steps, 6);
  EXPECT_GT(judge.compared, 0);
  return judge.findings;
}

TEST(StepJudge, RightStepsPass) {
  Graph graph;
  EXPECT_TRUE(findings_of(graph, Double::Mistake::kNone).empty());
}

TEST(StepJudge, NamesNodePlaceAndNumbersOfAWrongValue) {
  Graph graph;
  const auto findings = findings_of(graph, Double::Mistake::kForward);
  // What follows from the wrong value is right.
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(mentions(findings[0].text(), {"[Double \"doubled\"]", "output 0", "[0,1]", "should be"}))
      << findings[0].text();
}

TEST(StepJudge, FindsAWrongGradient) {
  Graph graph;
  const auto findings = findings_of(graph, Double::Mistake::kBackward);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(mentions(findings[0].text(), {"doubled", "the gradient of input 0 (x)", "is 0 at [0,2]"}))
      << findings[0].text();
}

TEST(StepJudge, FindsATensorThatIsOverwritten) {
  Graph graph;
  const auto findings = findings_of(graph, Double::Mistake::kForgetsInput);
  ASSERT_FALSE(findings.empty());
  EXPECT_TRUE(mentions(findings[0].text(), {"was overwritten", "[0,0]"})) << findings[0].text();
}

/// Probabilities near 1 keep a rounding in the gradient that no change of the logits makes (the differential fuzzer,
/// seed 13, ops, 620).
TEST(StepJudge, RoundingsOfProbabilitiesNearOneAreNoMistakes) {
  set_thread_count(1);
  Graph graph;
  const Output x = layers::placeholder(graph, "x", {1, 2});
  const Output weighting = layers::placeholder(graph, "weighting", {1, 2});
  const Output labels = layers::placeholder(graph, "labels", {1}, DType::kInt32);
  const Output softmax = layers::mul(graph, "product", layers::softmax(graph, "softmax", x), weighting);
  const Output entropy = layers::softmax_cross_entropy(graph, x, labels, "entropy");
  Tensor logits(x.shape()), weights(x.shape()), label(labels.shape(), DType::kInt32);
  Random random(1);
  for (int turn = 0; turn < 200; ++turn) {
    for (float& value : logits.values<float>()) value = random.uniform(-7, 7);
    for (float& value : weights.values<float>()) value = random.uniform(-1, 1);
    label.data<std::int32_t>()[0] = turn % 2;
    const Feeds feeds = {{x, logits}, {weighting, weights}, {labels, label}};
    for (const Output& loss : {softmax, entropy}) {
      Session session(graph);
      StepJudge judge;
      session.set_observer(&judge);
      session.run({.gradients_of = loss, .gradient_targets = {x}}, feeds);
      ASSERT_TRUE(judge.findings.empty()) << judge.findings.front().text();
    }
  }
}

/// The judge moves inputs by their roundings; a target of 1 may not become more, which the op would refuse.
TEST(StepJudge, TargetsStayProbabilities) {
  set_thread_count(1);
  Graph graph;
  const Output x = layers::placeholder(graph, "x", {2, 3}), t = layers::placeholder(graph, "t", {2, 3});
  const Output loss = layers::sigmoid_cross_entropy(graph, x, t);
  Tensor logits(x.shape()), targets(t.shape());
  Random random(1);
  for (int turn = 0; turn < 100; ++turn) {
    for (float& value : logits.values<float>()) value = random.uniform(-20, 20);
    for (float& value : targets.values<float>())
      value = turn % 2 == 0 ? static_cast<float>(random.below(2)) : random.uniform();
    Session session(graph);
    StepJudge judge;
    session.set_observer(&judge);
    session.run({.fetches = {loss}, .gradients_of = loss, .gradient_targets = {x}}, {{x, logits}, {t, targets}});
    ASSERT_TRUE(judge.findings.empty()) << judge.findings.front().text();
    ASSERT_GE(judge.steps, 1);
  }
}

/// Nor is what remains where the gradient of a batch norm over few rows cancels (seed 1302, graphs, 2407).
TEST(StepJudge, RoundingsOfABatchNormOverTwoRowsAreNoMistakes) {
  set_thread_count(1);
  Graph graph;
  const Output x = layers::placeholder(graph, "x", {2, 2});
  const Output weighting = layers::placeholder(graph, "weighting", {2, 2});
  const Output gamma = layers::variable(graph, "gamma", {2}, Initializer::constant(1));
  const Output beta = layers::variable(graph, "beta", {2});
  const Output mean = layers::variable(graph, "mean", {2}, {}, false);
  const Output variance = layers::variable(graph, "variance", {2}, Initializer::constant(1), false);
  const Output y = layers::batch_norm(graph, "norm", x, gamma, beta, mean, variance, {.epsilon = 0.01});
  const Output loss = layers::mul(graph, "loss", y, weighting);
  Tensor values(x.shape()), weights(x.shape());
  Random random(1);
  for (int turn = 0; turn < 200; ++turn) {
    for (float& value : values.values<float>()) value = random.uniform(-3, 3);
    for (float& value : weights.values<float>()) value = random.uniform(-1, 1);
    Session session(graph);
    StepJudge judge;
    session.set_observer(&judge);
    session.run({.gradients_of = loss, .gradient_targets = {x, gamma}, .training = true},
                {{x, values}, {weighting, weights}});
    ASSERT_TRUE(judge.findings.empty()) << judge.findings.front().text();
  }
}

/// A filter with a few large taps over pictures with a few large pixels: sums in which such cancel have roundings
/// relative to them, beside elements of the order of 1.
TEST(StepJudge, RoundingsOfMixedTapsAreNoMistakes) {
  for (const std::int64_t side : {8, 15}) {
    Graph graph;
    const Output x = layers::placeholder(graph, "x", {4, side, side, 32});
    const Output filter = layers::placeholder(graph, "filter", {3, 3, 32, 64});
    const Output loss = layers::square(graph, "loss", layers::conv2d(graph, "y", x, filter));
    Random random(1);
    const auto mostly_zero = [&](const Shape& shape) {
      Tensor tensor(shape);
      for (float& value : tensor.values<float>())
        value = random.uniform(0, 1) < 0.97 ? 0.0f : random.normal() * (random.uniform(0, 1) < 0.1 ? 1e6f : 1.0f);
      return tensor;
    };
    Session session(graph);
    StepJudge judge;
    session.set_observer(&judge);
    session.run({.fetches = {loss}, .gradients_of = loss, .gradient_targets = {x, filter}, .training = true},
                {{x, mostly_zero(x.shape())}, {filter, mostly_zero(filter.shape())}});
    ASSERT_TRUE(judge.findings.empty()) << judge.findings.front().text();
    EXPECT_GT(judge.compared, 0);
  }
}

/// The other end of a symmetric range is rounded, and with it the choice of a scale that is a power of two, where the
/// range lies at the end of an octave (seed 77, graphs, 637).
TEST(StepJudge, EitherPowerOfTwoIsRightAtTheEndOfAnOctave) {
  set_thread_count(1);
  quantize::register_ops();
  Graph graph;
  const Output x = layers::placeholder(graph, "x", {8});
  const Output y = quantize::fake_quant(
      graph, "quantizer", x,
      {.bits = 13, .symmetric = true, .power_of_two = true, .range = quantize::RangeKind::kLastValue});
  Tensor values(x.shape());
  Random random(1);
  for (int turn = 0; turn < 200; ++turn) {
    for (float& value : values.values<float>()) value = random.uniform(-1, 1);
    // Where 2^13 steps of 2^-12 span the range.
    values.values<float>()[0] = 8190.0F / 8191 * (1 + static_cast<float>(turn % 9 - 4) / (1 << 24));
    Session session(graph);
    StepJudge judge;
    session.set_observer(&judge);
    session.run({.gradients_of = y, .gradient_targets = {x}, .training = true}, {{x, values}});
    ASSERT_TRUE(judge.findings.empty()) << judge.findings.front().text();
  }
}

/// A model as `miniqat bench` trains it, with --bn-fold single.
struct DeepNet {
  DeepNet() {
    const Output images = layers::placeholder(graph, "images", {4, 32, 32, 3});
    const Output labels = layers::placeholder(graph, "labels", {4}, DType::kInt32);
    loss = layers::softmax_cross_entropy(graph, models::find_model("mobilenet_v2").build(graph, images, {}), labels);
    quantize::create_training_graph(graph, {.bn_fold = quantize::BnFold::kSingle});
    Tensor pixels(images.shape()), classes(labels.shape(), DType::kInt32);
    Random random(1);
    for (float& value : pixels.values<float>()) value = random.uniform(0, 1);
    for (std::int32_t i = 0; i < 4; ++i) classes.data<std::int32_t>()[i] = i;
    feeds = {{images, pixels}, {labels, classes}};
  }
  Graph graph;
  Output loss;
  Feeds feeds;
};

/// Why the judge compares step by step: the first loss of a deep quantized net that has not been trained depends on the
/// last bit of any weight as much as on a mistake. (docs/bench.md quotes what this prints.)
TEST(StepJudge, ALastBitMovesTheLossOfADeepNetAsFarAsAMistake) {
  set_thread_count(1);
  DeepNet net;
  std::vector<float> losses;
  for (const char* moved : {"", "conv0", "block4/depthwise", "block5/depthwise", "block13/expand"}) {
    Session session(net.graph);
    if (const std::string layer = moved; !layer.empty()) {
      // The weight that sets the range: others may be rounded back.
      Tensor weights = session.variable(layer + "/weights");
      float& weight = *std::ranges::max_element(weights.values<float>());
      weight = std::nextafter(weight, 2 * weight);
    }
    losses.push_back(*session.run({.fetches = {net.loss}, .training = true}, net.feeds).fetched.front().data<float>());
    std::printf("loss %.5f %s\n", losses.back(), moved);
  }
  const auto [least, most] = std::ranges::minmax_element(losses);
  EXPECT_GT(*most - *least, 0.01f * *least);
}

/// ... where each of its steps is right to the rounding.
TEST(StepJudge, EveryStepOfADeepNetIsRight) {
  if (testing::is_sanitized()) GTEST_SKIP() << "it takes a minute then";
  set_thread_count(2);
  DeepNet net;
  Session session(net.graph);
  StepJudge judge;
  session.set_observer(&judge);
  session.run({.fetches = {net.loss}, .training = true}, net.feeds);
  for (const StepFinding& finding : judge.findings) ADD_FAILURE() << finding.text();
  EXPECT_GT(judge.steps, 200);
  EXPECT_LT(judge.vague, judge.compared / 20);
  set_thread_count(1);
}

}  // namespace
}  // namespace miniqat::bench::step_judge_test
