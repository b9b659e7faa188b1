// Links in the place of files whose names miniqat chooses: what they lead to stays as it is.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>

#include "tests/cli/tiny_task.h"

namespace miniqat::testing::links_test {
namespace {

namespace fs = std::filesystem;

class LinksTest : public TinyTaskTest {
 protected:
  /// Puts a link to somebody's file in the place of a file.
  void link(const std::string& name) const {
    fs::remove(path(name));
    fs::create_directories(path(name).parent_path());
    fs::create_symlink(place_.write("mine", "mine"), path(name));
  }
  void expect_mine() const { EXPECT_EQ(bytes_of(path("mine")), "mine"); }
  std::map<std::string, std::string> contents(const std::string& run) const {
    std::map<std::string, std::string> all;
    for (const fs::directory_entry& entry : fs::directory_iterator(path(run)))
      all[entry.path().filename().string()] = bytes_of(entry.path());
    return all;
  }
};

TEST_F(LinksTest, ARunGoesOnInFilesOfItsOwn) {
  expect_success(train("run", "--stop-at 8"));
  for (const char* name :
       {"metrics.jsonl", "checkpoint.safetensors", "config.json", "summary.json", "machine.json", "commands.json",
        "dataset.json", "train_graph.json", "eval_graph.json", "trace.json", "skipped_files.json", "bits.json",
        "class_weights.json", "init_checkpoint.json", "model_graph.json"}) {
    SCOPED_TRACE(name);
    fs::copy(path("run"), path("copy"));
    const fs::path file = path("copy") / name, moved = path("moved");
    // As of a run whose files were moved away and linked, so that it can be read.
    if (fs::exists(file))
      fs::rename(file, moved);
    else
      place_.write("moved", "mine");
    const std::string before = bytes_of(moved);
    fs::create_symlink(moved, file);
    expect_error(resume("copy"), 1, {std::string("cannot write copy/") + name + ": it is a link to ", "overwritten"});
    EXPECT_EQ(bytes_of(moved), before);
    fs::remove_all(path("copy"));
    fs::remove(moved);
  }
}

// `cp -al`: both runs have the files until one writes.
TEST_F(LinksTest, ARunCopiedByHardLinksLeavesTheOtherAlone) {
  expect_success(train("run", "--stop-at 8"));
  place_.write("run/.lock", "{\"process\":1,\"host\":\"gone\"}\n");
  // Beyond the checkpoint: this would be cut off.
  place_.write("run/metrics.jsonl", bytes_of(path("run/metrics.jsonl")) + "{\"step\": 9, \"loss\": 1}\n");
  const auto before = contents("run");
  fs::copy(path("run"), path("copy"), fs::copy_options::create_hard_links | fs::copy_options::recursive);
  expect_success(resume("copy"));
  EXPECT_TRUE(contents("run") == before);
  EXPECT_FALSE(fs::exists(path("copy/.lock")));
  expect_success(resume("run"));
  EXPECT_TRUE(checkpoint_bytes("run") == checkpoint_bytes("copy"));
}

TEST_F(LinksTest, ANewRunWritesThroughNoLink) {
  for (const char* name : {"new/metrics.jsonl", "new/config.json", "new/trace.json"}) {
    SCOPED_TRACE(name);
    link(name);
    // One to nowhere would make a file there.
    for (const bool dead : {false, true}) {
      if (dead) fs::remove(path("mine"));
      expect_error(train("new"), 1, {"it is a link to "});
      EXPECT_EQ(fs::exists(path("mine")), !dead);
    }
    fs::remove_all(path("new"));
  }
  link("new/trace.json");
  expect_error(train("new", "--overwrite --profile"), 1, {"new/trace.json: it is a link to "});
  expect_mine();
  // What is deleted is the link.
  fs::remove(path("new/trace.json"));
  link("new/metrics.jsonl");
  expect_success(train("new", "--overwrite"));
  expect_mine();
  EXPECT_FALSE(fs::is_symlink(path("new/metrics.jsonl")));
}

TEST_F(LinksTest, APipeInTheRunIsRefusedAtOnce) {
  expect_success(train("run", "--stop-at 8"));
  fs::remove(path("run/metrics.jsonl"));
  ASSERT_EQ(::mkfifo(path("run/metrics.jsonl").c_str(), 0600), 0);
  expect_error(resume("run"), 1, {"run/metrics.jsonl: it is not a regular file"});
}

TEST_F(LinksTest, OtherCommandsWriteThroughNoneEither) {
  make_float_run(place_, "tiny", "float");
  link("measured/sensitivity.json");
  const Arguments sensitivity = "sensitivity --run float --out measured --threads 1 --overwrite";
  expect_error(program(sensitivity), 1, {"measured/sensitivity.json: it is a link to "});
  expect_mine();
  expect_success(train("run"));
  link("run/verify.json");
  const Outcome verified = program("verify --run run --no-runtimes");
  EXPECT_EQ(verified.status, 0);
  expect_text(verified.err, {"note: `miniqat report` will not know of this: cannot write run/verify.json"});
  expect_mine();
  for (const char* name : {"imported/graph.json", "imported/weights.safetensors", "imported/import.json"}) {
    fs::remove_all(path("imported"));
    link(name);
    expect_error(program("import none.onnx --out imported"), 1, {name, "it is a link to "});
    expect_mine();
  }
}

TEST_F(LinksTest, QuantizeGoesOnInFilesOfItsOwn) {
  make_float_run(place_, "tiny", "float");
  expect_success(program("quantize --run float --out low --epochs 1 --threads 1"));
  fs::rename(path("low/quantize.json"), path("mine"));
  const std::string before = bytes_of(path("mine"));
  fs::create_symlink(path("mine"), path("low/quantize.json"));
  fs::remove(path("low/config.json"));
  expect_error(program("quantize --resume --out low"), 1, {"low/quantize.json: it is a link to "});
  EXPECT_EQ(bytes_of(path("mine")), before);
}

}  // namespace
}  // namespace miniqat::testing::links_test
