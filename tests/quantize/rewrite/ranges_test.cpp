// RewriteOptions::ranges and ::scales: which quantizers get which kind, and what follows.
#include <map>

#include "core/engine/session.h"
#include "core/graph/graph_json.h"
#include "core/text/json.h"
#include "optim/sgd.h"
#include "quantize/quantizers.h"
#include "tests/errors.h"
#include "tests/quantize/rewrite/rewrite_case.h"

namespace miniqat::quantize::ranges_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::Names;
using testing::RewriteCase;
using testing::SecondRewrite;
using testing::ToyGraph;

constexpr auto kLearn = RangeChoice::kLearned;
constexpr auto kAuto = RangeChoice::kAuto;
constexpr auto kObserved = RangeChoice::kObserved;
constexpr auto kAllValues = RangeChoice::kAllValues;
const RewriteOptions kPowers = {.scales = ScaleChoice::kPowerOfTwo};

/// Relu, a Sigmoid with its known range, a pool and a dense end.
const std::string kNet =
    "images | conv_relu conv1 | conv_bias conv2 | Sigmoid conv2/Sigmoid | AvgPool pool | Reshape flat 1 8 |"
    "dense fc 3 | bias fc | output";

/// All quantizers of kNet, whose weights and activations are like that, but for those in `others`.
Names net(std::string weights, std::string activations, std::map<std::string, std::string> others = {}) {
  for (std::string* words : {&weights, &activations})
    if (!words->ends_with("symmetric")) *words += " asymmetric";
  others.emplace("conv2/Sigmoid/activation_Sigmoid_quant", "fixed asymmetric");
  Names lines;
  for (const std::string name :
       {"conv1/weights_quant", "conv1/act_quant", "conv2/weights_quant", "conv2/act_quant", "fc/weights_quant",
        "fc/act_quant", "conv2/Sigmoid/activation_Sigmoid_quant", "pool/activation_AvgPool_quant"}) {
    const auto other = others.find(name);
    const std::string& usual = name.ends_with("weights_quant") ? weights : activations;
    lines.push_back(name + ": " + (other == others.end() ? usual : other->second));
  }
  return lines;
}

