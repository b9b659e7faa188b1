// `miniqat reestimate` and `train --reestimate`: the moving statistics of batch norms, estimated again from some
// batches.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/files/safetensors.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::reestimate_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// The statistics, and the ranges of the weights that they scale.
const std::vector<std::string> kEstimated = {"conv1/moving_mean",       "conv1/moving_variance",
                                             "conv1/weights_quant/min", "conv1/weights_quant/max",
                                             "fc/weights_quant/min",    "fc/weights_quant/max"};

class ReestimateTest : public TinyTaskTest {
 protected:
  /// A run with a batch norm; 12 steps, eight an epoch.
  void train_norm(const std::string& out, const Arguments& more = {}) const {
    const Arguments quantized = std::ranges::count(more, "--float") == 0 ? "--weight-bits 4 --ranges observed" : "";
    expect_success(train(out, "--model norm.json --schedule constant" + quantized + more));
  }
  Outcome reestimate(const std::string& run, const Arguments& more = {}) const {
    return program(Arguments{"reestimate", "--run", run, "--threads", "1"} + more);
  }
  Safetensors checkpoint(const std::string& run) const {
    return read_safetensors(path(run) / "checkpoint.safetensors");
  }
  Json summary(const std::string& run) const { return json_of(path(run) / "summary.json"); }
  double accuracy(const std::string& run, const std::string& split = "test") const {
    return Json::parse(
        expect_success(program({"eval", "--run", run, "--split", split, "--json", "--threads", "1"})).out)["accuracy"];
  }
  static bool same(const Tensor& a, const Tensor& b) {
    const auto bytes = [](const Tensor& tensor) { return static_cast<const char*>(tensor.raw()); };
    return a.dtype() == b.dtype() && a.shape() == b.shape() && std::equal(bytes(a), bytes(a) + a.bytes(), bytes(b));
  }
};

TEST_F(ReestimateTest, ChangesTheStatisticsAndTheAccuraciesOfTheSummary) {
  for (const std::string fold : {"tf", "single"}) {
    SCOPED_TRACE(fold);
    train_norm(fold, {"--bn-fold", fold});
    const Safetensors before = checkpoint(fold);
    const Json former = summary(fold);
    const Outcome outcome = expect_success(reestimate(fold, {"--batches", "3", "--seed", "9"}));
    expect_text(outcome.out,
                {std::string("norm.json on mnist: the run " + fold + " has test accuracy "),
                 std::string("moving averages\n"), std::string("1 batch norm, 3 batches of 4 training pictures\n"),
                 std::string("batch 3/3\n"), std::string(" of 20), before "), "; run directory " + fold + "\n"});
    const Safetensors after = checkpoint(fold);
    EXPECT_EQ(after.tensors.size(), before.tensors.size() + kEstimated.size());
    EXPECT_EQ(after.metadata, before.metadata);
    for (const auto& [name, tensor] : before.tensors) {
      const bool estimated = std::ranges::count(kEstimated, name) > 0;
      EXPECT_EQ(same(after.tensors.at(name), tensor), !estimated) << name;
      if (estimated) {
        EXPECT_TRUE(same(after.tensors.at("trained:" + name), tensor)) << name;
      }
    }
    Json expected = former;
    expected["test_accuracy"] = accuracy(fold);
    expected["test_balanced_accuracy"] = summary(fold)["test_balanced_accuracy"];
    expected["test_loss"] = summary(fold)["test_loss"];
    expected["reestimation"] = {
        {"batches", 3}, {"seed", 9}, {"run", fold}, {"threads", 1}, {"machine", former["machine"]}};
    EXPECT_EQ(summary(fold), expected);
    EXPECT_NE(summary(fold)["test_loss"], former["test_loss"]);
  }
}

TEST_F(ReestimateTest, BeginsFromTheMovingAveragesHoweverOften) {
  train_norm("run");
  fs::copy(path("run"), path("once"));
  expect_success(reestimate("once"));
  EXPECT_EQ(summary("once")["reestimation"]["batches"], 8) << "all there are";
  const Outcome other = reestimate("run", {"--batches", "2"});
  EXPECT_NE(checkpoint_bytes("run"), checkpoint_bytes("once"));
  const Outcome again = reestimate("run");
  EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("once"));
  EXPECT_EQ(again.out.substr(0, again.out.find('\n')), other.out.substr(0, other.out.find('\n')));
}

