// Ranks that are not alike, or have other files than rank 0: refused before anything is written.

#include <filesystem>
#include <fstream>

#include "core/kernels/instruction_set.h"
#include "tests/distributed/ranks_task.h"

namespace miniqat::testing::ranks_differ_test {
namespace {

namespace fs = std::filesystem;

class RanksDifferTest : public RanksTest {
 protected:
  /// Two ranks of the run; rank 1 begins with these words of the shell.
  Outcome train_with_other_rank(const std::string& shell, const Arguments& more = {}) const {
    const Arguments start = {"/bin/sh", "-c",
                             "if [ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 1 ]; then " + shell + "; fi; exec \"$@\"",
                             "sh"};
    return mpirun(2, start + program_line(sharded(path("run"), more)), place_.path()).wait();
  }
  /// A copy of the task's files, for rank 1.
  void copy_task() const {
    fs::create_directories(path("other"));
    for (const char* const name : {"digits", "tiny.json"})
      fs::copy(path(name), path("other") / name, fs::copy_options::recursive);
  }
  static void change_last_byte(const fs::path& file) {
    std::string bytes = bytes_of(file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    std::ofstream(file, std::ios::binary) << bytes;
  }
  fs::path others_digits(const std::string& file) const { return path("other") / "digits" / file; }
  void expect_refusal(const Outcome& outcome, const std::string& text) const {
    EXPECT_NE(outcome.status, 0);
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("rank 1: "), std::string::npos) << outcome.err;
    EXPECT_FALSE(fs::exists(path("run") / "checkpoint.safetensors"));
  }
};

TEST_F(RanksDifferTest, InstructionSets) {
  if (instruction_set() == InstructionSet::kBaseline) GTEST_SKIP() << "skipped: this machine has one instruction set";
  expect_refusal(train_with_other_rank("export MINIQAT_MAX_ISA=baseline"), "set MINIQAT_MAX_ISA=baseline for all");
}

TEST_F(RanksDifferTest, Builds) {
  const fs::path copy = path("copy");
  fs::copy(program_path(), copy);
  // In a table that only debuggers read.
  change_last_byte(copy);
  const Outcome outcome = train_with_other_rank("shift; set -- '" + copy.string() + "' \"$@\"");
  expect_refusal(outcome, "ranks 0 and 1 run different builds of this program");
}

TEST_F(RanksDifferTest, Pictures) {
  copy_task();
  change_last_byte(others_digits("train-images-idx3-ubyte"));
  expect_refusal(train_with_other_rank("cd other"), "ranks 0 and 1 have different training pictures of mnist");
}

TEST_F(RanksDifferTest, LabelsOfTheTest) {
  copy_task();
  change_last_byte(others_digits("t10k-labels-idx1-ubyte"));
  expect_refusal(train_with_other_rank("cd other"), "ranks 0 and 1 have different test pictures of mnist");
}

TEST_F(RanksDifferTest, Networks) {
  copy_task();
  std::string text = bytes_of(path("tiny.json"));
  text.replace(text.find("\"rate\": 0.2"), 11, "\"rate\": 0.3");
  std::ofstream(path("other") / "tiny.json") << text;
  expect_refusal(train_with_other_rank("cd other"), "ranks 0 and 1 have different networks of tiny.json");
}

/// Bits of layers come from rank 0, so that no other needs the file.
TEST_F(RanksDifferTest, BitsOfLayersAreThoseOfRankZero) {
  copy_task();
  place_.write("bits.json", R"({"fc": {"weight_bits": 3}})");
  const Arguments bits = {"--bits-config", "bits.json"};
  const Outcome outcome = train_with_other_rank("cd other", bits);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  ASSERT_EQ(train_on(1, "alone", bits).status, 0);
  ASSERT_EQ(train_on(1, "without", {}).status, 0);
  EXPECT_TRUE(checkpoint_bytes("run") == checkpoint_bytes("alone"));
  EXPECT_FALSE(checkpoint_bytes("run") == checkpoint_bytes("without"));
}

TEST_F(RanksDifferTest, NoRunIsLostToARefusal) {
  ASSERT_EQ(train_on(1, "run", {}).status, 0);
  const std::string before = checkpoint_bytes("run");
  copy_task();
  change_last_byte(others_digits("train-labels-idx1-ubyte"));
  const Outcome outcome = train_with_other_rank("cd other", {"--overwrite"});
  EXPECT_NE(outcome.status, 0);
  EXPECT_TRUE(checkpoint_bytes("run") == before);
}

TEST_F(RanksDifferTest, OtherCommandsAreRefused) {
  const Outcome outcome = on_ranks(2, {"eval", "run"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("miniqat eval: a launcher started 2 ranks, but only miniqat train"), std::string::npos)
      << outcome.err;
}

TEST_F(RanksDifferTest, ThoseThatDoNotDivideTheShardsHearWhatWould) {
  const auto expect = [&](int ranks, const Arguments& line, const std::string& text) {
    const Outcome outcome = on_ranks(ranks, line);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("rank 1: "), std::string::npos) << outcome.err;
    EXPECT_FALSE(fs::exists(path("run")));
  };
  expect(3, sharded("run", {}),
         "miniqat train: 3 ranks cannot share --shards 8: the number of ranks must divide it; "
         "start 1, 2, 4, 8, ... ranks\n");
  expect(2, train_command("run", {}), "add --shards 2 or a multiple\n");
}

}  // namespace
}  // namespace miniqat::testing::ranks_differ_test