const std::vector<RewriteCase> kKinds = {
    {"Observed", kNet, {}, net("last_value any_scale", "moving_average any_scale")},
    {"ObservedOfFewBits", kNet, {.weight_bits = 2, .activation_bits = 2}, net("last_value", "moving_average")},
    {"Learned",
     kNet,
     {.ranges = kLearn},
     net("from=-6 to=6 learned symmetric", "learned", {{"conv1/act_quant", "learned asymmetric from=0 to=6"}})},
    {"AutoOf8Bits", kNet, {.ranges = kAuto}, net("last_value", "moving_average")},
    {"ByTaskOf8Bits", kNet, {.ranges = RangeChoice::kByTask}, net("last_value", "all_values")},
    {"AutoOfFewBitsOfWeights",
     kNet,
     {.weight_bits = 4, .activation_bits = 5, .ranges = kAuto},
     net("learned symmetric", "moving_average")},
    // The logits have 8 bits where others are learned.
    {"AutoOfFewBitsOfActivations",
     kNet,
     {.weight_bits = 5, .activation_bits = 4, .ranges = kAuto},
     net("last_value", "learned", {{"fc/act_quant", "moving_average"}})},
    {"AutoOfFewBits",
     kNet,
     {.weight_bits = 2, .activation_bits = 2, .ranges = kAuto},
     net("learned symmetric", "learned", {{"fc/act_quant", "moving_average"}})},
    {"AsymmetricWeights", kNet, {.ranges = kLearn, .asymmetric_weights = true}, net("learned", "learned")},
    {"SymmetricWeightsInSpiteOfThat",
     kNet,
     {.symmetric_weights = true, .ranges = kLearn, .asymmetric_weights = true},
     net("learned symmetric", "learned")},
    {"Symmetric",
     kNet,
     {.symmetric = true, .ranges = kLearn},
     net("learned symmetric", "learned symmetric", {{"conv2/Sigmoid/activation_Sigmoid_quant", "fixed symmetric"}})},
    {"ObservedWeightsAreAsymmetricAnyway", kNet, {.asymmetric_weights = true}, net("last_value", "moving_average")},
    {"ALayerLearns",
     kNet,
     {.layer_bits = {{.pattern = "conv1", .ranges = kLearn}}},
     net("last_value", "moving_average",
         {{"conv1/weights_quant", "learned symmetric"}, {"conv1/act_quant", "learned asymmetric"}}),
     {"conv1/Conv2D: matched: layer + bias + Relu: weights conv1/weights -> conv1/weights_quant (symmetric, learned "
      "range), output conv1/Relu -> conv1/act_quant (learned range)"}},
    {"ALayerLearnsAsymmetrically",
     kNet,
     {.layer_bits = {{.pattern = "conv1", .symmetric_weights = false, .ranges = kLearn}}},
     net("last_value", "moving_average",
         {{"conv1/weights_quant", "learned asymmetric"}, {"conv1/act_quant", "learned asymmetric"}})},
    {"ALayerIsObserved",
     kNet,
     {.ranges = kLearn, .layer_bits = {{.pattern = "fc", .ranges = kObserved}}},
     net("learned symmetric", "learned",
         {{"fc/weights_quant", "last_value asymmetric"}, {"fc/act_quant", "moving_average asymmetric"}}),
     {"fc/MatMul: matched: layer + bias: weights fc/weights -> fc/weights_quant (asymmetric, last value), output "
      "fc/BiasAdd -> fc/act_quant (moving average)"}},
    {"AutoGoesByTheLayersBits",
     kNet,
     {.weight_bits = 4,
      .activation_bits = 4,
      .ranges = kAuto,
      .layer_bits = {{.pattern = "fc", .weight_bits = 8, .activation_bits = 8}}},
     net("learned symmetric", "learned",
         {{"fc/weights_quant", "last_value asymmetric"}, {"fc/act_quant", "moving_average asymmetric"}})},
    {"LearnedOfInputsAndChannels",
     "images | conv_relu a | conv_relu b",
     {.weight_bits = 4, .ranges = kLearn, .per_channel = true, .quantize_input = true},
     {"images/input_quant: learned", "a/weights_quant: learned per_channel", "a/act_quant: learned",
      "b/weights_quant: learned per_channel", "b/act_quant: learned"}},
    {"LayersThatShareWeightsDiffer",
     "[1,1,2,2]weights; images | conv a weights | conv b weights",
     {.layer_bits = {{.pattern = "b", .ranges = kLearn}}},
     {"a/weights_quant: last_value", "a/act_quant: moving_average", "b/act_quant: learned"},
     {"note: bits of layers (`bits_config`): weights is shared: the settings of a/Conv2D apply, those of b/Conv2D are "
      "ignored"}},
    // Whatever their bits: 2, or 8, the logits as all others.
    {"AllValues", kNet, {.ranges = kAllValues}, net("8 last_value", "8 all_values")},
    {"AllValuesOfFewBits",
     kNet,
     {.weight_bits = 2, .activation_bits = 2, .ranges = kAllValues},
     net("2 last_value", "2 all_values")},
    {"AllValuesOfALayer",
     kNet,
     {.layer_bits = {{.pattern = "conv1", .ranges = kAllValues}}},
     net("last_value", "moving_average", {{"conv1/act_quant", "all_values"}}),
     {"conv1/Conv2D: matched: layer + bias + Relu: weights conv1/weights -> conv1/weights_quant, output conv1/Relu -> "
      "conv1/act_quant (range of all values)"}},
    // Both take the last value of the shared weights.
    {"AllValuesOfALayerThatSharesItsWeights",
     "[1,1,2,2]weights; images | conv a weights | conv b weights",
     {.layer_bits = {{.pattern = "b", .ranges = kAllValues}}},
     {"a/weights_quant: last_value", "a/act_quant: moving_average", "b/act_quant: all_values"}},
    {"PowersOfTwo", kNet, kPowers,
     net("power_of_two", "power_of_two", {{"conv2/Sigmoid/activation_Sigmoid_quant", "power_of_two"}})},
};

