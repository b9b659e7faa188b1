// `train --arithmetic`: which runs multiply integers, and that older ones go on as they were.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/engine/session.h"
#include "core/kernels/onednn.h"
#include "tests/busy_threads.h"
#include "tests/cli/run_files.h"
#include "tests/cli/wide_task.h"

namespace miniqat::testing::arithmetic_test {
namespace {

using Json = nlohmann::ordered_json;

/// One with a batch norm whose last layer multiplies integers, a convolution.
std::string classifier_on_integers() {
  std::string text = replaced(tiny_classifier_with_batch_norm(), "[3, 3, 1, 4]", "[3, 3, 1, 12]");
  text = replaced(text, "[4],", "[12],");
  return text.substr(0, text.find(R"(    {"name": "flatten")")) +
         R"(    {"name": "fc/weights", "op": "Variable", "attrs": {"shape": [4, 4, 12, 10], "initializer": {"type": "glorot_uniform"}}},
    {"name": "fc/Conv2D", "op": "Conv2D", "inputs": ["pool1", "fc/weights"], "attrs": {"padding": "VALID"}},
    {"name": "logits", "op": "Reshape", "inputs": ["fc/Conv2D"], "attrs": {"shape": [-1, 10]}}],
   "outputs": ["logits"]})";
}

class ArithmeticTest : public TinyTaskTest {
 protected:
  ArithmeticTest() {
    place_.write("wide.json", wide_classifier());
    place_.write("bits.json", R"({"conv2": 9})");
  }

  Outcome train_wide(const std::string& out, const Arguments& more = {}) const {
    return program(wide_command(out, more));
  }
  static Arguments wide_command(const std::string& out, const Arguments& more = {}) {
    return "train --model wide.json --dataset mnist --data-dir digits --steps 12 --threads 1 --log-every 1 "
           "--weight-bits 4 --activation-bits 4" +
           Arguments{"--out", out} + more;
  }
  std::string arithmetic_of(const std::string& run) const {
    return json_of(path(run) / "config.json").value("arithmetic", "none");
  }
};

TEST_F(ArithmeticTest, RunsOfFewBitsMultiplyIntegersAndSayWhere) {
  const Outcome run = expect_success(train_wide("run", "--profile"));
  expect_text(run.out, {"Conv2D of integers", "% of a forward pass's multiply-adds are on integers, in 1 of 3 layers",
                        "conv1/Conv2D", "1 input channel: bytes are no faster", "fc/MatMul", "7680 products"});
  EXPECT_EQ(arithmetic_of("run"), "integer");
  const Outcome simulated = expect_success(train_wide("simulated", "--profile --arithmetic simulated"));
  EXPECT_EQ(simulated.out.find("of integers"), std::string::npos);
  EXPECT_EQ(arithmetic_of("simulated"), "simulated");
  // Other roundings of the same step.
  EXPECT_NE(checkpoint_bytes("run"), checkpoint_bytes("simulated"));
  // The evaluation takes the run's.
  const Json summary = json_of(path("run/summary.json"));
  const Json again = Json::parse(expect_success(program("eval --run run --json --threads 1")).out);
  EXPECT_EQ(summary["test_loss"], again["loss"]);
}

TEST_F(ArithmeticTest, AProductForStatisticsIsSaidToBeOne) {
  place_.write("norm.json", classifier_on_integers());
  const Arguments norm = "train --model norm.json --dataset mnist --data-dir digits --steps 1 --threads 1 --profile ";
  const std::string reason = "for the statistics of its batch norm";
  expect_text(expect_success(program(norm + "--out tf")).out, {reason});
  EXPECT_EQ(expect_success(program(norm + "--out single --bn-fold single")).out.find(reason), std::string::npos);
}

