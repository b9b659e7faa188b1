// `miniqat calibrate`: a float run becomes a quantized one that eval and train take as their own.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/files/safetensors.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::calibrate_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::vector<std::string> kMethods = {"minmax", "moving-average", "percentile", "mse"};

/// Data, and one float run on them that all tests share.
class CalibrateTest : public SharedPlaceTest<CalibrateTest> {
 public:
  static void make() { make_float_run(*place_, "tiny", "float"); }

 protected:
  static Outcome calibrate(const std::string& out, const Arguments& more) {
    return program(Arguments{"calibrate", "--run", "float", "--out", out, "--threads", "1", "--batches", "8"} + more);
  }
  static Json json(const std::string& file) { return Json::parse(bytes_of(path(file))); }
  static Safetensors checkpoint(const std::string& run) {
    return read_safetensors(place_->path() / run / "checkpoint.safetensors");
  }
  static float scalar(const Safetensors& content, const std::string& name) {
    return *content.tensors.at(name).data<float>();
  }
};

TEST_F(CalibrateTest, EightBitsKeepTheAccuracyAndEvalAgrees) {
  const double before = json("float/summary.json")["test_accuracy"];
  EXPECT_GE(before, 0.9);
  for (const std::string& method : kMethods) {
    const std::string run = "eight-" + method;
    const Outcome outcome = expect_success(calibrate(run, {"--method", method}));
    expect_text(outcome.out, {"batch 8/8\n"});
    EXPECT_EQ(outcome.out.find("integers"), std::string::npos) << outcome.out;
    const Json summary = json(run + "/summary.json");
    EXPECT_EQ(summary["float_test_accuracy"], before);
    EXPECT_NEAR(summary["test_accuracy"], before, 0.04) << method;
    EXPECT_EQ(summary["quantization"], "W8A8");
    EXPECT_EQ(summary["steps"], json("float/summary.json")["steps"]);
    EXPECT_EQ(summary["calibration"]["method"], method);
    EXPECT_EQ(summary["calibration"]["batches"], 8);
    EXPECT_EQ(summary["calibration"]["run"], "float");
    EXPECT_EQ(summary["calibration"].contains("percentile"), method == "percentile");
    const Outcome eval = expect_success(program({"eval", "--run", run, "--json", "--threads", "1"}));
    EXPECT_EQ(Json::parse(eval.out)["accuracy"], summary["test_accuracy"]);
    EXPECT_EQ(Json::parse(eval.out)["quantization"], "W8A8");
  }
}

TEST_F(CalibrateTest, FilesAreThoseOfATrainedRun) {
  expect_success(calibrate("files", {"--weight-bits", "4", "--per-channel", "--symmetric-weights"}));
  expect_success(
      program("train --model tiny.json --dataset mnist --data-dir digits --steps 1 --ranges observed --threads 1 "
              "--weight-bits 4 --per-channel --symmetric-weights --out trained"));
  for (const char* graph : {"train_graph.json", "eval_graph.json"})
    EXPECT_EQ(bytes_of(place_->path() / "files" / graph), bytes_of(place_->path() / "trained" / graph)) << graph;
  Json config = json("files/config.json"), trained = json("trained/config.json");
  for (const char* other : {"epochs", "steps"}) config[other] = trained[other];
  EXPECT_EQ(config, trained);
  const Safetensors calibrated = checkpoint("files");
  for (const auto& [name, tensor] : checkpoint("trained").tensors)
    EXPECT_TRUE(name.starts_with("optimizer:") || calibrated.tensors.contains(name)) << name;
  EXPECT_EQ(scalar(calibrated, "conv1/act_quant/num_updates"), 8);
  for (const auto& [name, tensor] : checkpoint("float").tensors)
    if (name.find(':') == std::string::npos) {
      EXPECT_TRUE(std::ranges::equal(tensor.values<float>(), calibrated.tensors.at(name).values<float>())) << name;
    }
}

