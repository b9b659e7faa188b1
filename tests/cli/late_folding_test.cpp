// `--bn-fold late` from the flags to the integers: what commands take and refuse, resuming, starts from other foldings.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/files/safetensors.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::late_folding_test {
namespace {

using Json = nlohmann::json;

const Arguments kLate = "--bn-fold late --per-channel";

class LateFoldingTest : public TinyTaskTest {
 protected:
  Outcome train_norm(const std::string& out, const Arguments& more) const {
    return train(out, "--model norm.json --weight-bits 4 --schedule constant" + more);
  }
  Json json_of_eval(const std::string& run, const Arguments& more = {}) const {
    return Json::parse(expect_success(program(Arguments{"eval", "--run", run, "--json", "--threads", "1"} + more)).out);
  }
};

TEST_F(LateFoldingTest, TrainsResumesAndBecomesIntegers) {
  const Arguments flags = kLate + "--ranges learned --reestimate 3";
  expect_success(train_norm("whole", flags));
  EXPECT_EQ(json_of(path("whole/config.json"))["bn_fold"], "late");
  EXPECT_EQ(json_of(path("whole/summary.json"))["quantization"], "W4A8 per channel learned symmetric weights late");
  expect_success(train_norm("run", flags + "--stop-at 8"));
  expect_success(resume("run"));
  EXPECT_EQ(files_of(path("run")), files_of(path("whole")));
  expect_text(expect_success(program("verify --run run --no-runtimes --threads 1")).out, {"conv1/Conv2D"});
  for (const char* format : {"c", "json", "miniqat", "onnx", "tflite"})
    expect_success(program({"export", "--run", "run", "--format", format, "--out", std::string("exported.") + format}));
}

TEST_F(LateFoldingTest, TakesARangeForEachChannelAndScalesOfAnyKind) {
  expect_error(train_norm("run", {"--bn-fold", "late"}), 2, {"--bn-fold late needs --per-channel"});
  expect_error(train_norm("run", kLate + "--scales power-of-two"), 2, {"--bn-fold late", "--scales power-of-two"});
  place_.write("bits.json", R"({"conv1": {"per_channel": false}})");
  expect_error(train_norm("run", kLate + "--bits-config bits.json"), 1,
               {"[Conv2D \"conv1/Conv2D\"]", "bits_config", "folded late"});
  EXPECT_FALSE(std::filesystem::exists(path("run/config.json")));
  place_.write("bits.json", R"({"fc": {"per_channel": false}})");
  expect_success(train_norm("run", kLate + "--bits-config bits.json"));
}

TEST_F(LateFoldingTest, RewritesForEvaluationToo) {
  expect_success(program("rewrite --graph norm.json --out train.json" + kLate));
  expect_success(program("rewrite --graph norm.json --mode eval --out eval.json" + kLate));
  expect_success(program("rewrite --graph train.json --mode eval --out again.json" + kLate));
  EXPECT_EQ(bytes_of(path("again.json")), bytes_of(path("eval.json")));
  expect_text(bytes_of(path("eval.json")), {"\"folds_late\": true"});
  expect_error(program("rewrite --graph train.json --bn-fold single --per-channel --out x.json"), 2,
               {"--bn-fold", "folded as by \"late\", not \"single\""});
  expect_success(program("rewrite --graph norm.json --out tf.json --per-channel"));
  expect_error(program("rewrite --graph tf.json --mode eval --out x.json" + kLate), 2,
               {"--bn-fold", "folded as by \"tf\", not \"late\""});
}

/// Ranges of folded weights are not those of raw ones.
TEST_F(LateFoldingTest, FromAnotherFoldingRangesOfWeightsStartAnew) {
  const Arguments learned = "--ranges learned --per-channel";
  expect_success(train_norm("tf", learned));
  const auto starts_from = [&](const std::string& run, const std::string& out, const Arguments& flags) {
    const Outcome outcome =
        expect_success(train_norm(out, learned + flags + Arguments{"--init-checkpoint", run, "--steps", "1"}));
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
    return program("calibrate --run float --threads 1 --weight-bits 3 --activation-bits 8 --verbose" +
                   Arguments{"--out", out} + kLate + more);
  };
  expect_success(calibrate("plain", {}));
  expect_text(expect_success(calibrate("all", {"--equalize", "--rounding", "adaptive", "--bias-correction"})).out,
              {"corrected  conv1/Conv2D: 4 channels", "rounded    conv1/Conv2D: "});
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