TEST_F(ReestimateTest, AnotherDirectoryGetsAWholeRun) {
  place_.write("bits.json", R"({"fc": {"weight_bits": 5}})");
  train_norm("run", {"--bits-config", "bits.json"});
  fs::copy(path("run"), path("in-place"));
  const RunFiles before = files_of(path("run"));
  expect_success(reestimate("in-place"));
  expect_success(reestimate("run", {"--out", "other"}));
  EXPECT_EQ(files_of(path("run")), before);
  EXPECT_EQ(checkpoint_bytes("other"), checkpoint_bytes("in-place"));
  for (const char* file : {"train_graph.json", "eval_graph.json", "bits.json"})
    EXPECT_EQ(bytes_of(path("other") / file), bytes_of(path("run") / file)) << file;
  Json config = json_of(path("run/config.json"));
  config["bits_config"] = "other/bits.json";
  EXPECT_EQ(json_of(path("other/config.json")), config);
  EXPECT_EQ(summary("other")["test_loss"], summary("in-place")["test_loss"]);
  EXPECT_EQ(summary("other")["test_accuracy"], accuracy("other"));
  expect_success(resume("other", "--steps 14"));
  expect_error(reestimate("run", {"--out", "other"}), 1, {"other holds a run already", "--overwrite"});
  expect_success(reestimate("run", {"--out", "other", "--overwrite"}));
  EXPECT_EQ(checkpoint_bytes("other"), checkpoint_bytes("in-place"));
}

TEST_F(ReestimateTest, MeasuresOnTheValidationPartAndTakesNoPictureOfIt) {
  train_norm("run", {"--validation", "8", "--float"});
  const Outcome outcome = expect_success(reestimate("run"));
  expect_text(outcome.out,
              {"the run run has validation accuracy ", "6 batches of 4 training pictures (all there are)",
               ": validation accuracy ", " of 8), test accuracy ", " of 20), before validation accuracy "});
  EXPECT_EQ(summary("run")["validation_accuracy"], accuracy("run", "validation"));
  EXPECT_EQ(summary("run")["test_accuracy"], accuracy("run"));
}

TEST_F(ReestimateTest, SaysWhatIsWrongAndChangesNothing) {
  train_norm("run");
  const std::string before = checkpoint_bytes("run");
  expect_success(train("tiny"));
  expect_error(reestimate("tiny"), 1, {"the run in tiny has no batch norm"});
  train_norm("frozen", {"--freeze-bn-delay", "7"});
  expect_error(reestimate("frozen"), 1,
               {"the run in frozen has frozen its batch norms at step 7", "--freeze-bn-delay"});
  train_norm("half", {"--stop-at", "5"});
  expect_error(reestimate("half"), 1, {"the run in half is unfinished: its checkpoint is of step 5", "--resume"});
  expect_error(reestimate("nowhere"), 1, {"nowhere holds no run"});
  expect_error(reestimate("run", {"--data-dir", "elsewhere"}), 1, {"elsewhere"});
  write_tiny_digits(place_, "few", 3, 20);
  expect_error(reestimate("run", {"--data-dir", "few"}), 1, {"fewer than one batch of 4"});
  EXPECT_EQ(checkpoint_bytes("run"), before);
  train_norm("float", {"--float"});
  EXPECT_EQ(program("calibrate --run float --out ptq --batches 2").status, 0);
  expect_error(reestimate("ptq"), 1, {"the run in ptq was calibrated, not trained"});
  EXPECT_FALSE(fs::exists(path("elsewhere")));
}

TEST_F(ReestimateTest, TrainDoesTheSameAfterItsLastStep) {
  train_norm("plain", {"--seed", "5"});
  expect_success(reestimate("plain", {"--batches", "3", "--seed", "5"}));
  train_norm("run", {"--seed", "5", "--reestimate", "3"});
  EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("plain"));
  EXPECT_EQ(summary("run")["test_loss"], summary("plain")["test_loss"]);
  EXPECT_EQ(summary("run")["test_accuracy"], accuracy("run"));
  EXPECT_EQ(json_of(path("run/config.json"))["reestimate"], 3);
  const Outcome complete = resume("run");
  expect_text(complete.out, {"is complete: 12 of 12 steps done"});
}