/// What other commands measure of a run's network, `eval` measures of the run, to the last bit. (Logits of 16 bits show
/// the roundings of the simulation.)
TEST_F(ArithmeticTest, EveryMeasurementIsInTheRunsArithmetic) {
  place_.write("norm.json", classifier_on_integers());
  write_tiny_digits(place_, "many", 64, 400);
  const Arguments data = "--model norm.json --dataset mnist --data-dir many --threads 1";
  const Arguments bits = "--weight-bits 4 --activation-bits 4 --logits-bits 16 --bn-fold single --threads 1";
  const auto expect_again = [&](const std::string& run) {
    const Json again = Json::parse(expect_success(program({"eval", "--run", run, "--json", "--threads", "1"})).out);
    EXPECT_EQ(json_of(path(run) / "summary.json")["test_loss"], again["loss"]) << run;
  };
  expect_success(program("train --float --steps 60 --out float" + data));
  expect_success(program("calibrate --run float --batches 3 --out calibrated" + bits));
  expect_again("calibrated");
  expect_success(program("train --steps 12 --reestimate 0 --out trained" + data + bits));
  expect_success(program("reestimate --run trained --batches 3 --threads 1"));
  expect_again("trained");
  // The network before its re-estimation, which is chosen where both are as good, is measured anew.
  expect_success(program("quantize float --steps 12 --reestimate 3 --validation 20 --out quantized" + bits));
  expect_again("quantized");
  EXPECT_EQ(arithmetic_of("quantized/calibrated"), "integer");
  expect_success(program(
      "quantize float --steps 12 --reestimate 3 --validation 20 --arithmetic simulated --out simulated" + bits));
  EXPECT_EQ(arithmetic_of("simulated/calibrated"), "simulated");
}

/// Whatever the run's own is.
TEST_F(ArithmeticTest, VerifyComparesBothWithTheIntegerEngine) {
  for (const std::string arithmetic : {"integer", "simulated"}) {
    expect_success(train_wide(arithmetic, {"--arithmetic", arithmetic}));
    const Arguments verify = {"verify", "--run", arithmetic, "--threads", "1", "--no-runtimes"};
    const Json json = Json::parse(expect_success(program(verify + "--json")).out);
    const Json &layers = json["layers"], &on_integers = json["on_integers"];
    EXPECT_EQ(on_integers["multiplying"], Json::array({"conv2/Conv2D"}));
    EXPECT_EQ(on_integers["outputs"]["count"], json["simulated"]["outputs"]["count"]);
    ASSERT_EQ(on_integers["layers"].size(), layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const Json& layer = on_integers["layers"][i];
      EXPECT_EQ(layer["operation"], layers[i]["operation"]);
      EXPECT_EQ(layer["end_to_end"]["count"], layers[i]["end_to_end"]["count"]);
      EXPECT_LE(layer["alone"]["largest_difference"], 1) << layer["operation"];
      EXPECT_NEAR(layer["alone"]["share"], layers[i]["alone"]["share"].get<double>(), 0.01) << layer["operation"];
    }
    expect_text(expect_success(program(verify)).out, {"\non integers ", " *\n", "* multiplies integers"});
  }
}

TEST_F(ArithmeticTest, AStoppedRunGoesOnToTheSameBits) {
  expect_success(train_wide("whole"));
  expect_success(train_wide("run", "--stop-at 5"));
  expect_success(resume("run"));
  EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("whole"));
}

TEST_F(ArithmeticTest, ARunOfBeforeStaysSimulated) {
  expect_success(train_wide("whole", "--arithmetic simulated"));
  expect_success(train_wide("run", "--arithmetic simulated --stop-at 5"));
  Json config = json_of(path("run/config.json"));
  config.erase("arithmetic");
  place_.write("run/config.json", config.dump());
  expect_success(resume("run"));
  EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("whole"));
}

TEST_F(ArithmeticTest, SlicesHaveTheSameBitsOnAnyNumberOfThreads) {
  expect_success(train_wide("one", "--shards 2"));
  expect_success(train_wide("two", "--shards 2 --threads 2"));
  EXPECT_EQ(checkpoint_bytes("one"), checkpoint_bytes("two"));
}

/// By any setting in the same way before a stop and after it, and in slices on any number of threads.
TEST_F(ArithmeticTest, RoundedRunsRepeatTheirBits) {
  if (rounding_flags().empty()) GTEST_SKIP() << "this processor has no products to round for";
  expect_success(train_wide("plain"));
  for (const std::string& flag : rounding_flags()) {
    const Arguments rounds = Arguments(flag) + "--overwrite";
    expect_success(train_wide("whole", rounds));
    EXPECT_TRUE(checkpoint_bytes("whole") != checkpoint_bytes("plain")) << flag;
    const Json config = json_of(path("whole/config.json"));
    EXPECT_EQ(concat("--gradients ", config["gradients"].get<std::string>()) == flag, flag.starts_with("--gradients"));
    expect_success(train_wide("run", rounds + "--stop-at 5"));
    expect_success(resume("run"));
    EXPECT_TRUE(checkpoint_bytes("run") == checkpoint_bytes("whole")) << flag;
    expect_success(train_wide("one", rounds + "--shards 2"));
    expect_success(train_wide("two", rounds + "--shards 2 --threads 2"));
    EXPECT_TRUE(checkpoint_bytes("one") == checkpoint_bytes("two")) << flag;
  }
}

