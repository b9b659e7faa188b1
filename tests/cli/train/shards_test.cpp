// `--shards` of `train` and `quantize`: any number of threads writes the same run.

#include <gtest/gtest.h>

#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::shards_test {
namespace {

class ShardsTest : public TinyTaskTest {
 protected:
  /// tiny.json is for batches of 4, of which a batch has two.
  static Arguments sharded(const Arguments& more) { return ("--shards 2 --batch-size 8" + more); }
};

TEST_F(ShardsTest, ThreadsDoNotChangeARunAndMayChangeInIt) {
  expect_text(expect_success(train("one", sharded({}))).out, {"12 steps of 8 in 2 shards of 1 thread, 1 thread,"});
  EXPECT_EQ(json_of(path("one/config.json"))["shards"], 2);
  EXPECT_EQ(json_of(path("one/config.json"))["threads_per_shard"], 1);
  expect_success(train("run", sharded({"--threads", "2", "--stop-at", "5"})));
  expect_success(resume("run", "--threads 1"));
  EXPECT_EQ(checkpoint_bytes("run"), checkpoint_bytes("one"));
  expect_success(train("two", sharded({"--threads", "2"})));
  EXPECT_EQ(files_of(path("two")).metrics, files_of(path("one")).metrics);
}

TEST_F(ShardsTest, QuantizeWritesTheSameOnAnyThreads) {
  make_float_run(place_, "tiny", "float");
  const auto quantize = [&](const std::string& threads) {
    Arguments line = "quantize --run float --weight-bits 4 --activation-bits 4 --epochs 2 --batches 8" +
                     Arguments{"--out", "q" + threads, "--threads", threads};
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
