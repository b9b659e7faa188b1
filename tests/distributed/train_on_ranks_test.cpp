// `mpirun -np N miniqat train --shards 8`: one checkpoint for every N.

#include <filesystem>
#include <fstream>

#include "core/files/safetensors.h"
#include "core/text/error.h"
#include "tests/cli/run_files.h"
#include "tests/cli/wide_task.h"
#include "tests/datasets/dataset_files.h"
#include "tests/distributed/ranks_task.h"
#include "tests/fewer_cases.h"

namespace miniqat::testing::train_on_ranks_test {
namespace {

namespace fs = std::filesystem;

class OneCheckpointTest : public RanksTest {
 protected:
  /// All of them in scripts/nightly.
  static std::vector<int> counts(const std::vector<int>& usual) {
    return tries_all_cases() ? std::vector<int>{1, 2, 4, 8} : usual;
  }
  /// Pictures of 28x28, so that other networks than tiny.json take them.
  Arguments on_large_digits(const Arguments& line) const {
    return line + Arguments{"--data-dir", write_tiny_digits(place_, "large", 64, 40, 28)};
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

TEST_F(OneCheckpointTest, OfATinyNet) {
  expect_one_checkpoint("tiny", "--weight-bits 4 --activation-bits 4", counts({1, 2, 8}));
}

TEST_F(OneCheckpointTest, OfRoundedGradients) {
  if (rounding_flags().empty()) GTEST_SKIP() << "this processor has no products to round for";
  place_.write("wide.json", wide_classifier());
  for (const std::string& flag : rounding_flags())
    expect_one_checkpoint(flag.substr(2), "--model wide.json --weight-bits 4 --activation-bits 4" + Arguments(flag),
                          counts({1, 2}));
}

TEST_F(OneCheckpointTest, OfGradientsThatAreRoundedNoLonger) {
  if (rounding_flags().empty()) GTEST_SKIP() << "this processor has no products to round for";
  place_.write("wide.json", wide_classifier());
  for (const std::string& flag : rounding_flags()) {
    if (!flag.starts_with("--gradients")) continue;
    for (const int ranks : {1, 2}) {
      const std::string name = flag.substr(2) + std::to_string(ranks);
      const Arguments rounds = "--model wide.json --weight-bits 4 --activation-bits 4 --stop-at 2" + Arguments(flag);
      ASSERT_EQ(train_on(1, name, rounds).status, 0);
      const Outcome resumed = on_ranks(ranks, Arguments{"train", "--resume", "--gradients", "float32", "--out", name});
      ASSERT_EQ(resumed.status, 0) << resumed.err;
    }
    EXPECT_TRUE(checkpoint_bytes(flag.substr(2) + "1") == checkpoint_bytes(flag.substr(2) + "2")) << flag;
  }
}

TEST_F(OneCheckpointTest, OfLenetWithDropoutAndLearnedRanges) {
  const Arguments lenet = on_large_digits("--model lenet --width 0.25 --steps 3 --weight-bits 4 --activation-bits 4");
  expect_one_checkpoint("lenet", lenet, counts({1, 4}));
  if (tries_all_cases()) expect_one_checkpoint("learned", lenet + "--ranges learned", counts({}));
}

TEST_F(OneCheckpointTest, OfMobilenetInBothFoldings) {
  const Arguments mobilenet = on_large_digits("--model mobilenet_v1 --width 0.25 --augment crop-flip --steps 3");
  for (const char* fold : {"single", "tf"}) {
    expect_one_checkpoint(fold, mobilenet + Arguments{"--bn-fold", fold}, counts({1, 2}));
    if (!tries_all_cases()) break;
  }
}

TEST_F(RanksTest, StopOnFourAndGoOnWithTwo) {
  ASSERT_EQ(train_on(1, "alone", {}).status, 0);
  ASSERT_EQ(train_on(4, "run", {"--stop-at", "5"}).status, 0);
  const Outcome outcome = on_ranks(2, {"train", "--resume", "--out", "run"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(checkpoint_bytes("run") == checkpoint_bytes("alone"));
  const nlohmann::json commands = json_of(path("run/commands.json"));
  ASSERT_EQ(commands.size(), 2u) << "one of each command, whatever the number of ranks";
  EXPECT_EQ(commands[1]["command"], "miniqat train --resume --out run");
}

TEST_F(RanksTest, GoOnWithoutTheModelFile) {
  ASSERT_EQ(train_on(1, "alone", {}).status, 0);
  ASSERT_EQ(train_on(2, "run", {"--stop-at", "5"}).status, 0);
  fs::remove(path("tiny.json"));
  const Outcome outcome = on_ranks(2, {"train", "--resume", "--out", "run"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(checkpoint_bytes("run") == checkpoint_bytes("alone"));
}

class PicturesOnRanks : public RanksTest {
 protected:
  PicturesOnRanks() {
    setenv("MINIQAT_CACHE_DIR", path("cache").c_str(), 1);
    for (const std::string part : {"train", "test"})
      for (int i = 0; i < 48; ++i) place_.write(file(part, i), png_bytes(make_picture(8, 8, 1, i + 1)));
  }
  ~PicturesOnRanks() override { unsetenv("MINIQAT_CACHE_DIR"); }

  /// By name the pictures of a part are in this order.
  static std::string file(const std::string& part, int i) {
    return concat("pictures/", part, "/", i % 10, "/", 100 + i, ".png");
  }
  Outcome train_pictures(int ranks, const std::string& out, const Arguments& more = {}) const {
    fs::remove_all(path("cache"));
    return on_ranks(ranks, "train --model tiny.json --dataset pictures --shards 8 --batch-size 32 --steps 3" +
                               Arguments{"--out", out} + more);
  }
};

TEST_F(PicturesOnRanks, AreTheSameForAll) {
  for (const int ranks : {1, 4}) {
    const Outcome outcome = train_pictures(ranks, "run" + std::to_string(ranks));
    ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  }
  EXPECT_TRUE(checkpoint_bytes("run1") == checkpoint_bytes("run4"));
}

/// The second of the files is in the part of rank 1, which tells rank 0 of it.
TEST_F(PicturesOnRanks, AreSkippedByAllRanks) {
  const auto damage = [&](const std::string& name) { place_.write(name, bytes_of(path(name)).substr(0, 60)); };
  damage(file("train", 3));
  damage(file("train", 40));
  for (const int ranks : {1, 2}) {
    const Outcome refused = train_pictures(ranks, "run");
    EXPECT_NE(refused.status, 0);
    EXPECT_NE(refused.err.find("2 of 96 files cannot be read: \"train/3/103.png\" is a damaged PNG"), std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find("\"train/0/140.png\" is a damaged PNG"), std::string::npos) << refused.err;
    const std::string out = "run" + std::to_string(ranks);
    const Outcome skipped = train_pictures(ranks, out, {"--skip-broken"});
    ASSERT_EQ(skipped.status, 0) << skipped.err;
    EXPECT_NE(bytes_of(path(out) / "skipped_files.json").find("140.png"), std::string::npos);
  }
  EXPECT_TRUE(checkpoint_bytes("run1") == checkpoint_bytes("run2"));
}

/// As two machines may have under one path.
TEST_F(PicturesOnRanks, OfWhichOneHasOtherFilesAreRefused) {
  write_tiny_digits(place_, "other/pictures", 48, 48);
  fs::copy(path("tiny.json"), path("other") / "tiny.json");
  fs::remove_all(path("cache"));
  const Arguments start = {"/bin/sh", "-c",
                           "if [ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 1 ]; then cd other; fi; exec \"$@\"", "sh"};
  const Outcome outcome =
      mpirun(2,
             start + program_line("train --model tiny.json --dataset /proc/self/cwd/pictures --shards 8 --batch-size "
                                  "32 --out run"),
             place_.path())
          .wait();
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.err.find("ranks 0 and 1 have different "), std::string::npos) << outcome.err;
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