/// The one setting of the computation that may change in the middle of a run. (These runs have float32 gradients from
/// the beginning, whatever their config.json says, so that every processor can make them.)
TEST_F(ArithmeticTest, ARunWithoutItsKernelsGoesOnWithGradientsInFloat32) {
  expect_success(train_wide("whole"));
  const auto change = [&](const std::string& run, const std::string& gradients) {
    Json config = json_of(path(run) / "config.json");
    config["gradients"] = gradients;
    place_.write(run + "/config.json", config.dump());
  };
  for (const std::string gradients : {"bfloat16", "int8"}) {
    expect_success(train_wide("run", "--overwrite --stop-at 5"));
    change("run", gradients);
    {
      const EnvironmentVariable cap("MINIQAT_MAX_ISA", "avx2");
      expect_error(
          started("train --resume --out run", place_.path()), 2,
          {"--gradients " + gradients + " needs a processor", "elsewhere use --gradients float32, also with --resume"});
    }
    expect_error(resume("run", "--gradients " + std::string(gradients == "int8" ? "bfloat16" : "int8")), 2,
                 {"--gradients differs from the run's own (\"" + gradients + "\")"});
    expect_text(expect_success(resume("run", "--gradients float32 --stop-at 7")).out,
                {"Gradients were rounded to " + gradients + " and are float32 after step 5."});
    EXPECT_EQ(json_of(path("run/config.json"))["gradients"], "float32");
    expect_error(resume("run", "--gradients " + gradients), 2,
                 {"--gradients differs from the run's own (\"float32\")"});
    expect_success(resume("run"));
    EXPECT_TRUE(checkpoint_bytes("run") == checkpoint_bytes("whole"));
    const nlohmann::json line = {{"step", 5}, {"gradients_before", gradients}, {"gradients", "float32"}};
    EXPECT_EQ(std::ranges::count(lines_of(path("run/metrics.jsonl")), line), 1);
  }
  change("whole", "int8");
  expect_error(resume("whole", "--gradients float32"), 2, {"has done all of its steps, with gradients in int8"});
}

TEST_F(ArithmeticTest, ProductsInBfloat16) {
  if (!has_bfloat16_products()) GTEST_SKIP() << "this processor has no products of bfloat16";
  const Arguments in_float = "train --model wide.json --dataset mnist --data-dir digits --float --steps 3 --threads 1",
                  in_bfloat16 = in_float + "--compute bfloat16";
  expect_success(program(in_float + "--out float"));
  const std::string said = expect_success(program(in_bfloat16 + "--out rounded")).out;
  expect_text(said, {"note: --compute bfloat16 rounds in 1 of 3 layers"});
  EXPECT_EQ(said.find("slower than float32 on this processor") == said.npos, onednn::has_fast_bfloat16()) << said;
  EXPECT_TRUE(checkpoint_bytes("rounded") != checkpoint_bytes("float"));
  // Evaluation is in float32, so that any machine measures the same.
  EXPECT_EQ(json_of(path("rounded/summary.json"))["test_loss"],
            Json::parse(expect_success(program("eval --run rounded --json --threads 1")).out)["loss"]);
  expect_success(program(in_bfloat16 + "--out run --stop-at 1"));
  expect_success(resume("run"));
  EXPECT_TRUE(checkpoint_bytes("run") == checkpoint_bytes("rounded"));
}

TEST_F(ArithmeticTest, RoundingIsRefusedWhereItWouldRoundOtherThings) {
  const Arguments wide = "train --model wide.json --dataset mnist --data-dir digits ";
  for (const std::string& flag : rounding_flags()) {
    if (flag.starts_with("--gradients"))
      expect_error(train_wide("no", flag + " --arithmetic simulated"), 2, {flag, "--arithmetic integer"});
    else
      for (const std::string wider : {"--activation-bits 9", "--ends-bits 9", "--bits-config bits.json"})
        expect_error(train_wide("no", wider + " " + flag), 2, {flag, "at most 8 bits", " has 9"});
    // No layer reads them.
    expect_success(train_wide("logits", "--overwrite --logits-bits 9 " + flag));
  }
  expect_error(program(wide + "--gradients int8 --compute bfloat16"), 2, {"--gradients int8", "--compute bfloat16"});
  expect_error(program(wide + "--float --gradients bfloat16"), 2, {"--gradients", "--float"});
  const EnvironmentVariable cap("MINIQAT_MAX_ISA", "avx2");
  expect_error(started(wide_command("no", "--gradients bfloat16"), place_.path()), 2,
               {"--gradients bfloat16", "AVX-512 BF16"});
  expect_error(started(wide_command("no", "--gradients int8"), place_.path()), 2, {"--gradients int8", "VNNI"});
}

