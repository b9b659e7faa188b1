// How a training on several ranks ends before its time: an end for all, one message, a good checkpoint.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "core/files/safetensors.h"
#include "tests/cli/run_files.h"
#include "tests/distributed/ranks_task.h"
#include "tests/fewer_cases.h"

namespace miniqat::testing::ranks_end_test {
namespace {

namespace fs = std::filesystem;

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

/// A run on two ranks that would take minutes, and is ended by a signal after its first checkpoint.
class EndedRun : public RanksTest {
 protected:
  using Clock = std::chrono::steady_clock;

  std::string out() const { return path("run"); }
  fs::path checkpoint() const { return path("run") / "checkpoint.safetensors"; }
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::unique_ptr<Program> begin() const {
    return std::make_unique<Program>(
        Program::Line{mpirun_line(2, program_line(sharded(out(), {"--steps", "1000000", "--save-every", "20"})))},
        place_.path());
  }
  /// Waits for the run's first checkpoint after a step; then the process of a rank.
  pid_t rank_at_work(const std::string& rank) const {
    const auto begin = Clock::now();
    while ((!fs::exists(checkpoint()) || step_of(path("run")) == 0) && seconds_since(begin) < 20)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return process_with(out(), "RANK=" + rank);
  }
  /// The run has ended within ten seconds, with a checkpoint from which it goes on.
  Outcome expect_end(Program& run) const {
    const auto begin = Clock::now();
    Outcome outcome = run.wait();
    EXPECT_LT(seconds_since(begin), 10);
    EXPECT_EQ(process_with(out(), "RANK="), 0);
    EXPECT_FALSE(read_safetensors(checkpoint()).tensors.empty());
    return outcome;
  }
};

TEST_F(EndedRun, AKilledRankEndsAll) {
  if (!tries_all_cases()) GTEST_SKIP() << "mpirun's part, as CtrlCEndsAll: with MINIQAT_ALL_CASES";
  const std::unique_ptr<Program> run = begin();
  const pid_t rank_1 = rank_at_work("1");
  ASSERT_NE(rank_1, 0);
  kill(rank_1, SIGKILL);
  EXPECT_NE(expect_end(*run).status, 0);
}

/// The wish of one rank stops all after the same step, as in one process.
TEST_F(EndedRun, ASignalToRankOneStopsAllInOneStep) {
  const std::unique_ptr<Program> run = begin();
  const pid_t rank_1 = rank_at_work("1");
  ASSERT_NE(rank_1, 0);
  kill(rank_1, SIGINT);
  const Outcome outcome = expect_end(*run);
  EXPECT_NE(outcome.out.find("stopped after step"), std::string::npos) << outcome.out << outcome.err;
  const std::int64_t step = step_of(path("run"));
  EXPECT_EQ(program(sharded("alone", {"--steps", "1000000", "--stop-at", std::to_string(step)})).status, 0);
  EXPECT_TRUE(checkpoint_bytes("run") == checkpoint_bytes("alone")) << step;
}

/// Slurm asks the ranks that are left to end, and kills them only half a minute later.
TEST_F(EndedRun, ARankThatIsAskedToEndWaitsForNoDeadOne) {
  const std::unique_ptr<Program> run = begin();
  const pid_t rank_1 = rank_at_work("1"), rank_0 = process_with(out(), "RANK=0");
  ASSERT_NE(rank_1, 0);
  ASSERT_NE(rank_0, 0);
  kill(rank_1, SIGSTOP);
  kill(rank_0, SIGTERM);
  const Outcome outcome = expect_end(*run);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("another rank has not answered since a signal asked this one to end, and may be dead"),
            std::string::npos)
      << outcome.err;
}

/// mpirun hands the signal on, and kills its ranks soon after.
TEST_F(EndedRun, CtrlCEndsAll) {
  const std::unique_ptr<Program> run = begin();
  ASSERT_NE(rank_at_work("1"), 0);
  run->send(SIGINT);
  EXPECT_NE(expect_end(*run).status, 0);
}

void expect_words_of_rank_zero_alone(const Outcome& outcome) {
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.err.find("miniqat train: the loss became NaN"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("the checkpoint of step"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("rank 1: "), std::string::npos) << outcome.err;
}

TEST_F(RanksTest, ANanEndsAllWithOneMessage) {
  expect_words_of_rank_zero_alone(train_on(2, "nan", {"--learning-rate", "1e30"}));
}

/// The logits have 0 / 0 for a black picture, which is in rank 1's half.
TEST_F(RanksTest, ANanOfRankOneAloneEndsAllWithOneMessage) {
  write_tiny_digits(place_, "black", 32, 32);
  const fs::path images = path("black") / "train-images-idx3-ubyte";
  std::string bytes = bytes_of(images);
  std::fill_n(bytes.begin() + 16 + 30 * 64, 64, '\0');
  std::ofstream(images, std::ios::binary) << bytes;
  std::string graph = tiny_classifier();
  const std::string end = "],\n   \"outputs\": [\"fc/BiasAdd\"]";
  const std::size_t at = graph.find(end);
  ASSERT_NE(at, std::string::npos);
  graph.replace(at, end.size(), R"(,
    {"name": "mean", "op": "Mean", "inputs": ["images"], "attrs": {"axes": [1, 2]}},
    {"name": "one", "op": "Div", "inputs": ["mean", "mean"]},
    {"name": "logits", "op": "Mul", "inputs": ["fc/BiasAdd", "one"]}],
   "outputs": ["logits"])");
  place_.write("ratio.json", graph);
  expect_words_of_rank_zero_alone(
      train_on(2, "nan", {"--model", "ratio.json", "--data-dir", path("black"), "--no-shuffle", "--float"}));
}

}  // namespace
}  // namespace miniqat::testing::ranks_end_test
