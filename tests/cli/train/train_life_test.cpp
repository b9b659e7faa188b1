// The life of a run: who may write to its directory, how it ends by a signal, how it goes on, how it becomes longer.

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "layers/layers.h"
#include "quantize/quantize.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::train_life_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const Arguments kEndless = "--schedule constant --learning-rate 0.01 --steps 100000000";

/// `signal` is ignored by the programs started while this lives, as by a shell's background jobs.
class Ignored {
 public:
  explicit Ignored(int signal) : signal_(signal), before_(std::signal(signal, SIG_IGN)) {}
  ~Ignored() { std::signal(signal_, before_); }
  Ignored(const Ignored&) = delete;

 private:
  int signal_;
  void (*before_)(int);
};

class TrainLifeTest : public TinyTaskTest {
 protected:
  void SetUp() override {
    layers::register_ops();
    quantize::register_ops();
  }

  void set_complete(const std::string& run, bool complete) const {
    Json summary = json_of(path(run + "/summary.json"));
    summary["complete"] = complete;
    place_.write(run + "/summary.json", summary.dump());
  }
};

// The length of an uninterrupted run depends on when the signal arrives, so the rate is constant and both runs are
// stopped at the same step.
TEST_F(TrainLifeTest, AfterASignalTheRunIsSavedAndTheProcessEndsByThatSignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    SCOPED_TRACE(signal);
    const std::string run = "interrupted" + std::to_string(signal);
    Program program(train_command(run, kEndless), place_.path());
    program.wait_for_output("epoch");
    program.send(signal);
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.status, 128 + signal);
    EXPECT_EQ(outcome.err, "");
    const std::int64_t stopped = step_of(path(run));
    expect_text(outcome.out, {"stopped after step " + std::to_string(stopped)});
    expect_text(outcome.out, {"miniqat train --resume --out " + run});
    EXPECT_EQ(json_of(path(run + "/summary.json"))["steps"], stopped);
    EXPECT_FALSE(fs::exists(path(run + "/.lock")));

    const std::string end = std::to_string(stopped + 3);
    expect_success(resume(run, {"--stop-at", end}));
    expect_success(train(run + "-whole", kEndless + Arguments{"--stop-at", end}));
    EXPECT_EQ(checkpoint_bytes(run), checkpoint_bytes(run + "-whole"));
  }
}

TEST_F(TrainLifeTest, ASignalThatWasIgnoredStaysIgnored) {
  const Ignored interrupts(SIGINT);
  const Ignored hangups(SIGHUP);
  Program program(train_command("run", kEndless), place_.path());
  program.wait_for_output("epoch");
  program.send(SIGINT);
  program.send(SIGHUP);
  const std::int64_t step = step_of(path("run"));
  for (int naps = 0; naps < 5000 && step_of(path("run")) < step + 8; ++naps) usleep(2000);
  EXPECT_GE(step_of(path("run")), step + 8);
  program.send(SIGTERM);
  EXPECT_EQ(program.wait().status, 128 + SIGTERM);
}

TEST_F(TrainLifeTest, AReaderWhoGoesAwayDoesNotLoseTheRun) {
  const std::string command = "cd '" + place_.path().string() + "' && { '" + program_path() +
                              "' train --model tiny.json --dataset mnist --data-dir digits --epochs 40 --threads 1 "
                              "--out run 2>err; echo $? >status; } | head -1 >/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(json_of(path("run/summary.json"))["complete"], true);
  EXPECT_EQ(bytes_of(path("status")), "0\n") << bytes_of(path("err"));
}

TEST_F(TrainLifeTest, TwoProcessesDoNotShareADirectory) {
  Program first(train_command("run", kEndless), place_.path());
  first.wait_for_output("epoch");
  const Json owner = json_of(path("run/.lock"));
  const std::vector<std::string> parts = {"run is in use by process " + owner["process"].dump() + " on ",
                                          owner["host"].get<std::string>()};
  expect_error(train("run"), 1, parts);
  expect_error(train("run", "--overwrite"), 1, parts);
  expect_error(resume("run"), 1, parts);
  // Who only reads is not kept out, and told how far the run is.
  const Outcome evaluated = program("eval --run run");
  EXPECT_EQ(evaluated.status, 0);
  expect_text(evaluated.err, {"note: the run in run is unfinished: its checkpoint is of step "});
  first.send(SIGKILL);
  EXPECT_EQ(first.wait().status, 128 + SIGKILL);
  EXPECT_TRUE(fs::exists(path("run/.lock")));
  expect_success(resume("run", {"--stop-at", std::to_string(step_of(path("run")) + 3)}));
  EXPECT_FALSE(fs::exists(path("run/.lock")));
}