/// Refused where the settings tell, else noted.
TEST_F(ArithmeticTest, RoundingWithoutEffect) {
  const Arguments lenet5 = "train --model lenet5 --dataset synthetic --steps 1 --threads 1 --overwrite --out five ";
  expect_error(program(lenet5 + "--compute bfloat16 --gradients float32"), 2,
               {"--gradients has no effect with --compute bfloat16"});
  if (has_bfloat16_products()) {
    expect_text(expect_success(train_wide("wide", "--compute bfloat16 --arithmetic simulated")).out,
                {"note: --compute bfloat16 has no effect on this network: ", "read quantizers"});
    expect_text(expect_success(program(lenet5 + "--compute bfloat16 --arithmetic simulated")).out,
                {"note: --compute bfloat16 has no effect on this network: "});
    // Before quantization begins.
    expect_text(expect_success(program(lenet5 + "--compute bfloat16 --arithmetic simulated --quant-delay 1")).out,
                {"note: --compute bfloat16 has no effect on this network, once quantization has begun"});
  }
  if (!has_int8_products()) return;
  expect_text(expect_success(program(lenet5 + "--gradients int8")).out,
              {"note: --gradients int8 has no effect on this network: ", "too small"});
  expect_text(expect_success(train_wide("bytes", "--gradients int8")).out,
              {"note: --gradients int8 rounds in 1 of 3 layers"});
}

/// A thread that loses its core leaves its parts to others.
TEST_F(ArithmeticTest, BusyNeighboursChangeNoBits) {
  write_tiny_digits(place_, "large", 128, 20, 28);
  std::vector<std::string> ways = rounding_flags();
  ways.emplace_back("--arithmetic integer");
  for (const std::string& way : ways) {
    const Arguments lenet =
        "train --model lenet --width 0.5 --dataset mnist --data-dir large --batch-size 128 --steps 3 --threads 2 "
        "--weight-bits 4 --activation-bits 4 --overwrite" +
        Arguments(way);
    expect_success(program(lenet + "--out quiet"));
    const BusyThreads neighbours;
    for (int round = 0; round < 3; ++round) {
      expect_success(program(lenet + "--out loaded"));
      EXPECT_TRUE(checkpoint_bytes("loaded") == checkpoint_bytes("quiet")) << way;
    }
  }
}

/// Whose kernels once waited for threads that did not exist, as in any program that links the library.
TEST_F(ArithmeticTest, ThreadsOfOpenMpComputeTheSameBits) {
  const std::string integers = "--weight-bits 4 --activation-bits 4", wide = " --model lenet --width 0.5 ";
  write_tiny_digits(place_, "large", 128, 20, 28);
  std::vector<std::string> ways = {"--float", integers};
  for (const std::string& flag : rounding_flags()) ways.push_back(integers + wide + flag);
  if (has_bfloat16_products()) ways.push_back("--float --compute bfloat16" + wide);
  for (const std::string& way : ways) {
    const Arguments lenet =
        "train --model lenet5 --dataset mnist --data-dir large --batch-size 128 --steps 2 --threads 2 --overwrite" +
        Arguments(way);
    expect_success(started(lenet + "--out own", place_.path()));
    const EnvironmentVariable team("MINIQAT_TEAM", "openmp");
    expect_success(started(lenet + "--out openmp", place_.path()));
    EXPECT_TRUE(checkpoint_bytes("openmp") == checkpoint_bytes("own")) << way;
  }
}

TEST_F(ArithmeticTest, AFloatRunHasNone) {
  expect_error(program("train --model wide.json --dataset mnist --data-dir digits --float --arithmetic integer"), 2,
               {"--arithmetic", "--float"});
  expect_error(train_wide("no", "--arithmetic bytes"), 2, {"--arithmetic", "simulated", "integer"});
}

}  // namespace
}  // namespace miniqat::testing::arithmetic_test