TEST(Ranges, AreAsAsked) { for_rows(kKinds, testing::expect_rewrite); }

const RewriteOptions kLearned = {.ranges = kLearn}, kAsymmetric = {.ranges = kLearn, .asymmetric_weights = true};
const RewriteOptions kAll4 = {.weight_bits = 4, .activation_bits = 4, .ranges = kAllValues};
const RewriteOptions kObserved4 = {.weight_bits = 4, .activation_bits = 4};
const std::string kAllNet = "images | conv_relu conv1 | conv_relu conv2";

const std::vector<SecondRewrite> kSecond = {
    {"ObservedThenAsymmetric", kNet, {}, kAsymmetric, {"ranges"}},
    {"AsymmetricThenObserved", kNet, kAsymmetric, {}, {"ranges"}},
    {"ObservedThenLearned", kNet, {}, kLearned, {"asymmetric_weights", "ranges"}},
    {"LearnedThenObserved", kNet, kLearned, {}, {"ranges", "symmetric_weights"}},
    // The flag that was given.
    {"LearnedThenAsymmetric", kNet, kLearned, kAsymmetric, {"asymmetric_weights"}},
    {"AsymmetricThenLearned", kNet, kAsymmetric, kLearned, {"asymmetric_weights"}},
    {"SymmetricWeights", kNet, kAsymmetric, {.symmetric_weights = true, .ranges = kLearn}, {"symmetric_weights"}},
    {"Symmetric", kNet, kLearned, {.symmetric = true, .ranges = kLearn}, {"symmetric"}},
    {"ALayer",
     kNet,
     kLearned,
     {.ranges = kLearn, .layer_bits = {{.pattern = "fc", .ranges = kObserved}}},
     {"bits_config"}},
    {"LearnedThenAuto", kNet, kLearned, {.ranges = kAuto}, {"ranges", "symmetric_weights"}},
    {"Bits", kNet, kLearned, {.weight_bits = 4, .ranges = kLearn}, {"weight_bits"}},
    {"Delay", kNet, kLearned, {.ranges = kLearn, .quant_delay = 4}, {"quant_delay"}},
    // Nothing is averaged.
    {"DecayOfLearned", kNet, kLearned, {.ranges = kLearn, .ema_decay = 0.5}, {}},
    {"DecayOfAllValues",
     kNet,
     kAll4,
     {.weight_bits = 4, .activation_bits = 4, .ranges = kAllValues, .ema_decay = 0.5},
     {}},
    {"AllValuesThenObserved",
     kAllNet,
     kAll4,
     kObserved4,
     {"ranges: conv1/act_quant has a range of all values, not a moving average",
      "ranges: conv2/act_quant has a range of all values, not a moving average"}},
    {"ObservedThenAllValues",
     kAllNet,
     kObserved4,
     kAll4,
     {"ranges: conv1/act_quant has a moving average, not a range of all values",
      "ranges: conv2/act_quant has a moving average, not a range of all values"}},
    {"AllValuesThenLearned",
     "images | conv_relu conv1",
     kAll4,
     {.weight_bits = 4, .activation_bits = 4, .ranges = kLearn, .asymmetric_weights = true, .logits_bits = 4},
     {"ranges: conv1/weights_quant has a last value, not a learned range",
      "ranges: conv1/act_quant has a range of all values, not a learned range"}},
    {"PowersOfTwo", kNet, kPowers, {}, {"scales"}},
};

TEST(Ranges, OthersTheSecondTimeAreConflicts) { for_rows(kSecond, testing::expect_conflicts); }

