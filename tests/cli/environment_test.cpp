// Threads and instruction sets as flags and environment ask for them, and data sets that are next to nothing: right
// results or one clear line, never a crash, a hang or another result without a word.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::environment_test {
namespace {

using Json = nlohmann::json;

class EnvironmentTest : public ProgramTest {
 protected:
  void SetUp() override {
    unsetenv("OMP_NUM_THREADS");
    unsetenv("MINIQAT_MAX_ISA");
    write_tiny_digits(place_, "digits", 32, 10);
    place_.write("tiny.json", tiny_classifier());
  }

  /// The environment is read when a process begins.
  Outcome program(const Arguments& line) const { return started(line, place_.path()); }
  Outcome train(const std::string& out, const Arguments& more = {}) const {
    return program("train --model tiny.json --dataset mnist --data-dir digits --steps 6" + Arguments{"--out", out} +
                   more);
  }
  std::string checkpoint(const std::string& run) const {
    return bytes_of(place_.path() / run / "checkpoint.safetensors");
  }
  int threads_of(const std::string& run) const {
    return Json::parse(bytes_of(place_.path() / run / "config.json"))["threads"];
  }
};

TEST_F(EnvironmentTest, MoreThreadsThanCoresComputeTheSameLosses) {
  expect_success(train("one", "--threads 1 --log-every 1"));
  const unsigned many = 4 * std::max(std::thread::hardware_concurrency(), 1u) + 1;
  expect_text(expect_success(train("many", {"--threads", std::to_string(many), "--log-every", "1"})).out,
              {"threads (slow: there are "});
  const auto loss = [&](const char* run) -> double {
    return Json::parse(bytes_of(place_.path() / run / "summary.json"))["train_loss"];
  };
  EXPECT_NEAR(loss("one"), loss("many"), 1e-4 * loss("one"));
}

TEST_F(EnvironmentTest, ThreadCountsOfOpenMpAreTaken) {
  for (const char* value : {"1", " 1 ", "1,2"}) {
    const EnvironmentVariable variable("OMP_NUM_THREADS", value);
    const std::string run = std::string("run") + value;
    expect_success(train(run));
    EXPECT_EQ(threads_of(run), 1) << "OMP_NUM_THREADS=" << value;
    expect_success(train(run + " more", {"--threads", "2"}));
    EXPECT_EQ(threads_of(run + " more"), 2) << "the flag wins";
  }
}

TEST_F(EnvironmentTest, ThreadCountsThatAreNoneCountAsLeftOut) {
  expect_success(train("plain"));
  for (const char* value : {"abc", "-3", "0", "99999999999", "", "1x", "1.5"}) {
    const EnvironmentVariable variable("OMP_NUM_THREADS", value);
    const std::string run = std::string("run") + value;
    const Outcome outcome = train(run);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(threads_of(run), threads_of("plain")) << "OMP_NUM_THREADS=" << value;
    EXPECT_EQ(checkpoint(run), checkpoint("plain")) << "OMP_NUM_THREADS=" << value;
  }
}

// oneDNN's kernels wait for as many threads as they were told of; OpenMP used to start fewer.
TEST_F(EnvironmentTest, RegressionFewerThreadsThanPromisedHungForEver) {
  expect_success(train("plain", "--threads 2"));
  {
    const EnvironmentVariable variable("OMP_DYNAMIC", "true");
    expect_success(train("dynamic", "--threads 2"));
    EXPECT_EQ(checkpoint("dynamic"), checkpoint("plain"));
    expect_success(train("many", "--threads 5"));
  }
  const EnvironmentVariable variable("OMP_THREAD_LIMIT", "1");
  expect_error(train("limited", "--threads 2"), 1, {"OMP_THREAD_LIMIT (1)", "2 threads"});
  expect_success(train("default"));
  EXPECT_EQ(threads_of("default"), 1);
}

TEST_F(EnvironmentTest, EveryInstructionSetTrains) {
  expect_success(train("plain", "--threads 1"));
  const double loss = Json::parse(bytes_of(path("plain/summary.json")))["train_loss"];
  for (const char* set : {"baseline", "avx2", "avx2-vnni", "avx512", "avx512-vnni", "amx", ""}) {
    const EnvironmentVariable variable("MINIQAT_MAX_ISA", set);
    const std::string run = std::string("run-") + set;
    expect_success(train(run, "--threads 1"));
    EXPECT_NEAR(Json::parse(bytes_of(place_.path() / run / "summary.json"))["train_loss"], loss, 0.05 * loss) << set;
  }
}

TEST_F(EnvironmentTest, UnknownModesAreRefusedByEveryCommandBeforeItBegins) {
  const std::vector<std::pair<const char*, const char*>> modes = {
      {"MINIQAT_MAX_ISA", "avx2-vnni, avx512, avx512-vnni or amx"}, {"MINIQAT_GUARD", "after or before"}};
  for (const auto& [name, known] : modes) {
    const EnvironmentVariable variable(name, "AVX2");
    const std::vector<std::string> parts = {name, known, "\"AVX2\""};
    expect_error(train("run"), 2, parts);
    EXPECT_FALSE(std::filesystem::exists(path("run")));
    for (const Arguments& line :
         std::vector<Arguments>{{"models"},
                                {"eval", "--run", "run"},
                                {"inspect", "tiny.json"},
                                {"rewrite", "--graph", "tiny.json", "--mode", "train", "--out", "r.json"},
                                {"run", "--graph", "tiny.json", "--out", "o.safetensors"},
                                {"bench", "--quick"}})
      expect_error(program(line), 2, parts);
    expect_success(program("--help"));
    expect_success(program("train --help"));
  }
}

// 10 test pictures in batches of 4, 7 (filled up) or 1.
TEST_F(EnvironmentTest, AnyBatchSizeEvaluatesAllPicturesOnce) {
  for (const std::string size : {"1", "7", "4"}) {
    std::string text = tiny_classifier();
    text.replace(text.find("[4, 8, 8, 1]"), 12, "[" + size + ", 8, 8, 1]");
    place_.write("model" + size + ".json", text);
    const std::string run = "run" + size;
    Arguments more = {"--threads", "1", "--model", "model" + size + ".json"};
    expect_success(train(run, more));
    place_.write(run + "/checkpoint.safetensors", checkpoint("run1"));
    const Json result = Json::parse(expect_success(program({"eval", "--run", run, "--threads", "1", "--json"})).out);
    const Json one = Json::parse(program("eval --run run1 --threads 1 --json").out);
    EXPECT_EQ(result["examples"], 10) << size;
    EXPECT_EQ(result["correct"], one["correct"]) << size;
    EXPECT_NEAR(result["loss"], one["loss"], 1e-4) << size;
  }
}

TEST_F(EnvironmentTest, EmptyDataSetsAreNamed) {
  write_tiny_digits(place_, "none", 0, 10);
  write_tiny_digits(place_, "untested", 32, 0);
  write_tiny_digits(place_, "few", 3, 10);
  expect_error(train("run", "--data-dir none"), 1, {"none/train-images-idx3-ubyte", "holds nothing"});
  expect_error(train("run", "--data-dir untested"), 1, {"untested/t10k-images-idx3-ubyte", "holds nothing"});
  expect_error(train("run", "--data-dir few"), 1, {"mnist", "3 training pictures", "batch of 4"});
  for (const char* file :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"})
    place_.write(std::string("cifar/") + file + ".bin", "");
  expect_error(program("train --dataset cifar10 --data-dir cifar"), 1, {"data_batch_1.bin", "empty"});
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

}  // namespace
}  // namespace miniqat::testing::environment_test
