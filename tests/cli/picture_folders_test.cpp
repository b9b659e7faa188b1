// Folders of pictures through the program: files that cannot be read (what it says, skips and keeps a list of), and
// pictures of another size than the model's, which are refused by their headers: a small .gz can hold gigabytes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"
#include "tests/datasets/dataset_files.h"
#include "tests/temp_dir.h"

namespace miniqat::testing::picture_folders_test {
namespace {

namespace fs = std::filesystem;

class BrokenFilesTest : public ProgramTest {
 protected:
  BrokenFilesTest() { setenv("MINIQAT_CACHE_DIR", (path("cache")).c_str(), 1); }
  ~BrokenFilesTest() override { unsetenv("MINIQAT_CACHE_DIR"); }

  /// Two classes of twelve pictures in `folder`.
  void put_pictures(const std::string& folder) const {
    for (int i = 0; i < 24; ++i)
      put(concat(folder, i % 2 == 0 ? "/cat/" : "/dog/", 10 + i, ".png"), png_bytes(make_picture(12, 12, 1, i)));
  }
  void put(const std::string& name, const std::string& bytes) const {
    fs::create_directories((path(name)).parent_path());
    place_.write(name, bytes);
  }
  Outcome run(const Arguments& line) const { return miniqat(line, place_.path()); }
  Outcome train(const std::string& out, const Arguments& more = {}) const {
    return run("train --model lenet --width 0.25 --float --dataset pets --steps 2 --batch-size 4 --threads 1" +
               Arguments{"--out", out} + more);
  }
  nlohmann::json json(const std::string& name) const { return nlohmann::json::parse(bytes_of(path(name))); }
};

void expect_success_with_notes(const Outcome& outcome) { EXPECT_EQ(outcome.status, 0) << outcome.err; }

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t place = text.find(part); place != std::string::npos; place = text.find(part, place + 1)) ++count;
  return count;
}

TEST_F(BrokenFilesTest, FilesThatAreLeftOutAreSaidByEveryCommandThatReads) {
  put_pictures("pets");
  put("pets/cat/a.gif", "?");
  const std::string note = "pets: left out 1 .gif file; pictures are .jpg, ";
  const auto says_once = [&](const Outcome& outcome) {
    expect_success_with_notes(outcome);
    EXPECT_EQ(count_of(outcome.err, note), 1) << outcome.err;
  };
  says_once(train("run"));
  EXPECT_FALSE(fs::exists(path("run/skipped_files.json")));
  says_once(run("eval --run run"));
  says_once(run("calibrate --run run --batches 1 --out calibrated"));
  says_once(run("predict --run run 0"));
  says_once(run("verify --run calibrated --no-runtimes"));
  says_once(run("sensitivity --run run --bits 8 --out table"));
  says_once(run("quantize --run run --steps 1 --batches 1 --validation 4 --out q"));
  says_once(run("report run --out r.html"));
}

TEST_F(BrokenFilesTest, SkippedFilesAreListedInTheRunAndInTheReport) {
  put_pictures("pets");
  put("pets/cat/10.png", "");
  fs::create_symlink("/mnt/gone.png", path("pets/dog/90.png"));
  expect_error(train("run"), 1, {"2 of 25 files cannot be read", "\"cat/10.png\" is empty", "--skip-broken"});
  EXPECT_FALSE(fs::exists(path("run")));

  const Outcome skipping = train("run", "--skip-broken");
  expect_success_with_notes(skipping);
  EXPECT_EQ(count_of(skipping.err, "skipped 2 of 25 files"), 1) << skipping.err;
  EXPECT_EQ(json("run/config.json")["skip_broken"], true);
  EXPECT_EQ(json("run/summary.json")["skipped_files"], 2);
  const nlohmann::json list = json("run/skipped_files.json");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["file"], "cat/10.png");
  EXPECT_EQ(list[0]["why"], "\"cat/10.png\" is empty; a picture was expected");
  EXPECT_EQ(list[1]["file"], "dog/90.png");

  expect_text(run("runs . --commands").out, {" --skip-broken"});

  // The run's own data are read as it read them.
  const Outcome evaluated = run("eval --run run");
  expect_success_with_notes(evaluated);
  expect_text(evaluated.err, {"skipped 2 of 25 files"});
  expect_success_with_notes(run("calibrate --run run --batches 1 --out calibrated"));
  EXPECT_EQ(json("calibrated/skipped_files.json"), list);
  expect_success_with_notes(run("quantize --run run --steps 1 --batches 1 --validation 4 --out q"));
  EXPECT_EQ(json("q/skipped_files.json"), list);
  expect_success_with_notes(run("report run --out r.html"));
  const std::string page = bytes_of(path("r.html"));
  expect_text(page, {"\"skipped_files\":[{\"file\":\"cat/10.png\""});

  // A new run in its place has no list of files that it did not skip.
  put_pictures("pets");
  fs::remove(path("pets/dog/90.png"));
  expect_success_with_notes(train("run", "--overwrite"));
  EXPECT_FALSE(fs::exists(path("run/skipped_files.json")));
}