TEST(LearnedRanges, AreTrainableUnlessTheRangeIsKnown) {
  ToyGraph toy(kNet);
  create_training_graph(toy.graph, kLearned);
  for (const std::string end : {"/min", "/max"}) {
    const auto variable = [&](const std::string& name) { return *toy.graph.at(name + end).as<Variable>(); };
    EXPECT_TRUE(variable("conv1/act_quant").trainable);
    EXPECT_EQ(variable("conv1/act_quant").update, VariableUpdateKind::kMultiplicative);
    EXPECT_FALSE(variable("conv2/Sigmoid/activation_Sigmoid_quant").trainable);
    EXPECT_EQ(variable("conv2/Sigmoid/activation_Sigmoid_quant").update, VariableUpdateKind::kAdditive);
  }
}

/// A loss, so that it trains.
void train(Graph& graph, Session& session, int steps) {
  const Output loss = graph.output_at("loss");
  for (int i = 0; i < steps; ++i) {
    Tensor images(Shape{1, 4, 4, 2});
    Initializer::truncated_normal(1).fill(images, static_cast<std::uint64_t>(i));
    session.train_step(loss, optim::Sgd({.learning_rate = 0.1, .ranges = {.learning_rate = 0.1}}),
                       {{graph.output_at("images"), images}});
  }
}

TEST(LearnedRanges, ZeroStaysAndTheRestMoves) {
  ToyGraph toy;
  Output x = layers::sigmoid(toy.graph, "conv2/Sigmoid", toy.conv_bias("conv2", toy.conv_relu("conv1", toy.images())));
  x = layers::avg_pool(toy.graph, "pool", x);
  const Output weights = layers::variable(toy.graph, "fc/weights", {8, 3}, Initializer::truncated_normal(0.5));
  x = layers::matmul(toy.graph, "fc/MatMul", layers::reshape(toy.graph, "flat", x, {.shape = {1, 8}}), weights);
  x = toy.bias("fc", x);
  layers::mean(toy.graph, "loss", x, {.axes = {0, 1}});
  create_training_graph(toy.graph, {.weight_bits = 4, .activation_bits = 4, .ranges = kLearn, .per_channel = true});
  Session session(toy.graph, {.seed = 4});
  session.set_variable("fc/weights_quant/min", Tensor::from<float>({3}, {-1, -1, -1}));
  session.set_variable("fc/weights_quant/max", Tensor::from<float>({3}, {1, 1, 1}));
  session.set_variable("fc/act_quant/min", Tensor::scalar(-6.0f));
  train(toy.graph, session, 5);
  EXPECT_EQ(*session.variable("conv1/act_quant/min").data<float>(), 0);
  EXPECT_EQ(*session.variable("conv2/Sigmoid/activation_Sigmoid_quant/max").data<float>(), 15.0f / 16);
  const Tensor low = session.variable("fc/weights_quant/min"), high = session.variable("fc/weights_quant/max");
  for (int c = 0; c < 3; ++c) {
    EXPECT_NE(high.data<float>()[c], 1);
    EXPECT_NEAR(low.data<float>()[c], -high.data<float>()[c], 1e-6) << "symmetric";
  }
}

TEST(LearnedRanges, ACheckpointOfTheTrainingGraphFitsTheEvaluationGraph) {
  const RewriteOptions options = {.weight_bits = 4, .ranges = kLearn, .quant_delay = 6, .quantize_input = true};
  ToyGraph evaluated(kNet), trained(kNet);
  create_eval_graph(evaluated.graph, options);
  create_training_graph(trained.graph, options);
  EXPECT_EQ(quantization_of(trained.graph).label(), "W4A8 learned symmetric weights");
  EXPECT_EQ(quantization_of(evaluated.graph).label(), "W4A8 learned symmetric weights");
  EXPECT_EQ(quantization_of(trained.graph).delay, 6);
  Session session(trained.graph, {.seed = 3});
  session.set_variable("conv1/act_quant/max", Tensor::scalar(2.5f));
  const Safetensors checkpoint = session.checkpoint();
  EXPECT_FALSE(checkpoint.tensors.contains("conv1/act_quant/num_updates"));
  Session evaluation(evaluated.graph);
  const auto report = evaluation.restore(checkpoint, Session::Restore::kVariables, "the training graph");
  EXPECT_TRUE(report.fresh.empty());
  EXPECT_TRUE(report.unused.empty());
  EXPECT_EQ(*evaluation.variable("conv1/act_quant/max").data<float>(), 2.5f);
}

