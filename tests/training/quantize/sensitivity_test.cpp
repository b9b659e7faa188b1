#include "training/quantize/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "core/files/safetensors.h"
#include "datasets/loader.h"
#include "tests/errors.h"
#include "tests/training/run_fixture.h"
#include "training/calibrate/calibration.h"
#include "training/run/run_source.h"

namespace miniqat::training::sensitivity_test {
namespace {

struct Listener : RunObserver {
  void on_evaluation(std::int64_t done, std::int64_t total, const std::string&) override {
    EXPECT_EQ(done, evaluations++);
    last_total = total;
  }
  void warn(const std::string& text) override { warnings = text; }
  bool wants_to_stop() override { return evaluations == last; }

  std::int64_t evaluations = 0;
  std::int64_t last_total = 0;
  std::int64_t last = -1;
  std::string warnings;
};

class SensitivityTest : public RunFixture {
 protected:
  SensitivityTest() {
    RunObserver silent;
    TrainSettings in_float = settings();
    in_float.float_only = true;
    in_float.steps = 160;
    train_new("float", in_float, silent);
    request_.run = path("float").string();
    request_.bits = {3, 8};
    request_.settings = {.pictures = 14, .batches = 4};
    request_.threads = 1;
  }
  Sensitivity measured() const {
    RunObserver silent;
    return measure_sensitivity(request_, silent);
  }
  void change_checkpoint(const auto& change) const {
    const std::filesystem::path file = path("float") / "checkpoint.safetensors";
    Safetensors content = read_safetensors(file);
    change(content.tensors);
    write_safetensors(file, content);
  }
  /// Of the layer's weights or output.
  static const QuantizerSensitivity& one(const Sensitivity& result, const std::string& layer, bool weights) {
    return *std::ranges::find_if(result.quantizers,
                                 [&](const auto& item) { return item.layer == layer && item.is_weights == weights; });
  }