TEST_F(CalibrateTest, TheSameSeedGivesTheSameRanges) {
  for (const std::string method : {"minmax", "mse"}) {
    for (const char* run : {"once-", "again-"})
      expect_success(calibrate(run + method, {"--method", method, "--seed", "5"}));
    EXPECT_EQ(bytes_of(place_->path() / ("once-" + method) / "checkpoint.safetensors"),
              bytes_of(place_->path() / ("again-" + method) / "checkpoint.safetensors"));
  }
  expect_success(calibrate("other", {"--method", "minmax", "--seed", "6"}));
  EXPECT_NE(scalar(checkpoint("other"), "conv1/act_quant/max"),
            scalar(checkpoint("once-minmax"), "conv1/act_quant/max"));
}

TEST_F(CalibrateTest, TrainingTakesTheRunAsItsStart) {
  expect_success(calibrate("start", {"--weight-bits", "3", "--activation-bits", "3"}));
  const Outcome outcome = expect_success(program(
      {"train", "--model",           "tiny.json", "--dataset", "mnist", "--data-dir",    "digits",  "--steps",
       "20",    "--learning-rate",   "0.01",      "--threads", "1",     "--weight-bits", "3",       "--activation-bits",
       "3",     "--init-checkpoint", "start",     "--out",     "qat",   "--ranges",      "observed"}));
  expect_text(outcome.out, {" 0 new, 0 unused."});
  EXPECT_EQ(scalar(checkpoint("qat"), "conv1/act_quant/num_updates"), 28);
  expect_error(program({"train", "--resume", "--out", "start"}), 2, {"start was calibrated, not trained"});
}

TEST_F(CalibrateTest, EqualizesAndCorrectsBiases) {
  expect_success(calibrate("plain", {}));
  EXPECT_FALSE(json("plain/summary.json")["calibration"].contains("equalize"));
  EXPECT_FALSE(json("plain/summary.json")["calibration"].contains("bias_correction"));
  const Outcome outcome = expect_success(calibrate("both", {"--equalize", "--bias-correction", "--verbose"}));
  expect_text(outcome.out, {"equalized 1 pair of layers in ", "; 1 layer left out\n",
                            "\ncorrecting layer 2/2: fc/MatMul\ncorrected 2 biases; 0 layers left",
                            "  equalized  conv1/Conv2D and fc/MatMul: 4 channels, scales ",
                            "  left out   fc/MatMul: [BiasAdd \"fc/BiasAdd\"] is an output of the graph\n",
                            "  corrected  fc/MatMul: 10 channels, mean errors "});
  EXPECT_EQ(json("both/summary.json")["calibration"]["equalize"], true);
  EXPECT_EQ(json("both/summary.json")["calibration"]["bias_correction"], true);
  EXPECT_EQ(json("both/summary.json")["float_test_accuracy"], json("plain/summary.json")["float_test_accuracy"]);
  for (const char* file : {"train_graph.json", "eval_graph.json", "config.json"})
    EXPECT_EQ(bytes_of(place_->path() / "both" / file), bytes_of(place_->path() / "plain" / file)) << file;
  const Safetensors plain = checkpoint("plain"), both = checkpoint("both");
  for (const auto& [name, tensor] : plain.tensors)
    EXPECT_TRUE(name.find("quant") != std::string::npos || name.starts_with("session:") ||
                !std::ranges::equal(tensor.values<float>(), both.tensors.at(name).values<float>()))
        << name;
  EXPECT_EQ(Json::parse(expect_success(program({"eval", "--run", "both", "--json", "--threads", "1"})).out)["accuracy"],
            json("both/summary.json")["test_accuracy"]);
  EXPECT_NEAR(json("both/summary.json")["test_accuracy"], json("plain/summary.json")["float_test_accuracy"], 0.04);
}

/// fc, which the pair's scales would change too, stays a float layer.
TEST_F(CalibrateTest, EqualizesOnlyInItsScope) {
  const Outcome outcome = expect_success(calibrate("scoped", "--scope conv1 --equalize --verbose"));
  expect_text(outcome.out,
              {"equalized 0 pairs of layers", "  left out   fc/MatMul: it is not in the scope \"conv1\"\n"});
  const Safetensors scoped = checkpoint("scoped");
  for (const auto& [name, tensor] : checkpoint("float").tensors)
    if (name.find(':') == std::string::npos) {
      EXPECT_TRUE(std::ranges::equal(tensor.values<float>(), scoped.tensors.at(name).values<float>())) << name;
    }
}

