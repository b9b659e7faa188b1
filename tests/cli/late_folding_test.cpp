// `--bn-fold late` from the flags to the integers: what commands take and refuse, resuming, starts from other foldings.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/safetensors.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::late_folding_test {
namespace {

using Json = nlohmann::json;

const Arguments kLate = {"--bn-fold", "late", "--per-channel"};

class LateFoldingTest : public TinyTaskTest {
 protected:
  static Arguments with(Arguments line, const Arguments& more) {
    line.insert(line.end(), more.begin(), more.end());
    return line;
  }
  Outcome train_norm(const std::string& out, const Arguments& more) const {
    return train(out, with({"--model", "norm.json", "--weight-bits", "4", "--schedule", "constant"}, more));
  }
  Json json_of_eval(const std::string& run, const Arguments& more = {}) const {
    const Outcome outcome = program(with({"eval", "--run", run, "--json", "--threads", "1"}, more));
    expect_success(outcome);
    return Json::parse(outcome.out);
  }
};

TEST_F(LateFoldingTest, TrainsResumesAndBecomesIntegers) {
  const Arguments flags = with(kLate, {"--ranges", "learned", "--reestimate", "3"});
  expect_success(train_norm("whole", flags));
  EXPECT_EQ(json_of(path("whole/config.json"))["bn_fold"], "late");
  EXPECT_EQ(json_of(path("whole/summary.json"))["quantization"], "W4A8 per channel learned symmetric weights late");
  expect_success(train_norm("run", with(flags, {"--stop-at", "8"})));
  expect_success(resume("run"));
  EXPECT_EQ(files_of(path("run")), files_of(path("whole")));
  const Outcome verified = program({"verify", "--run", "run", "--no-runtimes", "--threads", "1"});
  expect_success(verified);
  EXPECT_NE(verified.out.find("conv1/Conv2D"), std::string::npos) << verified.out;
  for (const char* format : {"c", "json", "miniqat", "onnx", "tflite"})
    expect_success(program({"export", "--run", "run", "--format", format, "--out", std::string("exported.") + format}));
}

TEST_F(LateFoldingTest, TakesARangeForEachChannelAndScalesOfAnyKind) {
  expect_error(train_norm("run", {"--bn-fold", "late"}), 2, {"--bn-fold late needs --per-channel"});
  expect_error(train_norm("run", with(kLate, {"--scales", "power-of-two"})), 2,
               {"--bn-fold late", "--scales power-of-two"});
  place_.write("bits.json", R"({"conv1": {"per_channel": false}})");
  expect_error(train_norm("run", with(kLate, {"--bits-config", "bits.json"})), 1,
               {"[Conv2D \"conv1/Conv2D\"]", "bits_config", "folded late"});
  EXPECT_FALSE(std::filesystem::exists(path("run/config.json")));
  place_.write("bits.json", R"({"fc": {"per_channel": false}})");
  expect_success(train_norm("run", with(kLate, {"--bits-config", "bits.json"})));
}

TEST_F(LateFoldingTest, RewritesForEvaluationToo) {
  expect_success(program(with({"rewrite", "--graph", "norm.json", "--out", "train.json"}, kLate)));
  expect_success(program(with({"rewrite", "--graph", "norm.json", "--mode", "eval", "--out", "eval.json"}, kLate)));
  expect_success(program(with({"rewrite", "--graph", "train.json", "--mode", "eval", "--out", "again.json"}, kLate)));
  EXPECT_EQ(bytes_of(path("again.json")), bytes_of(path("eval.json")));
  EXPECT_NE(bytes_of(path("eval.json")).find("\"folds_late\": true"), std::string::npos);
  expect_error(program({"rewrite", "--graph", "train.json", "--bn-fold", "single", "--per-channel", "--out", "x.json"}),
               2, {"--bn-fold", "folded as by \"late\", not \"single\""});
  expect_success(program({"rewrite", "--graph", "norm.json", "--out", "tf.json", "--per-channel"}));
  expect_error(program(with({"rewrite", "--graph", "tf.json", "--mode", "eval", "--out", "x.json"}, kLate)), 2,
               {"--bn-fold", "folded as by \"tf\", not \"late\""});
}

/// Ranges of folded weights are not those of raw ones.
TEST_F(LateFoldingTest, FromAnotherFoldingRangesOfWeightsStartAnew) {
  const Arguments learned = {"--ranges", "learned", "--per-channel"};
  expect_success(train_norm("tf", learned));
  const auto starts_from = [&](const std::string& run, const std::string& out, const Arguments& flags) {
    const Outcome outcome = train_norm(out, with(with(learned, flags), {"--init-checkpoint", run, "--steps", "1"}));
    expect_success(outcome);
    const Json names = json_of(path(out) / "init_checkpoint.json");
    return names.contains("anew") ? names["anew"] : Json();
  };
  const Json of_weights = {"conv1/weights_quant/max", "conv1/weights_quant/min", "fc/weights_quant/max",
                           "fc/weights_quant/min"};
  EXPECT_EQ(starts_from("tf", "late", kLate), of_weights);
  EXPECT_EQ(starts_from("late", "later", kLate), Json());
  EXPECT_EQ(starts_from("late", "single", {"--bn-fold", "single"}), of_weights);
  EXPECT_EQ(starts_from("tf", "second", {"--bn-fold", "single"}), Json());
}

TEST_F(LateFoldingTest, IsCalibratedWithEverything) {
  make_float_run(place_, "norm", "float");
  const auto calibrate = [&](const std::string& out, const Arguments& more) {
    return program(with({"calibrate", "--run", "float", "--out", out, "--threads", "1", "--weight-bits", "3",
                         "--activation-bits", "8", "--verbose"},
                        with(kLate, more)));
  };
  expect_success(calibrate("plain", {}));
  const Outcome outcome = calibrate("all", {"--equalize", "--rounding", "adaptive", "--bias-correction"});
  expect_success(outcome);
  EXPECT_NE(outcome.out.find("corrected  conv1/Conv2D: 4 channels"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("rounded    conv1/Conv2D: "), std::string::npos) << outcome.out;
  const auto tensors = [&](const std::string& run) {
    return read_safetensors(path(run) / "checkpoint.safetensors").tensors;
  };
  const auto differ = [&](const std::string& name) {
    const Tensor before = tensors("plain").at(name), after = tensors("all").at(name);
    return !std::ranges::equal(before.values<float>(), after.values<float>());
  };
  EXPECT_TRUE(differ("conv1/beta"));
  EXPECT_FALSE(differ("conv1/moving_mean"));
  EXPECT_GE(json_of_eval("all", {"--integer"})["accuracy"], 0.5);
}

}  // namespace
}  // namespace miniqat::testing::late_folding_test
