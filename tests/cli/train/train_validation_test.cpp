// `train --validation`: a part of the training pictures to choose by, so that nobody has to look at the test pictures.

#include <gtest/gtest.h>

#include "core/text/error.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::train_validation_test {
namespace {

using Json = nlohmann::json;

/// 32 training pictures, batches of 4: with 8 held out an epoch has 6 steps.
class TrainValidationTest : public TinyTaskTest {
 protected:
  Json summary(const std::string& run) const { return json_of(path(run) / "summary.json"); }
  /// The `split` of a run, evaluated by itself.
  Json evaluated(const std::string& run, const std::string& split) const {
    return Json::parse(
        expect_success(program({"eval", "--run", run, "--split", split, "--json", "--threads", "1"})).out);
  }
  std::vector<std::int64_t> steps_with(const std::string& run, const std::string& key) const {
    std::vector<std::int64_t> steps;
    for (const Json& line : lines_of(path(run) / "metrics.jsonl"))
      if (line.contains(key)) steps.push_back(line["step"]);
    return steps;
  }
};

TEST_F(TrainValidationTest, GivesTheAccuracyAfterEachEpochAndTheTestPicturesOnlyThatOfTheEnd) {
  const Outcome outcome = expect_success(train("run", "--validation 8 --steps 15"));
  expect_text(outcome.out, {"24 training, 8 validation and 20 test pictures", "epoch  1.00  validation accuracy ",
                            "epoch  2.50  validation accuracy ", " of 8), test accuracy ", " of 20)\n"});
  EXPECT_EQ(steps_with("run", "validation_accuracy"), (std::vector<std::int64_t>{6, 12, 15}));
  EXPECT_EQ(steps_with("run", "test_accuracy"), std::vector<std::int64_t>{});
  EXPECT_EQ(json_of(path("run/config.json"))["validation"], 8);
  const Json validation = evaluated("run", "validation"), test = evaluated("run", "test");
  EXPECT_EQ(validation["split"], "validation");
  EXPECT_EQ(validation["examples"], 8);
  EXPECT_EQ(test["examples"], 20);
  EXPECT_EQ(evaluated("run", "train")["examples"], 24);
  EXPECT_EQ(summary("run")["validation_accuracy"], validation["accuracy"]);
  EXPECT_EQ(summary("run")["validation_loss"], validation["loss"]);
  EXPECT_EQ(summary("run")["test_accuracy"], test["accuracy"]);
  EXPECT_EQ(summary("run")["test_loss"], test["loss"]);
}

TEST_F(TrainValidationTest, WithoutItNothingChanges) {
  expect_success(train("run"));
  expect_success(train("zero", "--validation 0"));
  EXPECT_EQ(files_of(path("run")), files_of(path("zero")));
  EXPECT_FALSE(summary("run").contains("validation_accuracy"));
  EXPECT_EQ(steps_with("run", "test_accuracy"), (std::vector<std::int64_t>{8, 12}));
}

TEST_F(TrainValidationTest, AStoppedRunHasNotSeenTheTestPicturesAndGoesOnToTheSameFiles) {
  const Arguments held = "--validation 7";
  expect_success(train("whole", held));
  expect_success(train("run", "--validation 7 --stop-at 5"));
  EXPECT_TRUE(summary("run")["test_accuracy"].is_null());
  EXPECT_TRUE(summary("run")["validation_accuracy"].is_number());
  expect_success(resume("run", held));
  RunFiles expected = files_of(path("whole")), files = files_of(path("run"));
  // That of the stop, which the whole run does not have.
  std::erase_if(files.metrics, [](const Json& line) { return line["step"] == 5 && line.contains("validation_loss"); });
  EXPECT_EQ(files, expected);
}

TEST_F(TrainValidationTest, LeavesABatchForTraining) {
  expect_success(train("most", "--validation 28"));
  for (const auto& [wanted, left] : {std::pair("29", "3 training pictures"), std::pair("1000", "0 training pictures")})
    expect_error(train("no", {"--validation", wanted}), 2,
                 {concat("--validation ", wanted, " leaves ", left, " of 32, fewer than one batch of 4")});
  EXPECT_FALSE(std::filesystem::exists(path("no")));
}

TEST_F(TrainValidationTest, EvalNeedsARunThatHasOne) {
  expect_success(train("run"));
  expect_success(train("held", "--validation 8"));
  expect_error(program("eval --run run --split validation"), 2,
               {"--split validation: the run in run has no validation part", "train --validation N"});
  expect_error(program("eval --run held --split validation --dataset fashion-mnist"), 2,
               {"--split validation", "own data set, mnist, not of --dataset fashion-mnist"});
  expect_success(program("export --run held --format miniqat --out m.miniqat"));
  expect_error(program("eval --model m.miniqat --dataset mnist --split validation"), 2,
               {"--split validation is for --run"});
  // Fewer training pictures than the run held out of its own.
  write_tiny_digits(place_, "few", 8, 20);
  expect_error(program("eval --run held --data-dir few"), 1, {"--validation 8 leaves 0 training pictures"});
}

TEST_F(TrainValidationTest, SaysOnceHowManyPicturesOfEachClassDecide) {
  const Outcome outcome = expect_success(train("run", "--validation 10 --stop-at 3"));
  const std::string line = "10 validation pictures, 1 of each of 10 classes\n";
  expect_text(outcome.out, {line});
  const Outcome resumed = expect_success(resume("run"));
  EXPECT_EQ(resumed.out.find(line), std::string::npos) << resumed.out;
  // Classes 0 and 1 have four pictures, the others three: too few for a part of four.
  expect_text(expect_success(train("few", "--validation 4")).out,
              {"note: too small for the validation part, which has none of them: ", "9 (3 training pictures)"});
}

TEST_F(TrainValidationTest, ARunFromAnotherInheritsItsPart) {
  expect_success(train("float", "--validation 10 --float"));
  for (const std::string& start : {std::string("float"), std::string("float/checkpoint.safetensors")}) {
    const Outcome outcome = train("qat", {"--init-checkpoint", start, "--overwrite"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    expect_text(outcome.err, {"the validation part is that of the run in " + start + ", 10 training pictures"});
    EXPECT_EQ(json_of(path("qat/config.json"))["validation"], 10);
  }
  expect_success(train("same", "--init-checkpoint float --validation 10"));
  EXPECT_EQ(files_of(path("same")).checkpoint, files_of(path("qat")).checkpoint);
  expect_error(train("other", "--init-checkpoint float --validation 12"), 2,
               {"--validation 12: the run in float has a validation part of 10 pictures"});
  EXPECT_FALSE(std::filesystem::exists(path("other")));
  expect_success(train("all", "--init-checkpoint float --validation 0"));
  EXPECT_EQ(json_of(path("all/config.json"))["validation"], 0);
  // That is no default there: whoever repeats the run must say it.
  expect_success(program("train --config all/config.json --out repeated"));
  EXPECT_EQ(files_of(path("repeated")).checkpoint, files_of(path("all")).checkpoint);
  expect_text(program("runs . --commands").out, {" --out all --init-checkpoint float --validation 0\n"});
  // The other way round: nobody held these out.
  expect_success(train("none", "--float"));
  const Outcome seen = train("seen", "--init-checkpoint none --validation 10");
  EXPECT_EQ(seen.status, 0);
  expect_text(seen.err, {"note: the run in none was trained with the validation pictures"});
}

/// A run of before: its config.json has no method.
TEST_F(TrainValidationTest, ARunOfBeforeKeepsItsPart) {
  const Arguments held = "--validation 8 --validation-method stride";
  expect_success(train("whole", held));
  expect_success(train("run", held + "--stop-at 5"));
  Json config = json_of(path("run/config.json"));
  EXPECT_EQ(config["validation_method"], "stride");
  config.erase("validation_method");
  place_.write("run/config.json", config.dump());
  expect_success(resume("run"));
  EXPECT_EQ(files_of(path("run")).checkpoint, files_of(path("whole")).checkpoint);
  EXPECT_EQ(summary("run")["validation_accuracy"], evaluated("whole", "validation")["accuracy"]);
  // Of each class its share and every so many are other pictures.
  expect_success(train("by-class", "--validation 8"));
  EXPECT_NE(files_of(path("by-class")).checkpoint, files_of(path("whole")).checkpoint);
  // What begins from it has the part of before, too.
  expect_success(train("next", "--init-checkpoint run --validation 8"));
  EXPECT_EQ(json_of(path("next/config.json"))["validation_method"], "stride");
  expect_error(train("no", "--init-checkpoint run --validation-method class"), 2,
               {"the run in run has a validation part of 8 pictures (--validation-method stride)"});
  // Its settings once more are the same run.
  const Outcome again = program("train --config run/config.json --out again");
  EXPECT_EQ(again.status, 0) << again.err;
  expect_text(again.err, {"--validation-method stride"});
}

TEST_F(TrainValidationTest, CalibrationTakesNoPictureOfIt) {
  expect_success(train("float", "--validation 8 --float"));
  const Outcome outcome = expect_success(program("calibrate --run float --out ptq --batches 100"));
  expect_text(outcome.out,
              {"the float run float has validation accuracy ", "6 batches of 4 training pictures (all",
               ": validation accuracy ", " of 8), test accuracy ", " of 20), in float validation accuracy "});
  const Json result = summary("ptq");
  EXPECT_EQ(result["calibration"]["batches"], 6);
  EXPECT_EQ(result["float_validation_accuracy"], summary("float")["validation_accuracy"]);
  EXPECT_FALSE(result.contains("float_test_accuracy"));
  EXPECT_EQ(result["validation_accuracy"], evaluated("ptq", "validation")["accuracy"]);
  EXPECT_EQ(result["test_accuracy"], evaluated("ptq", "test")["accuracy"]);
  // Of other data all training pictures.
  expect_success(program("calibrate --run float --out other --batches 100 --dataset fashion-mnist --data-dir digits"));
  EXPECT_EQ(summary("other")["calibration"]["batches"], 8);
  EXPECT_EQ(json_of(path("other/config.json"))["validation"], 0);
}

}  // namespace
}  // namespace miniqat::testing::train_validation_test
