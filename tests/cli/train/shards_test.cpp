// `--shards` of `train` and `quantize`: any number of threads writes the same run.

#include <gtest/gtest.h>

#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::shards_test {
namespace {

class ShardsTest : public TinyTaskTest {
 protected:
  /// tiny.json is for batches of 4, of which a batch has two.
  static Arguments sharded(const Arguments& more) {
    Arguments flags = {"--shards", "2", "--batch-size", "8"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
};

TEST_F(ShardsTest, ThreadsDoNotChangeARunAndMayChangeInIt) {
  const Outcome outcome = train("one", sharded({}));
  expect_success(outcome);
  EXPECT_NE(outcome.out.find("12 steps of 8 in 2 shards of 1 thread, 1 thread,"), std::string::npos) << outcome.out;
  EXPECT_EQ(json_of(path("one/config.json"))["shards"], 2);
  EXPECT_EQ(json_of(path("one/config.json"))["threads_per_shard"], 1);
  expect_success(train("run", sharded({"--threads", "2", "--stop-at", "5"})));
  expect_success(resume("run", {"--threads", "1"}));
  EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("one"));
  expect_success(train("two", sharded({"--threads", "2"})));
  EXPECT_EQ(files_of(path("two")).metrics, files_of(path("one")).metrics);
}

TEST_F(ShardsTest, RefusesWhatCannotBe) {
  const auto refuses = [&](const Arguments& flags, const std::vector<std::string>& parts) {
    const Outcome outcome = train("run", flags);
    EXPECT_EQ(outcome.status, 2);
    for (const std::string& part : parts) EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  };
  refuses({"--shards", "3"}, {"--shards must be a power of two, got 3"});
  refuses({"--shards", "8", "--batch-size", "12"}, {"--shards 8 must divide --batch-size 12"});
  refuses({"--shards", "2", "--threads-per-shard", "0"}, {"--threads-per-shard must be in 1..1024, got 0"});
  refuses({"--threads-per-shard", "2"}, {"--threads-per-shard has no effect with --shards 1"});
}

TEST_F(ShardsTest, QuantizeWritesTheSameOnAnyThreads) {
  make_float_run(place_, "tiny", "float");
  const auto quantize = [&](const std::string& threads) {
    Arguments line = {
        "quantize", "--run",    "float", "--out",     "q" + threads, "--weight-bits", "4",    "--activation-bits",
        "4",        "--epochs", "2",     "--batches", "8",           "--threads",     threads};
    const Arguments flags = sharded({});
    line.insert(line.end(), flags.begin(), flags.end());
    expect_success(program(line));
  };
  quantize("1");
  quantize("2");
  for (const char* stage : {"", "/calibrated", "/trained"})
    EXPECT_EQ(checkpoint_bytes(std::string("q1") + stage), checkpoint_bytes(std::string("q2") + stage)) << stage;
}

}  // namespace
}  // namespace miniqat::testing::shards_test