TEST_F(CalibrateTest, RoundsAdaptively) {
  const Arguments bits = "--weight-bits 3 --verbose";
  const auto with = [&](Arguments more) {
    more.insert(more.begin(), bits.begin(), bits.end());
    return more;
  };
  expect_success(calibrate("to-nearest", with({"--rounding", "nearest"})));
  EXPECT_FALSE(json("to-nearest/summary.json")["calibration"].contains("rounding"));
  const Outcome outcome = expect_success(calibrate("adaptive", with({"--rounding", "adaptive"})));
  expect_text(outcome.out,
              {"rounding layer 1/2: conv1/Conv2D\nrounding layer 2/2: fc/MatMul\nrounded 2 layers adaptively; "
               "0 layers left out\n",
               "\nrounding\n  rounded    conv1/Conv2D: ", " weights not at the nearest integer, error of "});
  EXPECT_EQ(json("adaptive/summary.json")["calibration"]["rounding"], "adaptive");
  const Safetensors nearest = checkpoint("to-nearest"), adaptive = checkpoint("adaptive");
  for (const auto& [name, tensor] : nearest.tensors)
    if (name.find(':') == std::string::npos) {
      EXPECT_EQ(std::ranges::equal(tensor.values<float>(), adaptive.tensors.at(name).values<float>()),
                !name.ends_with("/weights"))
          << name;
    }
  expect_success(calibrate("adaptive-again", with({"--rounding", "adaptive"})));
  EXPECT_EQ(bytes_of(path("adaptive/checkpoint.safetensors")), bytes_of(path("adaptive-again/checkpoint.safetensors")));
  expect_success(calibrate("all-three", with({"--rounding", "adaptive", "--equalize", "--bias-correction"})));
  for (const char* run : {"adaptive", "all-three"}) {
    EXPECT_EQ(Json::parse(expect_success(program({"eval", "--run", run, "--json", "--threads", "1"})).out)["accuracy"],
              json(std::string(run) + "/summary.json")["test_accuracy"]);
  }
}

TEST_F(CalibrateTest, TrainingGoesOnFromEqualizedVariables) {
  const Arguments bits = "--weight-bits 3 --activation-bits 3 --ranges learned";
  Arguments flags = bits;
  flags.insert(flags.end(), {"--equalize", "--bias-correction"});
  expect_success(calibrate("equalized", flags));
  const Arguments line =
      "train --model tiny.json --dataset mnist --data-dir digits --steps 1 --learning-rate 1e-30 --range-learning-rate "
      "1e-30 --weight-decay 0 --threads 1 --init-checkpoint equalized --out from-equalized" +
      bits;
  expect_text(expect_success(program(line)).out, {" 0 new, 0 unused."});
  // A step of length 0: what it began with.
  const Safetensors begun = checkpoint("from-equalized");
  for (const auto& [name, tensor] : checkpoint("equalized").tensors)
    if (name.find(':') == std::string::npos && !name.ends_with("num_updates")) {
      EXPECT_TRUE(std::ranges::equal(tensor.values<float>(), begun.tensors.at(name).values<float>())) << name;
    }
}

TEST_F(CalibrateTest, LayersMayHaveBitsOfTheirOwn) {
  place_->write("bits.json", R"({"fc": {"weight_bits": 5}})");
  expect_text(expect_success(calibrate("mixed", {"--bits-config", "bits.json", "--weight-bits", "3", "--verbose"})).out,
              {"conv1/weights_quant  3 bits, weights, narrow", "fc/weights_quant     5 bits, weights"});
  EXPECT_EQ(json("mixed/config.json")["bits_config"], "mixed/bits.json");
  EXPECT_EQ(json("mixed/bits.json"), json("bits.json"));
  expect_success(program({"eval", "--run", "mixed", "--threads", "1"}));
}

TEST_F(CalibrateTest, OneBatchIsOne) {
  expect_text(expect_success(calibrate("one", {"--batches", "1"})).out, {" 1 batch of 4 training pictures,"});
}

