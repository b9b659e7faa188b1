// Death at the file calls of a run, and files that cannot be written: what is there can be read, what was done up to
// the last checkpoint is kept, and the run ends as if nothing had happened. tests/preload/faulty_files.cpp does it.

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <random>
#include <thread>

#include "core/files/safetensors.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::run_faults_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::int64_t kSaveEvery = 3;

/// A number from the environment, for nights that have more time.
int number_or(const char* variable, int usual) {
  const char* text = std::getenv(variable);
  return text == nullptr ? usual : std::atoi(text);
}

/// How far it is to the next of a list of faults: to each one where MINIQAT_ALL_FAULTS is set, as in scripts/nightly.
int stride_of(int usual) { return number_or("MINIQAT_ALL_FAULTS", 0) != 0 ? 1 : usual; }

class RunFaultsTest : public TinyTaskTest {
 protected:
  RunFaultsTest() {
    place_.write("rules.json", R"({"conv1": 4})");
    expect_success(train("start", "--float --steps 2"));
  }

  Outcome program(const Arguments& line) const { return started(line, place_.path()); }
  Outcome train(const std::string& out, const Arguments& more) const { return program(train_command(out, more)); }

  /// With every file that a run can have, two epochs, and checkpoints between.
  static Arguments command(const std::string& out) {
    return train_command(
        out, {"--bits-config", "rules.json", "--init-checkpoint", "start", "--save-every", std::to_string(kSaveEvery)});
  }

  Outcome with_fault(const std::string& out, const std::string& fault, const Arguments& line) const {
    const EnvironmentVariable library("LD_PRELOAD", MINIQAT_FAULTY_FILES);
    const EnvironmentVariable place("MINIQAT_FAULT_PLACE", out.c_str());
    const EnvironmentVariable what("MINIQAT_FAULT", fault.c_str());
    return program(line);
  }

  /// As a user would: --resume where there is a run, else the same command once more.
  Outcome go_on(const std::string& out) const {
    return fs::exists(path(out) / "config.json") ? program({"train", "--resume", "--out", out}) : program(command(out));
  }

  void expect_readable(const std::string& out) const {
    if (!fs::exists(path(out))) return;
    for (const auto& entry : fs::directory_iterator(path(out))) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(".")) continue;
      SCOPED_TRACE(name);
      if (name.ends_with(".json")) {
        EXPECT_NO_THROW(json_of(entry.path()));
      }
      if (name.ends_with(".jsonl")) {
        EXPECT_NO_THROW(lines_of(entry.path()));
      }
      if (name.ends_with(".safetensors")) {
        EXPECT_NO_THROW(read_safetensors(entry.path()));
      }
    }
  }

  /// No more than the steps since the last checkpoint are lost.
  void expect_little_lost(const std::string& out, std::int64_t interval) const {
    if (!fs::exists(path(out) / "metrics.jsonl")) return;
    const auto losses = losses_of(path(out));
    if (!losses.empty()) {
      EXPECT_LE(losses.rbegin()->first - step_of(path(out)), interval);
    }
  }

  void expect_same(const std::string& out, const RunFiles& wanted) const {
    const RunFiles files = files_of(path(out));
    EXPECT_EQ(files.names, wanted.names);
    EXPECT_EQ(files.metrics, wanted.metrics);
    EXPECT_EQ(files.summary, wanted.summary);
    EXPECT_TRUE(files.checkpoint == wanted.checkpoint) << "other bits";
  }

  RunFiles whole() const {
    expect_success(program(command("whole")));
    return files_of(path("whole"));
  }
};

TEST_F(RunFaultsTest, DeathAtFileCallsOfARun) {
  const RunFiles wanted = whole();
  int call = 1;
  for (;; call += stride_of(5)) {
    const std::string out = "killed" + std::to_string(call) + "_";
    SCOPED_TRACE(out);
    const Outcome outcome = with_fault(out, "kill:" + std::to_string(call), command(out));
    if (outcome.status == 0) break;
    ASSERT_EQ(outcome.status, 128 + SIGKILL) << outcome.err;
    expect_readable(out);
    expect_little_lost(out, kSaveEvery);
    expect_success(go_on(out));
    expect_same(out, wanted);
    ASSERT_FALSE(HasFailure());
  }
  std::cout << "up to call " << call << "\n";
  EXPECT_GT(call, 60);
}