// A process that is only loading its data has the directory as well.
TEST_F(TrainLifeTest, ADirectoryIsLockedBeforeThereIsARun) {
  fs::create_directory(path("run"));
  place_.write("run/.lock", R"({"process": 4711, "host": "box"})");
  const int file = ::open(path("run/.lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  expect_error(train("run"), 1, {"run is in use by process 4711 on box"});
  place_.write("run/.lock", "");
  expect_error(program("calibrate --run float --out run"), 1, {"run is in use by another process"});
  ::close(file);
  expect_success(train("run"));
}

TEST_F(TrainLifeTest, WhatTheDeadLeftIsInNobodysWay) {
  expect_success(train("whole"));
  // Between bits.json and config.json: no run yet.
  place_.write("run/.lock", R"({"process": 1, "host": "box"})");
  place_.write("run/bits.json", "{}");
  place_.write("run/.config.json.1.0.tmp", "{");
  place_.write("run/.checkpoint.safetensors.99.12.tmp", "half");
  place_.write("run/.mine.1.0.tmp", "not ours");
  expect_success(train("run"));
  RunFiles files = files_of(path("run"));
  EXPECT_EQ(std::erase(files.names, ".mine.1.0.tmp"), 1u);
  EXPECT_TRUE(files == files_of(path("whole")));
  // Without a sign that a run died there, the file is somebody's.
  place_.write("other/bits.json", "{}");
  expect_error(train("other"), 1, {"other holds no run, but a file that a run would overwrite: bits.json"});
  EXPECT_EQ(bytes_of(path("other/bits.json")), "{}");
}

// `--out ~` scattered a run's files there.
TEST_F(TrainLifeTest, ARunNeedsANewOrAnEmptyFolder) {
  make_float_run(place_, "norm", "float");
  place_.write("home/.notes", "mine");
  const Arguments commands[] = {train_command("home"), "calibrate --run float --out home",
                                "quantize --run float --steps 1 --out home", "reestimate --run float --out home"};
  for (const Arguments& command : commands)
    expect_error(program(command), 2, {command[0], "home holds no run, but something else: .notes;", "--overwrite"});
  EXPECT_EQ(std::distance(fs::directory_iterator(path("home")), {}), 1);
  expect_success(train("home", "--overwrite"));
  EXPECT_EQ(bytes_of(path("home/.notes")), "mine");
  fs::create_directory(path("empty"));
  expect_success(train("empty"));
}

TEST_F(TrainLifeTest, FilesOfOthersStayWhatTheyAre) {
  place_.write("project/config.json", R"({"name": "mine"})");
  expect_error(train("project", "--overwrite"), 1, {"project/config.json does not belong to a run"});
  EXPECT_EQ(bytes_of(path("project/config.json")), R"({"name": "mine"})");
  place_.write("mine.txt", "mine");
  fs::create_directory(path("linked"));
  fs::create_symlink(path("mine.txt"), path("linked/.lock"));
  expect_error(train("linked"), 1, {"cannot write linked/.lock"});
  EXPECT_EQ(bytes_of(path("mine.txt")), "mine");
  for (const std::string text : {"4711", R"({"name": "mine"})", "[]\n"}) {
    place_.write("other/.lock", text);
    place_.write("other/bits.json", "mine");
    for (const Arguments& more : {Arguments{}, {"--overwrite"}})
      expect_error(train("other", more), 1, {"other/.lock was not written by miniqat"});
    EXPECT_EQ(bytes_of(path("other/.lock")), text);
    EXPECT_EQ(bytes_of(path("other/bits.json")), "mine");
  }
  // An empty one, as many tools make it, is no sign that a run died there.
  place_.write("other/.lock", "");
  expect_error(train("other"), 1, {"other holds no run, but a file that a run would overwrite: bits.json"});
  fs::create_directory(path("pipe"));
  ASSERT_EQ(::mkfifo(path("pipe/.lock").c_str(), 0600), 0);
  expect_error(train("pipe"), 1, {"pipe/.lock was not written by miniqat"});
  EXPECT_TRUE(fs::is_fifo(path("pipe/.lock")));
}

// A container counts its processes anew: that which died had our number.
TEST_F(TrainLifeTest, ATemporaryFileOfTheSameProcessIdIsNoCollision) {
  const fs::path folder = path("run");
  fs::create_directory(folder);
  const std::string script =
      "cd '" + place_.path().string() +
      "' && for f in config.json train_graph.json eval_graph.json checkpoint.safetensors summary.json; do "
      "for n in 0 1 2 3 4 5 6; do echo half >run/.$f.$$.$n.tmp; done; done; exec '" +
      program_path() + "' export --run whole --format json --out run/config.json";
  expect_success(train("whole"));
  EXPECT_EQ(std::system(script.c_str()), 0);
  EXPECT_TRUE(fs::exists(path("run/config.json")));
}

TEST_F(TrainLifeTest, ARunWithoutATrainedStepIsNotTaken) {
  expect_success(train("float", "--float"));
  expect_error(train("nan", "--float --learning-rate 1e30 --schedule constant"), 1, {"step 2"});
  ASSERT_EQ(step_of(path("nan")), 0);
  fs::copy(path("nan"), path("killed"));
  fs::remove(path("killed/checkpoint.safetensors"));
  const std::string file = "nan/checkpoint.safetensors";
  expect_error(program({"eval", "--run", "float", "--checkpoint", file}), 1, {file + " is the checkpoint of step 0"});
  expect_error(train("new", {"--init-checkpoint", file}), 1, {file + " is the checkpoint of step 0"});
  for (const std::string run : {"nan", "killed"}) {
    const std::string reason = run == "nan" ? "has only the checkpoint of step 0" : "has no checkpoint yet";
    const std::vector<std::string> parts = {
        "the run in " + run + " ",         reason,        "the loss became NaN in step 2",
        "--resume would come to the same", "--overwrite", "lower --learning-rate"};
    expect_error(program({"eval", "--run", run}), 1, parts);
    expect_error(program({"eval", "--run", "float", "--checkpoint", run}), 1, parts);
    expect_error(program({"verify", "--run", run}), 1, parts);
    expect_error(program({"export", "--run", run, "--format", "json", "--out", "model.json"}), 1, parts);
    expect_error(program({"calibrate", "--run", run, "--out", "ptq"}), 1, parts);
    expect_error(program("run --graph tiny.json --random-feeds --fetch pool1 --out o" + Arguments{"--checkpoint", run}),
                 1, parts);
    expect_error(train("new", {"--init-checkpoint", run}), 1, parts);
    const Outcome shown = program({"inspect", run});
    EXPECT_EQ(shown.status, 0);
    expect_text(shown.err, {"note: the run in " + run + " is unfinished: "});
  }
  EXPECT_FALSE(fs::exists(path("new")));
  EXPECT_FALSE(fs::exists(path("ptq")));
}

TEST_F(TrainLifeTest, OverwritingDestroysNothingForARunThatCannotBegin) {
  expect_success(train("run"));
  const RunFiles before = files_of(path("run"));
  expect_error(train("run", "--overwrite --data-dir nowhere"), 1, {"nowhere"});
  expect_error(train("run", "--overwrite --init-checkpoint run"), 2, {"--overwrite", "--init-checkpoint"});
  expect_error(train("run", "--overwrite --init-checkpoint run/checkpoint.safetensors"), 2, {"--overwrite"});
  expect_error(program("calibrate --run run --out run --overwrite"), 2, {"--overwrite", "--run"});
  const std::string graph = "run/train_graph.json";
  expect_error(train("run", {"--overwrite", "--model", graph}), 2, {"--overwrite", "--model", graph});
  fs::create_symlink(path(graph), path("link.json"));
  expect_error(train("run", "--overwrite --model link.json"), 2, {"--overwrite", "link.json, which --model reads"});
  Arguments inside = train_command(
      ".", "--overwrite --init-checkpoint checkpoint.safetensors --model ../tiny.json --data-dir ../digits");
  expect_error(miniqat(inside, path("run")), 2, {"--overwrite", "--init-checkpoint"});
  EXPECT_TRUE(files_of(path("run")) == before);
}

// Only the run's own files are deleted.
TEST_F(TrainLifeTest, WhatLiesDeeperMayBeRead) {
  expect_success(train("run"));
  expect_success(train("run/before"));
  expect_success(train("run", "--overwrite --init-checkpoint run/before"));
}

TEST_F(TrainLifeTest, ACalibratedRunIsNoTrainingToGoOnWith) {
  expect_success(train("float", "--float --stop-at 5"));
  EXPECT_EQ(program("calibrate --run float --out ptq --batches 2").status, 0);
  const std::string before = checkpoint_bytes("ptq");
  for (const Arguments& more : {Arguments{}, {"--steps", "20"}})
    expect_error(resume("ptq", more), 2,
                 {"--resume", "ptq was calibrated, not trained", "train --init-checkpoint ptq"});
  EXPECT_TRUE(checkpoint_bytes("ptq") == before);
  EXPECT_FALSE(fs::exists(path("ptq/metrics.jsonl")));
  expect_success(resume("float"));
}

TEST_F(TrainLifeTest, WhenCheckpointsAreTakenChangesNothing) {
  expect_success(train("whole"));
  for (const std::string interval : {"1", "5", "0.001s", "1000s"}) {
    expect_success(train("run" + interval, {"--save-every", interval}));
    EXPECT_TRUE(files_of(path("run" + interval)) == files_of(path("whole"))) << interval;
  }
}

TEST_F(TrainLifeTest, AFinishedRunCanBeMadeLonger) {
  const Arguments constant = "--schedule constant";
  expect_success(train("run", constant));
  expect_error(resume("run", "--steps 11"), 2, {"longer, not shorter", "12 steps, not 11"});
  expect_error(resume("run", "--epochs 1"), 2, {"longer, not shorter", "12 steps, not 8"});
  expect_success(resume("run", "--steps 12"));
  expect_text(expect_success(resume("run", "--steps 20")).out, {"The run had 12 steps and has 20 now"});
  expect_success(train("whole", "--schedule constant --steps 20"));
  EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("whole")) << "a rate that does not depend on the length";
  EXPECT_EQ(losses_of(path("run")), losses_of(path("whole")));
  EXPECT_EQ(json_of(path("run/config.json"))["steps"], 20);
  EXPECT_EQ(json_of(path("run/summary.json"))["steps"], 20);
  expect_success(resume("run", "--epochs 3"));
  EXPECT_EQ(json_of(path("run/config.json"))["steps"], 0);
  EXPECT_EQ(step_of(path("run")), 24);
}

// The cosine of a run of that length, from where the run is: the rate is that of the longer run in each step to come.
TEST_F(TrainLifeTest, ALongerRunGoesOnWithTheRatesOfItsLength) {
  expect_success(train("run"));
  expect_success(resume("run", "--steps 20"));
  expect_success(train("whole", "--steps 20"));
  std::map<std::int64_t, double> rates;
  for (const Json& line : lines_of(path("whole/metrics.jsonl")))
    if (line.contains("loss")) rates[line["step"]] = line["learning_rate"];
  int compared = 0;
  for (const Json& line : lines_of(path("run/metrics.jsonl")))
    if (line.contains("loss") && line["step"] > 12) {
      EXPECT_EQ(line["learning_rate"], rates.at(line["step"]));
      ++compared;
    }
  EXPECT_EQ(compared, 8);
}

// Killed between the summary's change and that of the settings, the run is what it was.
TEST_F(TrainLifeTest, DeathWhileARunIsMadeLongerLosesNothing) {
  expect_success(train("run"));
  const RunFiles before = files_of(path("run"));
  set_complete("run", false);
  expect_success(resume("run"));
  EXPECT_TRUE(files_of(path("run")) == before);
}

TEST_F(TrainLifeTest, HowOftenToLogAndSaveIsKept) {
  expect_success(train("run", "--log-every 3 --save-every 5 --stop-at 4"));
  expect_success(program("train --resume --out run"));
  std::vector<std::int64_t> steps;
  for (const auto& [step, loss] : losses_of(path("run"))) steps.push_back(step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{3, 6, 9, 12}));
  EXPECT_EQ(json_of(path("run/config.json"))["save_every"], "5");
  expect_success(resume("run", "--log-every 2 --save-every 7s"));
  EXPECT_EQ(json_of(path("run/config.json"))["log_every"], 2);
  EXPECT_EQ(json_of(path("run/config.json"))["save_every"], "7s");
}

TEST_F(TrainLifeTest, EachOptimizerHasItsOwnRate) {
  expect_success(train("sgd"));
  expect_success(train("adam", "--optimizer adam"));
  EXPECT_EQ(json_of(path("sgd/config.json"))["learning_rate"], 0.05);
  EXPECT_EQ(json_of(path("adam/config.json"))["learning_rate"], 0.001);
  // What a config.json says stays said.
  place_.write("old.json", R"({"learning_rate": 0.05, "optimizer": "adam"})");
  expect_success(train("old", "--config old.json"));
  EXPECT_EQ(json_of(path("old/config.json"))["learning_rate"], 0.05);
  // But what it says of one optimizer is not meant for another.
  const std::string config = "sgd/config.json";
  expect_error(train("other", {"--config", config, "--optimizer", "adam"}), 2,
               {"--optimizer adam", "0.05", "sgd", "--learning-rate"});
  expect_success(train("other", {"--config", config, "--optimizer", "adam", "--learning-rate", "0.002"}));
}

}  // namespace
}  // namespace miniqat::testing::train_life_test