TEST_F(CalibrateTest, TakesAllBatchesWhenThereAreFewer) {
  expect_text(expect_success(calibrate("all", {"--batches", "1000", "--method", "minmax"})).out,
              {"24 batches of 4 training pictures (all there are)"});
  EXPECT_EQ(json("all/summary.json")["calibration"]["batches"], 24);
}

/// The classifier with a batch norm between conv1's bias and Relu, spelled out with the batch's own moments.
std::string with_spelled_out_batch_norm() {
  Json graph = Json::parse(tiny_classifier());
  const auto node = [](const char* name, const char* op, const std::vector<std::string>& inputs,
                       const Json& attributes = Json::object()) {
    return Json{{"name", std::string("conv1/norm/") + name}, {"op", op}, {"inputs", inputs}, {"attrs", attributes}};
  };
  const std::string scope = "conv1/norm/";
  Json nodes = Json::array();
  for (const Json& one : graph["nodes"]) {
    if (one["name"] == "conv1/Relu") {
      const std::string x = "conv1/Conv2D";
      nodes.push_back(node("mean", "Mean", {x}, {{"axes", {0, 1, 2}}}));
      nodes.push_back(node("deviation", "Sub", {x, scope + "mean"}));
      nodes.push_back(node("square", "Square", {scope + "deviation"}));
      nodes.push_back(node("variance", "Mean", {scope + "square"}, {{"axes", {0, 1, 2}}}));
      nodes.push_back(node("epsilon", "Constant", {}, {{"shape", Json::array()}, {"value", 0.01}}));
      nodes.push_back(node("sum", "Add", {scope + "variance", scope + "epsilon"}));
      nodes.push_back(node("rsqrt", "Rsqrt", {scope + "sum"}));
      nodes.push_back(node("scaled", "Mul", {scope + "deviation", scope + "rsqrt"}));
      nodes.push_back(node("shifted", "Add", {scope + "scaled", "conv1/biases"}));
      Json relu = one;
      relu["inputs"] = {scope + "shifted"};
      nodes.push_back(relu);
    } else if (one["name"] != "conv1/BiasAdd") {
      nodes.push_back(one);
    }
  }
  graph["nodes"] = nodes;
  return graph.dump();
}

TEST_F(CalibrateTest, RefusesBatchNormsWithoutMovingStatistics) {
  place_->write("norm.json", with_spelled_out_batch_norm());
  expect_success(
      program("train --float --model norm.json --dataset mnist --data-dir digits --steps 2 --threads 1 --out norm"));
  expect_error(program({"calibrate", "--run", "norm", "--out", "no", "--threads", "1"}), 1,
               {"the rewritten graph needs \"", "moving_mean\"", "only training can give it"});
  EXPECT_FALSE(fs::exists(path("no/config.json")));
}

TEST_F(CalibrateTest, SaysWhatIsWrongAndLeavesNoRun) {
  expect_success(calibrate("quantized", {"--method", "minmax"}));
  expect_error(program({"calibrate", "--run", "quantized", "--out", "no"}), 1,
               {"run in quantized is quantized already (W8A8", "_quant", "float run"});
  expect_error(
      calibrate("quantized", {}), 1,
      {"quantized holds a run already (config.json): give another --out, or --overwrite to delete that run\n"});
  expect_error(program({"calibrate", "--run", "nowhere", "--out", "no"}), 1, {"nowhere holds no run"});
  write_tiny_digits(*place_, "large", 8, 8, 9);
  expect_error(calibrate("no", "--data-dir large"), 1, {"[4,8,8,1]", "mnist", "[9,9,1]"});
  expect_error(calibrate("no", {"--data-dir", "elsewhere"}), 1, {"elsewhere"});
  for (const char* place : {"digits/train-labels-idx1-ubyte/no", "/proc/no/no"}) {
    const Outcome outcome = calibrate(place, {});
    expect_error(outcome, 1, {"cannot make the run directory", place});
    EXPECT_EQ(outcome.out, "") << "found out before anything was computed";
  }
  EXPECT_FALSE(fs::exists(path("no")));
}

}  // namespace
}  // namespace miniqat::testing::calibrate_test