TEST_F(BrokenFilesTest, AResumedRunSkipsTheSameFiles) {
  put_pictures("pets");
  put("pets/cat/10.png", "");
  expect_success_with_notes(train("run", "--skip-broken"));
  expect_success_with_notes(train("halves", "--skip-broken --stop-at 1"));
  const nlohmann::json list = json("halves/skipped_files.json");
  expect_success_with_notes(run("train --resume --out halves"));
  EXPECT_EQ(json("halves/skipped_files.json"), list);
  EXPECT_TRUE(bytes_of(path("run/checkpoint.safetensors")) == bytes_of(path("halves/checkpoint.safetensors")));
  // Another file that breaks leaves another run.
  put("pets/cat/12.png", "");
  expect_error(run("train --resume --steps 3 --out halves"), 1, {"has changed since the run began"});
}

TEST_F(BrokenFilesTest, MovedPicturesKeepTheirPartsWithoutTheBrokenOnes) {
  put_pictures("pets");
  put("pets/cat/10.png", "");
  expect_success_with_notes(train("run", "--skip-broken"));
  const auto accuracy = [&](const Arguments& line) {
    const Outcome outcome = run(line + "--threads 1");
    expect_success_with_notes(outcome);
    return outcome.out.substr(std::min(outcome.out.find("accuracy"), outcome.out.size()));
  };
  const std::string before = accuracy("eval --run run");
  expect_text(before, {"of 4)"});
  fs::rename(path("pets"), path("moved"));
  EXPECT_EQ(accuracy("eval --run run --dataset moved"), before);
}

TEST_F(BrokenFilesTest, OtherDataAreSkippedWhereACommandIsAskedTo) {
  put_pictures("pets");
  put_pictures("others");
  put("others/cat/10.png", "");
  expect_success_with_notes(train("run"));
  for (const Arguments& command : std::vector<Arguments>{{"eval", "--run", "run"}, {"predict", "--run", "run", "0"}}) {
    Arguments line = command;
    line.insert(line.end(), {"--dataset", "others"});
    expect_error(run(line), 1, {"1 of 24 files cannot be read"});
    line.emplace_back("--skip-broken");
    expect_success_with_notes(run(line));
  }
  expect_success_with_notes(run("calibrate --run run --dataset others --skip-broken --batches 1 --out c"));
  EXPECT_EQ(json("c/config.json")["skip_broken"], true);
}

class PictureSizeTest : public TinyTaskTest {
 protected:
  /// Ten pictures of 8192x8192 in each split, as the headers say. They are cut off: whoever expands them says so.
  PictureSizeTest() {
    for (const std::string split : {"large/train", "large/t10k"}) {
      std::string pictures;
      for (const std::uint32_t word : {2051, 10, 8192, 8192})
        for (int shift = 24; shift >= 0; shift -= 8) pictures += static_cast<char>(word >> shift);
      const std::string bytes = gzip_bytes(pictures + std::string(100'000, '\0'), 9);
      place_.write(split + "-images-idx3-ubyte.gz", bytes.substr(0, bytes.size() - 20));
      place_.write(split + "-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\x0a", 8) + std::string(10, '\1'));
    }
  }

  void expect_refusal(const Outcome& outcome, const std::string& source) const {
    expect_error(outcome, 1, {source, "the input is [", "8,8,1]", "the pictures of mnist are [8192,8192,1]"});
  }
};

const Arguments kLarge = "--dataset mnist --data-dir large";

TEST_F(PictureSizeTest, PicturesThatDoNotFitAreNotExpanded) {
  expect_refusal(train("run", kLarge), "tiny.json");
  EXPECT_FALSE(std::filesystem::exists(path("run")));
  expect_success(train("run"));
  expect_success(train("float", "--float"));
  expect_success(program("export --run run --format miniqat --out net.miniqat"));
  expect_refusal(program(Arguments("eval --run run") + kLarge), "run/eval_graph.json");
  expect_refusal(program(Arguments("eval --run run --integer") + kLarge), "run/eval_graph.json");
  expect_refusal(program(Arguments("eval --model net.miniqat") + kLarge), "net.miniqat");
  expect_refusal(program(Arguments("verify --run run") + kLarge), "run/eval_graph.json");
  expect_refusal(program(Arguments("calibrate --run float --out ptq") + kLarge), "float/eval_graph.json");
}

TEST_F(PictureSizeTest, OwnPicturesFitWithTheFlagsOfTheError) {
  const datasets::Picture picture = make_picture(9, 9, 3, 1);
  for (const std::string part : {"train", "test"})
    for (const std::string kind : {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"})
      place_.write("own/" + part + "/" + kind + "/a.png", png_bytes(picture));
  const auto own = [&](const Arguments& more) {
    return program(Arguments("train --model tiny.json --dataset ./own --steps 1 --out run") + more);
  };
  const std::string are = "own are [9,9,3]; ";
  expect_error(own({}), 1, {are + "--image-size 8x8 and --colour grey make them fit"});
  expect_error(own({"--colour", "grey"}), 1, {"own are [9,9,1]; --image-size 8x8 makes them fit"});
  expect_error(own({"--image-size", "8"}), 1, {"own are [8,8,3]; --colour grey makes them fit"});
  EXPECT_EQ(own({"--image-size", "8x8", "--colour", "grey"}).status, 0);
}

}  // namespace
}  // namespace miniqat::testing::picture_folders_test