// All stages make several hundred calls: some of them, spread over the whole.
TEST_F(RunFaultsTest, DeathWhileQuantizing) {
  const auto command_for = [](const std::string& out) {
    return "quantize --run start --bits-config rules.json --threads 1 --batches 2 --steps 3 --save-every 1" +
           Arguments{"--out", out};
  };
  expect_success(program(command_for("whole")));
  const RunFiles trained = files_of(path("whole/trained"));
  const Json rows = json_of(path("whole/quantize.json"))["rows"];
  constexpr int kStride = 61;
  int call = 1;
  for (;; call += kStride) {
    const std::string out = "quantizing" + std::to_string(call) + "_";
    SCOPED_TRACE(out);
    const Outcome outcome = with_fault(out, "kill:" + std::to_string(call), command_for(out));
    if (outcome.status == 0) break;
    ASSERT_EQ(outcome.status, 128 + SIGKILL) << outcome.err;
    const bool begun = fs::exists(path(out) / "quantize.json");
    expect_success(program(begun ? Arguments{"quantize", "--resume", "--out", out} : command_for(out)));
    EXPECT_EQ(json_of(path(out) / "quantize.json")["rows"], rows);
    EXPECT_TRUE(checkpoint_bytes(out) == checkpoint_bytes("whole"));
    expect_same(out + "/trained", trained);
    for (const auto& entry : fs::directory_iterator(path(out)))
      EXPECT_TRUE(fs::exists(path("whole") / entry.path().filename())) << entry.path();
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(call, 2 * kStride);
}

// What goes on may die as well, and where it makes good what was lost.
TEST_F(RunFaultsTest, DeathAtFileCallsOfAResumedRun) {
  const RunFiles wanted = whole();
  // Dead between the last checkpoint and the summary, and after the checkpoint at the end of an epoch.
  for (const bool at_the_end : {true, false}) {
    const std::string base = at_the_end ? "end" : "epoch";
    int call = 1;
    const auto prepare = [&](const std::string& out) {
      fs::copy(path("whole"), path(out));
      fs::remove(path(out) / "summary.json");
      if (!at_the_end)
        fs::copy_file(path("at8/checkpoint.safetensors"), path(out) / "checkpoint.safetensors",
                      fs::copy_options::overwrite_existing);
      std::string kept;
      for (const Json& line : lines_of(path("whole/metrics.jsonl")))
        if (!line.contains("test_accuracy") || (at_the_end && line["step"] == 8)) kept += line.dump() + "\n";
      place_.write(out + "/metrics.jsonl", kept);
      Json config = json_of(path(out) / "config.json");
      config["bits_config"] = out + "/bits.json";
      place_.write(out + "/config.json", config.dump());
    };
    if (!at_the_end) expect_success(program(command("at8") + "--stop-at 8"));
    for (;; call += stride_of(8)) {
      const std::string out = base + std::to_string(call) + "_";
      SCOPED_TRACE(out);
      prepare(out);
      const Outcome outcome = with_fault(out, "kill:" + std::to_string(call), {"train", "--resume", "--out", out});
      if (outcome.status != 0) {
        ASSERT_EQ(outcome.status, 128 + SIGKILL) << outcome.err;
        expect_readable(out);
        expect_success(program({"train", "--resume", "--out", out}));
      }
      expect_same(out, wanted);
      ASSERT_FALSE(HasFailure());
      if (outcome.status == 0) break;
    }
    EXPECT_GT(call, 10);
  }
}

// There is nothing to resume: either the run is there, or the same command makes it.
TEST_F(RunFaultsTest, DeathAtFileCallsOfACalibration) {
  const auto calibrate = [](const std::string& out) {
    return "calibrate --run start --bits-config rules.json --batches 1 --threads 1" + Arguments{"--out", out};
  };
  expect_success(program(calibrate("whole")));
  const std::string wanted = checkpoint_bytes("whole");
  for (int call = 2;; call += stride_of(8)) {
    const std::string out = "killed" + std::to_string(call) + "_";
    SCOPED_TRACE(out);
    const Outcome outcome = with_fault(out, "kill:" + std::to_string(call), calibrate(out));
    if (outcome.status == 0) break;
    ASSERT_EQ(outcome.status, 128 + SIGKILL) << outcome.err;
    expect_readable(out);
    if (!fs::exists(path(out) / "config.json")) expect_success(program(calibrate(out)));
    expect_success(program({"eval", "--run", out}));
    EXPECT_TRUE(checkpoint_bytes(out) == wanted);
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(RunFaultsTest, DeathAtRandomMoments) {
  const int kills = number_or("MINIQAT_RANDOM_KILLS", 5);
  const int seed = number_or("MINIQAT_SEED", static_cast<int>(std::random_device()() >> 1));
  std::cout << kills << " kills, MINIQAT_SEED=" << seed << "\n";
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto line = [](const std::string& out) { return train_command(out, "--steps 120 --save-every 7"); };
  const auto started = std::chrono::steady_clock::now();
  expect_success(program(line("whole")));
  const auto length = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - started);
  const RunFiles wanted = files_of(path("whole"));
  std::uniform_int_distribution<std::int64_t> moment(0, length.count());
  for (int run = 0, done = 0; done < kills; ++run) {
    const std::string out = "run" + std::to_string(run);
    for (bool unfinished = true; unfinished && done < kills;) {
      SCOPED_TRACE(out);
      const bool begun = fs::exists(path(out) / "config.json");
      Program killed(begun ? Arguments{"train", "--resume", "--out", out} : line(out), place_.path());
      std::this_thread::sleep_for(std::chrono::microseconds(moment(random)));
      killed.send(SIGKILL);
      const Outcome outcome = killed.wait();
      unfinished = outcome.status != 0;
      if (unfinished) {
        ASSERT_EQ(outcome.status, 128 + SIGKILL) << outcome.err;
        ++done;
      }
      expect_readable(out);
      expect_little_lost(out, 7);
    }
    const bool begun = fs::exists(path(out) / "config.json");
    expect_success(program(begun ? Arguments{"train", "--resume", "--out", out} : line(out)));
    expect_same(out, wanted);
    ASSERT_FALSE(HasFailure()) << out;
    fs::remove_all(path(out));
  }
}

TEST_F(RunFaultsTest, AFullDiskAtEveryWrite) {
  const RunFiles wanted = whole();
  int write = 1;
  for (;; write += stride_of(3)) {
    const std::string out = "full" + std::to_string(write) + "_";
    SCOPED_TRACE(out);
    const Outcome outcome = with_fault(out, "full:" + std::to_string(write), command(out));
    if (outcome.status == 0) break;
    expect_error(outcome, 1, {"cannot write " + out + "/", "No space left on device"});
    expect_readable(out);
    expect_little_lost(out, kSaveEvery);
    if (fs::exists(path(out))) {
      for (const auto& entry : fs::directory_iterator(path(out)))
        EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
    }
    EXPECT_EQ(outcome.err.find("--resume --out " + out) != std::string::npos, fs::exists(path(out) / "config.json"))
        << outcome.err;
    expect_success(go_on(out));
    expect_same(out, wanted);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(write, 20);
}

TEST_F(RunFaultsTest, WritesThatTakeLittleAtATime) {
  const RunFiles wanted = whole();
  expect_success(with_fault("short", "short:1", command("short")));
  expect_same("short", wanted);
}

TEST_F(RunFaultsTest, AnErrorAtFileCalls) {
  const RunFiles wanted = whole();
  const int calls = std::stoi(with_fault("counted", "count:1", command("counted")).err);
  ASSERT_GT(calls, 60);
  for (int call = 1; call <= calls; call += stride_of(9)) {
    const std::string out = "error" + std::to_string(call) + "_";
    SCOPED_TRACE(out);
    const Outcome outcome = with_fault(out, "EIO:" + std::to_string(call), command(out));
    // Some calls may fail without harm, as the fsync of a directory.
    if (outcome.status != 0) {
      expect_error(outcome, 1, {out, "Input/output error"});
      expect_readable(out);
      expect_success(go_on(out));
    }
    fs::remove(path(out) / ".lock");  // which it may have been that could not be removed
    expect_same(out, wanted);
    ASSERT_FALSE(HasFailure()) << outcome.err;
  }
}

TEST_F(RunFaultsTest, APlaceThatCannotBeWritten) {
  for (const auto& [fault, reason] :
       {std::pair<std::string, std::string>{"EROFS:1", "Read-only file system"}, {"EACCES:1", "Permission denied"}}) {
    SCOPED_TRACE(fault);
    expect_error(with_fault("no/where", fault, command("no/where")), 1, {"no/where", reason});
    EXPECT_FALSE(fs::exists(path("no")));
    expect_success(program("train --resume --out start"));
    expect_error(with_fault("start", fault, {"train", "--resume", "--steps", "9", "--out", "start"}), 1,
                 {"cannot write start/.lock", reason});
    EXPECT_EQ(step_of(path("start")), 2);
  }
}

// Nobody knows there whether who wrote them lives.
TEST_F(RunFaultsTest, WithoutLocksOnlyOwnFilesAreTouched) {
  place_.write("run/.config.json.1.0.tmp", "half");
  expect_success(with_fault("run", "ENOLCK:1", command("run")));
  EXPECT_EQ(bytes_of(path("run/.config.json.1.0.tmp")), "half");
  expect_success(with_fault("run", "ENOLCK:1", {"train", "--resume", "--out", "run", "--steps", "14"}));
  EXPECT_EQ(bytes_of(path("run/.config.json.1.0.tmp")), "half");
  place_.write("begun/.lock", R"({"process": 1, "host": "box"})");
  place_.write("begun/bits.json", "{}");
  expect_error(with_fault("begun", "ENOLCK:1", command("begun")), 1, {"begun holds no run, but a file", "bits.json"});
}

TEST_F(RunFaultsTest, ADirectoryThatVanishes) {
  Program program(train_command("run", "--steps 100000000"), place_.path());
  program.wait_for_output("epoch");
  fs::rename(path("run"), path("elsewhere"));
  expect_error(program.wait(), 1, {"cannot write run/", "No such file or directory"});
  EXPECT_FALSE(fs::exists(path("run")));
}

}  // namespace
}  // namespace miniqat::testing::run_faults_test