  SensitivityRequest request_;
};

TEST_F(SensitivityTest, MeasuresEachQuantizerAtEachWidth) {
  Listener listener;
  const Sensitivity result = measure_sensitivity(request_, listener);
  EXPECT_EQ(result.bits, (std::vector<std::int64_t>{8, 3}));
  EXPECT_EQ(result.batches, 4);
  EXPECT_EQ(result.pictures, 14);
  EXPECT_EQ(result.in_float.examples, 14);
  ASSERT_EQ(result.quantizers.size(), 4u);
  EXPECT_EQ(result.quantizers[0].quantizers, std::vector<std::string>{"conv1/weights_quant"});
  EXPECT_EQ(result.quantizers[0].elements, 36);
  EXPECT_EQ(result.quantizers[1].quantizers, std::vector<std::string>{"conv1/act_quant"});
  EXPECT_EQ(result.quantizers[1].elements, 256) << "of one picture";
  EXPECT_EQ(result.quantizers[2].elements, 640);
  EXPECT_EQ(result.quantizers[3].elements, 10);
  for (const QuantizerSensitivity& quantizer : result.quantizers) {
    ASSERT_EQ(quantizer.alone.size(), 2u);
    EXPECT_GT(*quantizer.alone[0].snr_db, *quantizer.alone[1].snr_db + 10);
    EXPECT_EQ(quantizer.alone[1].loss_increase, quantizer.alone[1].evaluation.loss - result.in_float.loss);
  }
  for (std::size_t width = 0; width < 2; ++width)
    for (const QuantizerSensitivity& quantizer : result.quantizers)
      if (!quantizer.fixed_bits) {
        EXPECT_LT(*result.together[width].snr_db, *quantizer.alone[width].snr_db) << "noises add up";
      }
  EXPECT_TRUE(result.others.empty());
  EXPECT_FALSE(result.choice);
  EXPECT_EQ(listener.last_total, 2 + 1 + 2 * 5);
  EXPECT_EQ(listener.evaluations, listener.last_total + 1);
}

TEST_F(SensitivityTest, SaysThatQuantizeGivesChannelsTheirOwnRanges) {
  place_.write("norm.json", testing::tiny_classifier_with_batch_norm());
  RunObserver silent;
  TrainSettings in_float = settings();
  in_float.model = path("norm.json").string();
  in_float.float_only = true;
  train_new("norm", in_float, silent);
  const auto note = [&](const std::string& run, std::vector<std::int64_t> bits, bool per_channel) {
    Listener listener;
    request_.run = path(run).string();
    request_.bits = std::move(bits);
    request_.rewrite.per_channel = per_channel;
    measure_sensitivity(request_, listener);
    return listener.warnings;
  };
  EXPECT_TRUE(testing::mentions(note("norm", {4, 8}, false), {"--per-channel measures that"}));
  EXPECT_EQ(note("norm", {4, 8}, true), "");
  EXPECT_EQ(note("norm", {5, 8}, false), "");
  EXPECT_EQ(note("float", {4, 8}, false), "");
}

/// The float network with the layer's weights rounded here: q * scale of integers -3..3 around a zero point.
TEST_F(SensitivityTest, OfWeightsAloneIsTheFloatNetworkWithRoundedWeights) {
  const Sensitivity result = measured();
  RunObserver silent;
  calibrate({.run = request_.run, .calibrate = {.batches = 1}, .rewrite = {{.weight_bits = 3}, {}}, .threads = 1},
            RunDirectory::fresh(path("ptq"), "none"), silent);
  const NamedTensors ranges = read_safetensors(path("ptq") / "checkpoint.safetensors").tensors;
  const float min = *ranges.at("fc/weights_quant/min").data<float>();
  const float max = *ranges.at("fc/weights_quant/max").data<float>();
  const float scale = (max - min) / 6;
  const float zero = std::round(1 - min / scale);
  change_checkpoint([&](NamedTensors& tensors) {
    for (float& weight : tensors.at("fc/weights").values<float>())
      weight = scale * (std::clamp(std::floor(weight / scale + 0.5f) + zero, 1.0f, 7.0f) - zero);
  });
  const RunSource run = open_run(request_.run, "");
  Classifier network = find_classifier(read_network(run.directory.eval_graph()), "float");
  Session session(network.graph);
  session.restore(read_safetensors(run.checkpoint), Session::Restore::kVariables, "rounded");
  datasets::Loader loader(load_data(run, "", "").train, {.batch_size = 4, .seed = 1, .first_batch = 4});
  Tally tally(classification(), 10);
  while (tally.examples() < 14) {
    const datasets::Batch& batch = loader.next();
    const Tensor logits = session.run({.fetches = {network.logits}}, {{network.images, batch.images}}).fetched.front();
    tally.add(logits.values<float>(), batch, std::min<std::int64_t>(4, 14 - tally.examples()));
  }
  const Evaluation expected = tally.conclude(load_data(run, "", "").train);
  const Measurement& alone = one(result, "fc/MatMul", true).alone[1];
  EXPECT_NEAR(alone.evaluation.loss, expected.loss, 1e-5);
  EXPECT_EQ(alone.evaluation.correct(), expected.correct());
  EXPECT_GT(std::abs(alone.loss_increase), 1e-4) << "a difference that the comparison can see";
}

/// One weight of fc becomes a hundred times the largest, so that its grid has no room for the others. It multiplies
/// what is always 0, the output of a channel with a low bias: in float nothing hangs on it.
TEST_F(SensitivityTest, ALayerMadeFragileComesFirst) {
  const auto ranks_first = [&](const Sensitivity& result) {
    return std::ranges::max_element(
               result.quantizers, {},
               [](const QuantizerSensitivity& quantizer) { return quantizer.alone[1].loss_increase; })
        ->quantizers;
  };
  change_checkpoint([](NamedTensors& tensors) { tensors.at("conv1/biases").values<float>()[3] = -1000; });
  const Sensitivity before = measured();
  change_checkpoint([](NamedTensors& tensors) {
    const auto weights = tensors.at("fc/weights").values<float>();
    const float largest = std::abs(std::ranges::max(weights, {}, [](float weight) { return std::abs(weight); }));
    weights[3 * 10] = 100 * largest;
  });
  const Sensitivity after = measured();
  EXPECT_EQ(after.in_float.loss, before.in_float.loss);
  EXPECT_EQ(ranks_first(after), std::vector<std::string>{"fc/weights_quant"});
  EXPECT_LT(*one(after, "fc/MatMul", true).alone[1].snr_db, 3);
  EXPECT_GT(*one(before, "fc/MatMul", true).alone[1].snr_db, 6);
  EXPECT_GT(one(after, "fc/MatMul", true).alone[1].loss_increase,
            one(before, "fc/MatMul", true).alone[1].loss_increase + 0.1);
  // With the budget of one 8-bit layer the fragile one keeps its bits.
  request_.budget.average_bits = 7.9;
  const std::vector<quantize::LayerBits> bits = measured().choice->layers;
  EXPECT_EQ(bits.at(0).pattern, "conv1/Conv2D");
  EXPECT_EQ(bits.at(0).weight_bits, 3);
  EXPECT_EQ(bits.at(1).weight_bits, 8);
}

TEST_F(SensitivityTest, TheChoiceKeepsToItsBudget) {
  request_.bits = {2, 3, 4, 8};
  for (const double most : {2.0, 2.5, 3.7, 8.0, 99.0}) {
    request_.budget = {.average_bits = most};
    const ChosenBits choice = *measured().choice;
    EXPECT_LE(choice.average_weight_bits, most);
    EXPECT_LE(choice.average_activation_bits, most);
    const double weights = 36.0 * *choice.layers[0].weight_bits + 640.0 * *choice.layers[1].weight_bits;
    EXPECT_DOUBLE_EQ(*choice.average_weight_bits, weights / 676);
    EXPECT_DOUBLE_EQ(*choice.average_activation_bits, *choice.layers[0].activation_bits) << "without the logits";
    EXPECT_EQ(choice.layers[1].activation_bits, 8) << "the logits";
  }
  for (const std::int64_t most : {169, 170, 300, 676, 5000}) {
    request_.budget = {.bytes = most, .activation_bits = 4};
    const ChosenBits choice = *measured().choice;
    EXPECT_LE(choice.weight_bytes, most);
    EXPECT_EQ(choice.weight_bytes, (36 * *choice.layers[0].weight_bits + 7) / 8 + 80 * *choice.layers[1].weight_bits);
    EXPECT_EQ(choice.layers[0].activation_bits, 4);
    EXPECT_EQ(choice.layers[1].activation_bits, 8) << "the logits";
  }
  request_.budget = {.bytes = 168};
  EXPECT_TRUE(
      testing::mentions(testing::error_of([&] { measured(); }), {"--bytes 168 is impossible", "2 bits", "169"}));
}

TEST_F(SensitivityTest, TheChoiceIsTheBestWithinTheBudget) {
  request_.bits = {2, 3, 4, 8};
  const auto widths_of = [](const Sensitivity& result) {
    std::vector<std::int64_t> uniform;
    for (const ChosenBits& one : result.candidates)
      if (one.uniform_bits) uniform.push_back(*one.uniform_bits);
    return uniform;
  };
  for (const BitBudget& budget : {BitBudget{.average_bits = 3.5}, BitBudget{.bytes = 300, .activation_bits = 4}}) {
    request_.budget = budget;
    Listener listener;
    const Sensitivity result = measure_sensitivity(request_, listener);
    EXPECT_EQ(listener.evaluations, listener.last_total + 1);
    EXPECT_EQ(widths_of(result), (std::vector<std::int64_t>{3, 2}));
    EXPECT_FALSE(result.candidates.front().uniform_bits);
    for (const ChosenBits& one : result.candidates)
      EXPECT_LE(result.choice->measured.evaluation.loss, one.measured.evaluation.loss);
    const ChosenBits& in_3 = result.candidates.at(1);
    EXPECT_EQ(in_3.layers.at(0).weight_bits, 3);
    EXPECT_EQ(in_3.layers.at(0).activation_bits, budget.bytes ? 4 : 3);
    if (budget.average_bits) {
      EXPECT_EQ(in_3.measured.evaluation.loss, result.together[2].evaluation.loss);
    }
  }
}

/// All at one width: what the choice measures is what all quantizers at that width measure.
TEST_F(SensitivityTest, TheChoiceIsMeasuredByWayOfTheRewrite) {
  request_.budget = {.average_bits = 3};
  for (const auto ranges : {quantize::RangeChoice::kObserved, quantize::RangeChoice::kLearned}) {
    request_.rewrite.ranges = ranges;
    const Sensitivity result = measured();
    EXPECT_EQ(result.choice->measured.evaluation.loss, result.together[1].evaluation.loss);
    EXPECT_NE(result.choice->measured.evaluation.loss, result.together[0].evaluation.loss);
  }
}

/// Their width is neither chosen nor that of the others. It once went down with them, to widths that `quantize` does
/// not give the logits.
TEST_F(SensitivityTest, TheLogitsKeepTheirWidth) {
  request_.bits = {3, 4};
  request_.budget = {.average_bits = 3};
  const Sensitivity in_8 = measured();
  EXPECT_EQ(one(in_8, "fc/MatMul", false).fixed_bits, 8);
  for (const bool weights : {true, false}) EXPECT_FALSE(one(in_8, "conv1/Conv2D", weights).fixed_bits);
  EXPECT_FALSE(one(in_8, "fc/MatMul", true).fixed_bits);
  EXPECT_EQ(in_8.activation_front.size(), 2u) << "one output, two widths";
  ASSERT_EQ(one(in_8, "fc/MatMul", false).alone.size(), 2u) << "alone they are measured at the widths asked for";
  EXPECT_EQ(in_8.choice->layers.at(1).activation_bits, 8);
  EXPECT_EQ(in_8.choice->average_activation_bits, 3);
  request_.logits_bits = 3;
  const Sensitivity in_3 = measured();
  EXPECT_EQ(in_3.choice->layers.at(1).activation_bits, 3);
  EXPECT_EQ(one(in_3, "fc/MatMul", false).alone[1].snr_db, one(in_8, "fc/MatMul", false).alone[1].snr_db);
  for (std::size_t width = 0; width < 2; ++width)
    EXPECT_GT(*in_8.together[width].snr_db, *in_3.together[width].snr_db + 0.1);
  EXPECT_NE(in_8.choice->predicted_loss_increase, in_3.choice->predicted_loss_increase);
}

/// At 8 bits a range is observed and counts its updates, at 3 bits it is learned and does not.
TEST_F(SensitivityTest, TheLogitsMayHaveAnotherKindOfRange) {
  request_.bits = {3};
  request_.rewrite.ranges = quantize::RangeChoice::kAuto;
  request_.budget = {.average_bits = 3};
  const Sensitivity result = measured();
  EXPECT_EQ(result.choice->measured.evaluation.loss, result.together[0].evaluation.loss);
}

TEST_F(SensitivityTest, TakesTheWholeSetWhereItIsSmall) {
  request_.settings = {.pictures = 2000, .batches = 32};
  const Sensitivity result = measured();
  EXPECT_EQ(result.batches, 4);
  EXPECT_EQ(result.pictures, 16);
}

TEST_F(SensitivityTest, StopsBetweenEvaluations) {
  Listener listener;
  listener.last = 5;
  EXPECT_THROW(measure_sensitivity(request_, listener), Stopped);
  EXPECT_EQ(listener.evaluations, 5);
}

TEST_F(SensitivityTest, NotesAnUnfinishedRunAndRefusesAQuantizedOne) {
  std::filesystem::remove(path("float") / "summary.json");
  Listener listener;
  measure_sensitivity(request_, listener);
  EXPECT_TRUE(testing::mentions(listener.warnings, {"note: the run in ", "is unfinished"})) << listener.warnings;
  RunObserver silent;
  train_new("quantized", settings(), silent);
  request_.run = path("quantized").string();
  EXPECT_TRUE(testing::mentions(testing::error_of([&] { measured(); }), {"is quantized already (W8A8", "float run"}));
}

}  // namespace
}  // namespace miniqat::training::sensitivity_test
