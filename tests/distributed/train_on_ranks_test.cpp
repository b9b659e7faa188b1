// `mpirun -np N miniqat train --shards 8`: one checkpoint for every N, and an end for all when one rank ends.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "core/safetensors.h"
#include "tests/cli/tiny_task.h"
#include "tests/distributed/mpirun.h"

namespace miniqat::testing::train_on_ranks_test {
namespace {

namespace fs = std::filesystem;

class RanksTest : public TinyTaskTest {
 protected:
  void SetUp() override {
    if (!has_mpirun()) GTEST_SKIP() << "skipped: there is no mpirun, or no MPI in this build";
  }

  static Arguments with(Arguments line, const Arguments& more) {
    line.insert(line.end(), more.begin(), more.end());
    return line;
  }
  static Arguments program_line(const Arguments& line) { return with({program_path()}, line); }
  Outcome on_ranks(int ranks, const Arguments& line) const {
    return ranks == 1 ? program(line) : mpirun(ranks, program_line(line), place_.path()).wait();
  }
  Outcome train_on(int ranks, const std::string& out, const Arguments& more) const {
    return on_ranks(ranks, train_command(out, with({"--shards", "8", "--batch-size", "32"}, more)));
  }
  void expect_one_checkpoint(const std::string& name, const Arguments& more, const std::vector<int>& counts) {
    for (const int ranks : counts) {
      const Outcome outcome = train_on(ranks, name + std::to_string(ranks), more);
      ASSERT_EQ(outcome.status, 0) << name << " on " << ranks << ":\n" << outcome.out << outcome.err;
      EXPECT_TRUE(checkpoint_bytes(name + std::to_string(ranks)) == checkpoint_bytes(name + "1"))
          << name << ": " << ranks << " ranks write another checkpoint than one process";
    }
  }
};

TEST_F(RanksTest, WriteOneCheckpointOfATinyNet) {
  expect_one_checkpoint("tiny", {"--weight-bits", "4", "--activation-bits", "4"}, {1, 2, 4, 8});
}

TEST_F(RanksTest, WriteOneCheckpointOfLenetWithDropoutAndLearnedRanges) {
  const Arguments lenet = {"--model",       "lenet", "--width",           "0.25", "--steps", "3",
                           "--weight-bits", "4",     "--activation-bits", "4"};
  expect_one_checkpoint("lenet", lenet, {1, 4});
  expect_one_checkpoint("learned", with(lenet, {"--ranges", "learned"}), {1, 2});
}

TEST_F(RanksTest, WriteOneCheckpointOfMobilenetInBothFoldings) {
  const Arguments mobilenet = {"--model", "mobilenet_v1", "--width", "0.25", "--augment", "crop-flip", "--steps", "3"};
  for (const std::string fold : {"tf", "single"})
    expect_one_checkpoint("fold-" + fold, with(mobilenet, {"--bn-fold", fold}), {1, 2});
}

TEST_F(RanksTest, StopOnFourAndGoOnWithTwo) {
  ASSERT_EQ(train_on(1, "alone", {}).status, 0);
  ASSERT_EQ(train_on(4, "run", {"--stop-at", "5"}).status, 0);
  const Outcome outcome = on_ranks(2, {"train", "--resume", "--out", "run"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(checkpoint_bytes("run") == checkpoint_bytes("alone"));
}

TEST_F(RanksTest, ThatDoNotDivideTheShardsAreRefusedInOneLine) {
  const Outcome outcome = train_on(3, "run", {});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("miniqat train: 3 ranks cannot share --shards 8: the number of ranks must divide it\n"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.err.find("rank 1: "), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(path("run")));
}

/// A process whose command line holds the words; 0 if there is none.
pid_t process_with(const std::string& word, const std::string& rank) {
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    std::ifstream line(entry.path() / "cmdline"), environment(entry.path() / "environ");
    const auto text = [](std::ifstream& file) { return std::string(std::istreambuf_iterator<char>(file), {}); };
    const std::string words = text(line);
    if (words.find(word) != std::string::npos && words.starts_with(program_path()) &&
        text(environment).find(rank) != std::string::npos)
      return std::stoi(entry.path().filename());
  }
  return 0;
}

/// Kills rank 1 of two and returns how they ended; the run must be one that would take minutes.
TEST_F(RanksTest, AKilledRankEndsAllAndTheCheckpointIsGood) {
  const std::string out = path("killed");
  Program run = mpirun(2,
                       program_line(train_command(
                           out, {"--shards", "8", "--batch-size", "32", "--steps", "1000000", "--save-every", "20"})),
                       place_.path());
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  pid_t rank_1 = 0;
  while ((rank_1 == 0 || !fs::exists(path("killed") / "checkpoint.safetensors")) && seconds() < 20) {
    rank_1 = process_with(out, "RANK=1");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_NE(rank_1, 0);
  kill(rank_1, SIGKILL);
  const double killed = seconds();
  const Outcome outcome = run.wait();
  EXPECT_LT(seconds() - killed, 10);
  EXPECT_NE(outcome.status, 0);
  EXPECT_EQ(process_with(out, "RANK="), 0);
  EXPECT_FALSE(read_safetensors(path("killed") / "checkpoint.safetensors").tensors.empty());
}

TEST_F(RanksTest, ANanEndsAllWithOneMessage) {
  const Outcome outcome = train_on(2, "nan", {"--learning-rate", "1e30"});
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.err.find("miniqat train: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("the checkpoint of step"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("rank 1: "), std::string::npos) << outcome.err;
}

/// The input's quantizer, after one step over 32 pictures of which one, in rank 1's half, is bright.
TEST_F(RanksTest, AnOutlierThatOnlyRankOneSeesWidensTheRange) {
  const auto widest = [&](const std::string& name, bool outlier) {
    write_tiny_digits(place_, name, 32, 32);
    const fs::path images = path(name) / "train-images-idx3-ubyte";
    std::string bytes = bytes_of(images);
    for (std::size_t i = 16; i < bytes.size(); ++i) bytes[i] = 40;
    if (outlier) bytes[16 + 30 * 64 + 5] = static_cast<char>(200);
    std::ofstream(images, std::ios::binary) << bytes;
    const Outcome outcome = train_on(2, "run-" + name,
                                     {"--data-dir", path(name), "--no-shuffle", "--steps", "1", "--quantize-input",
                                      "--ranges", "all-values", "--save-every", "1"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    float most = 0;
    for (const auto& [tensor, value] : read_safetensors(path("run-" + name) / "checkpoint.safetensors").tensors)
      if (tensor.find("input") != std::string::npos && tensor.ends_with("max"))
        most = std::max(most, *value.data<float>());
    return most;
  };
  const float plain = widest("plain", false), wide = widest("wide", true);
  EXPECT_GT(plain, 0);
  EXPECT_FLOAT_EQ(wide, plain * 200 / 40);
}

}  // namespace
}  // namespace miniqat::testing::train_on_ranks_test