TEST_F(ReestimateTest, ALongerRunGoesOnWithTheMovingAverages) {
  train_norm("run", {"--reestimate", "3"});
  expect_success(resume("run", "--steps 20 --stop-at 14"));
  for (const auto& [name, tensor] : checkpoint("run").tensors) EXPECT_FALSE(name.starts_with("trained:")) << name;
  expect_success(resume("run"));
  train_norm("whole", {"--reestimate", "3", "--steps", "20"});
  EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("whole"));
  // So does one whose statistics the command has estimated.
  train_norm("command");
  expect_success(reestimate("command"));
  expect_success(resume("command", "--steps 20"));
  train_norm("plain", {"--steps", "20"});
  EXPECT_EQ(checkpoint_bytes("command"), checkpoint_bytes("plain"));
}

TEST_F(ReestimateTest, AnotherRunStartsFromTheEstimates) {
  train_norm("run", {"--float", "--reestimate", "3"});
  expect_success(train("next", "--model norm.json --init-checkpoint run --freeze-bn-delay 0"));
  EXPECT_TRUE(same(checkpoint("next").tensors.at(kEstimated[0]), checkpoint("run").tensors.at(kEstimated[0])));
}

TEST_F(ReestimateTest, TrainDoesItUnaskedAtFewBitsPerChannel) {
  const auto output = [&](const std::string& run, Arguments flags) {
    flags.insert(flags.begin(), {"--model", "norm.json", "--overwrite"});
    return expect_success(train(run, flags)).out;
  };
  const auto estimates = [&](Arguments flags) {
    return output("run", std::move(flags)).find("re-estimated the statistics") != std::string::npos;
  };
  EXPECT_TRUE(estimates({"--weight-bits", "4", "--per-channel"}));
  output("asked", {"--weight-bits", "4", "--per-channel", "--reestimate", "50"});
  EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("asked"));
  EXPECT_FALSE(estimates({"--weight-bits", "5", "--per-channel"}));
  EXPECT_FALSE(estimates({"--float"}));
  EXPECT_FALSE(estimates({"--weight-bits", "4", "--per-channel", "--reestimate", "0"}));
  EXPECT_FALSE(estimates({"--weight-bits", "4", "--per-channel", "--freeze-bn-delay", "3"})) << "they keep theirs";
  const std::string advice = "--per-channel, a range for each channel";
  EXPECT_FALSE(estimates({"--weight-bits", "4"})) << "it may do harm with a range for all channels";
  expect_text(output("run", {"--weight-bits", "4"}), {advice});
  EXPECT_EQ(output("run", {"--weight-bits", "5"}).find(advice), std::string::npos);
  EXPECT_EQ(output("run", {"--weight-bits", "4", "--model", "tiny.json"}).find(advice), std::string::npos);
}

TEST_F(ReestimateTest, ARunOfTheTimeBeforeGoesOnWithoutIt) {
  train_norm("run", {"--per-channel", "--stop-at", "8"});
  Json config = json_of(path("run/config.json"));
  config.erase("reestimate");
  place_.write("run/config.json", config.dump());
  expect_success(resume("run"));
  train_norm("plain", {"--per-channel", "--reestimate", "0"});
  EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("plain"));
}

TEST_F(ReestimateTest, TrainRefusesItWithoutBatchNormsToEstimate) {
  expect_error(train("no", "--model norm.json --reestimate 3 --freeze-bn-delay 12"), 2,
               {"--reestimate: norm.json has frozen its batch norms at step 12 (--freeze-bn-delay)"});
  EXPECT_FALSE(fs::exists(path("no")));
  EXPECT_EQ(train("late", "--model norm.json --reestimate 3 --freeze-bn-delay 13").status, 0);
}

}  // namespace
}  // namespace miniqat::testing::reestimate_test