TEST(LearnedRanges, AnEvaluationGraphDoesNotBecomeTrainingAgain) {
  ToyGraph toy(kNet);
  create_eval_graph(toy.graph, kLearned);
  EXPECT_TRUE(error_of([&] {
                require_observing(toy.graph, "net.json");
              }).starts_with("net.json: [FakeQuant \"conv1/weights_quant\"] was rewritten for evaluation"));
  EXPECT_THROW(create_training_graph(toy.graph, kLearned), Error);
}

TEST(Ranges, TheLabelNamesThem) {
  const auto label = [](const RewriteOptions& options) {
    ToyGraph toy(kNet);
    create_training_graph(toy.graph, options);
    return quantization_of(toy.graph).label();
  };
  EXPECT_EQ(label(kLearned), "W8A8 learned symmetric weights");
  EXPECT_EQ(label({.ranges = kLearn, .asymmetric_weights = true, .per_channel = true}), "W8A8 per channel learned");
  EXPECT_EQ(label({.ranges = kAuto}), "W8A8");
  EXPECT_EQ(label({.layer_bits = {{.pattern = "fc", .symmetric_weights = false, .ranges = kLearn}}}), "W8A8 learned");
  EXPECT_EQ(label(kPowers), "W8A8 power-of-two");
}

TEST(Ranges, GraphJsonAndInspectNameThem) {
  const auto text = [](const RewriteOptions& options) {
    ToyGraph toy(kNet);
    create_training_graph(toy.graph, options);
    return graph_to_json(toy.graph) + quantizer_text(toy.quantizer("conv1/act_quant"));
  };
  EXPECT_EQ(text({}).find("power_of_two"), std::string::npos) << "only where they are";
  EXPECT_NE(text({}).find("\"narrow_range\": false"), std::string::npos) << "which others write always";
  EXPECT_NE(text(kPowers).find("power_of_two"), std::string::npos);
  EXPECT_NE(text(kAll4).find("\"range\": \"all_values\""), std::string::npos);
  EXPECT_TRUE(text(kAll4).ends_with("4 bits, range of all values"));
}

TEST(Ranges, OptionsGoThroughJson) {
  const std::string text = R"({"a": {"ranges": "learned"}, "b": {"weight_bits": 2, "ranges": "auto"},
                               "c": {"ranges": "observed"}, "d": {"ranges": "all-values"}})";
  const std::vector<LayerBits> list = layer_bits_from_json(text, "bits.json");
  EXPECT_EQ(list, (std::vector<LayerBits>{{.pattern = "a", .ranges = kLearn},
                                          {.pattern = "b", .weight_bits = 2, .ranges = kAuto},
                                          {.pattern = "c", .ranges = kObserved},
                                          {.pattern = "d", .ranges = kAllValues}}));
  EXPECT_EQ(layer_bits_from_json(layer_bits_to_json(list).dump(), "again"), list);
  for (const std::string value : {"\"fixed\"", "\"Learned\"", "\"\"", "true", "null", "4", "[\"learned\"]"})
    EXPECT_TRUE(mentions(
        error_of([&] { layer_bits_from_json(R"({"a": {"ranges": )" + value + "}}", "bits.json"); }),
        {"bits.json: pattern \"a\": ranges must be \"observed\", \"learned\", \"auto\", \"all-values\" or \"by-task\"",
         "not " + value}));
}

}  // namespace
}  // namespace miniqat::quantize::ranges_test
