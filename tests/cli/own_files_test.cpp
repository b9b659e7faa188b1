// A user's own files through the program: from pictures to integers, from any folder.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/text/error.h"
#include "core/text/json.h"
#include "datasets/dataset.h"
#include "datasets/known_datasets.h"
#include "tests/cli/program.h"
#include "tests/datasets/dataset_files.h"
#include "tests/temp_dir.h"

namespace miniqat::own_files_test {
namespace {

namespace fs = std::filesystem;
using testing::Arguments;
using testing::expect_error;
using testing::expect_success;
using testing::expect_text;
using testing::Outcome;

const char* const kNames[] = {"bird", "cat", "dog"};

/// Discs on noise: red, green and blue, or bright, brighter, brightest.
datasets::Picture disc(int kind, int seed, std::int64_t height, std::int64_t width) {
  datasets::Picture picture = testing::make_picture(height, width, 3, seed);
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        std::uint8_t& pixel = picture.pixels[(y * width + x) * 3 + c];
        const std::int64_t dy = 2 * y - height, dx = 2 * x - width;
        const bool inside = dy * dy * 3 < height * height && dx * dx * 3 < width * width;
        pixel = inside && c == kind ? 250 : pixel / 4;
      }
  return picture;
}

class OwnFilesTest : public testing::ProgramTest {
 protected:
  OwnFilesTest() {
    setenv("MINIQAT_CACHE_DIR", path("cache").c_str(), 1);
    fs::create_directories(path("elsewhere"));
  }
  ~OwnFilesTest() override { unsetenv("MINIQAT_CACHE_DIR"); }

  /// JPEG and PNG of many sizes, in train/ and test/ of a folder.
  void make_pets(const std::string& folder, const std::vector<int>& kinds = {0, 1, 2}) const {
    for (const auto& [part, count] : {std::pair{"train", 24}, {"test", 8}})
      for (const int kind : kinds)
        for (int i = 0; i < count; ++i) {
          const datasets::Picture picture = disc(kind, i, 12 + i % 7, 12 + i % 5);
          const fs::path file = path(folder) / part / kNames[kind] / concat(part[1], i, i % 2 == 0 ? ".png" : ".jpg");
          fs::create_directories(file.parent_path());
          place_.write(file.lexically_relative(place_.path()),
                       i % 2 == 0 ? testing::png_bytes(picture) : testing::jpeg_bytes(picture));
        }
  }

  Outcome run(const Arguments& line, const std::string& folder = ".") const {
    return testing::miniqat(line, path(folder));
  }
  /// From another folder than the one in which the run was trained.
  Outcome elsewhere(const Arguments& line) const { return run(line, "elsewhere"); }

  void train(const Arguments& more, const std::string& out) const {
    const Arguments line =
        "train --model lenet --width 0.25 --dataset pets --image-size 12x10 --epochs 6 --batch-size 8 --learning-rate "
        "0.02 --threads 1" +
        Arguments{"--out", out} + more;
    expect_text(expect_success(run(line)).out, {"72 training and 24 test pictures"});
  }

  nlohmann::json json(const std::string& file) const { return nlohmann::json::parse(testing::bytes_of(path(file))); }
};

TEST_F(OwnFilesTest, EveryFormatTrainsToTheSameBits) {
  datasets::Splits digits;
  try {
    digits = datasets::load("mnist");
  } catch (const Error&) {
    digits = datasets::load("synthetic", {}, {.train_size = 96, .test_size = 30});
  }
  digits = {.train = first_examples(digits.train, 96), .test = first_examples(digits.test, 30)};
  testing::write_idx_folder(path("idx"), digits);
  testing::write_class_folders(path("png"), digits);
  testing::write_npy_folder(path("npy"), digits);
  testing::write_npz_file(path("digits.npz"), digits);
  testing::write_csv_folder(path("csv"), digits);
  const auto train = [&](const std::string& dataset, const Arguments& more = {}) {
    const Arguments line = "train --model lenet5 --steps 8 --batch-size 16 --threads 1 --overwrite --out run" +
                           Arguments{"--dataset", dataset} + more;
    expect_success(run(line));
    return testing::bytes_of(path("run/checkpoint.safetensors"));
  };
  const std::string named = train("mnist", "--data-dir idx");
  for (const char* own : {"./idx", "png", "npy", "digits.npz", "csv"}) {
    EXPECT_TRUE(train(own) == named) << own;
    EXPECT_EQ(json("run/summary.json")["class_names"].size(), own == std::string("png") ? 10u : 0u) << own;
  }
  // The comparison can tell: with another grid the bits are others.
  EXPECT_FALSE(train("png", "--mean 0.1") == named);
}

TEST_F(OwnFilesTest, FromPicturesToIntegersFromAnywhere) {
  make_pets("pets");
  train({"--mean", "0.5", "--std", "0.25", "--weight-bits", "4", "--activation-bits", "8"}, "run");
  EXPECT_EQ(json("run/config.json")["dataset"], path("pets").string());
  EXPECT_EQ(json("run/summary.json")["class_names"], (nlohmann::json{"bird", "cat", "dog"}));
  EXPECT_FLOAT_EQ(json("run/summary.json")["input_scale"], 1 / (255 * 0.25f));

  expect_text(expect_success(elsewhere({"eval", "--run", "../run"})).out, {"accuracy 100.00% (24 of 24)"});
  const Outcome integers = expect_success(elsewhere({"eval", "--run", "../run", "--integer"}));
  expect_success(elsewhere({"verify", "--run", "../run", "--no-runtimes", "--threads", "1"}));
  for (const char* format : {"miniqat", "tflite", "onnx", "json", "c"}) {
    const std::string file = concat("m.", format);
    expect_success(elsewhere({"export", "--run", "../run", "--format", format, "--out", file}));
    const std::string bytes = testing::bytes_of(path("elsewhere") / (format == std::string("c") ? "m.h" : file));
    for (const char* name : kNames) EXPECT_NE(bytes.find(name), std::string::npos) << format;
  }
  const std::string header = testing::bytes_of(path("elsewhere/m.h"));
  expect_text(header, {"#define M_INPUT_ZERO_POINT 128\n", "#define M_INPUT_SCALE 0.0156862754f\n", "     2 dog"});

  // The file knows size, grid and classes.
  const Outcome file = expect_success(elsewhere({"eval", "--model", "m.miniqat", "--dataset", "../pets"}));
  const auto result = [](const Outcome& outcome) { return outcome.out.substr(outcome.out.find(": accuracy")); };
  EXPECT_EQ(result(file), result(integers));
}

TEST_F(OwnFilesTest, PredictReadsFilesOfPictures) {
  make_pets("pets");
  train({"--mean", "0.5", "--std", "0.25"}, "run");
  const auto predict = [&](const Arguments& pictures) {
    return nlohmann::json::parse(expect_success(elsewhere("predict ../run --json" + pictures)).out);
  };
  // The test pictures come by name and then by class: number 3 is the first class's "e1.jpg".
  const auto files = predict({"../pets/test/bird/e1.jpg", "../pets/test/dog/e0.png"}), numbers = predict({"3", "2"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(files["pictures"][i]["scores"], numbers["pictures"][i]["scores"]) << i;
    EXPECT_EQ(files["pictures"][i]["class"], i == 0 ? "bird" : "dog");
    EXPECT_TRUE(files["pictures"][i]["label"].is_null());
  }
  EXPECT_TRUE(files["dataset"].is_null());
  EXPECT_NE(files["pictures"][0]["scores"], files["pictures"][1]["scores"]);

  place_.write("no.png", "no picture");
  expect_error(run("predict run no.png"), 1, {"no.png"});
  expect_error(run("predict run nowhere.png"), 2, {"neither the number of a picture in the data set"});
  expect_error(run("predict run 0 no.png"), 2, {"give either numbers of pictures or files, not both"});
  expect_error(run("predict run pets/test/dog"), 2,
               {R"("pets/test/dog" is a folder: name its files, as in pets/test/dog/*)"});
  expect_error(run("predict run --run run 0"), 2, {R"(two runs are given: "run" and "run")"});
  expect_text(expect_success(run("eval run --by-class")).out, {"bird"});
  // A graph without a run takes the pictures' size from its input.
  const std::string last = json("run/eval_graph.json")["nodes"].back()["name"];
  expect_success(run("run --graph run/eval_graph.json --dataset pets --index 0 --out out.safetensors" +
                     Arguments{"--fetch", last}));
}

TEST_F(OwnFilesTest, EveryCommandThatLoadsDataFindsThem) {
  make_pets("pets");
  make_pets("others", {1, 2});
  train({"--float"}, "float");
  expect_success(elsewhere({"calibrate", "--run", "../float", "--out", "calibrated", "--threads", "1"}));
  expect_success(elsewhere({"eval", "--run", "calibrated", "--integer"}));
  EXPECT_EQ(json("elsewhere/calibrated/summary.json")["class_names"].size(), 3u);
  expect_success(elsewhere({"sensitivity", "--run", "../float", "--bits", "8", "--out", "widths", "--threads", "1"}));
  expect_success(elsewhere({"quantize", "--run", "../float", "--epochs", "1", "--out", "quantized", "--threads", "1"}));
  expect_success(elsewhere({"eval", "--run", "quantized", "--split", "validation"}));
  for (const char* split : {"validation", "train", "test"}) {
    // A picture's number and its file mean the same picture, in parts that were held out, too.
    const auto predict = [&](const Arguments& pictures) {
      return nlohmann::json::parse(elsewhere("predict quantized --json --threads 1" + pictures).out)["pictures"];
    };
    const auto numbers = predict({"--split", split, "4", "0", "2"});
    Arguments names;
    for (const auto& picture : numbers) names.push_back("../pets/" + picture["file"].get<std::string>());
    const auto files = predict(names);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(files[i]["scores"], numbers[i]["scores"]) << split << names[i];
    EXPECT_NE(names[0], names[1]);
  }
  EXPECT_EQ(json("elsewhere/quantized/summary.json")["class_names"].size(), 3u);
  expect_success(elsewhere({"export", "--run", "quantized", "--format", "json", "--out", "q.json"}));
  // A calibration on other pictures records their form.
  expect_success(elsewhere({"calibrate", "--run", "../float", "--dataset", "../others", "--out", "on_others"}));
  EXPECT_EQ(json("elsewhere/on_others/config.json")["image_size"], "12x10");
  expect_success(run("eval --run elsewhere/on_others"));
}

TEST_F(OwnFilesTest, OtherPicturesTakeOnTheFormOfTheRun) {
  make_pets("pets");
  make_pets("others", {1, 2});
  train({"--float", "--mean", "0.5", "--std", "0.5"}, "run");
  // Two of the three classes: their numbers are those of the training.
  const Outcome others = expect_success(elsewhere({"eval", "--run", "../run", "--dataset", "../others"}));
  expect_text(others.out, {"accuracy 100.00% (16 of 16)"});
  fs::rename(path("others/train/dog"), path("others/train/wolf"));
  expect_error(elsewhere({"eval", "--run", "../run", "--dataset", "../others"}), 1,
               {"\"wolf\", which the network does not know; its classes are bird, cat, dog"});
}

TEST_F(OwnFilesTest, AFolderThatMovedIsMissed) {
  make_pets("pets");
  train({"--float"}, "run");
  fs::rename(path("pets"), path("moved"));
  expect_error(elsewhere({"eval", "--run", "../run"}), 1, {path("pets").string(), "not there", "--dataset"});
  expect_error(elsewhere({"calibrate", "--run", "../run", "--out", "c"}), 1, {path("pets").string(), "--dataset"});
  expect_success(elsewhere({"eval", "--run", "../run", "--dataset", "../moved"}));
  fs::create_directory_symlink(path("moved"), path("pets"));
  expect_success(elsewhere({"eval", "--run", "../run"}));
  // The same path from another folder is the same data set.
  expect_success(run("train --resume --out run --dataset pets"));
  expect_error(run("train --resume --out run --dataset moved"), 2, {"--dataset differs"});
}

TEST_F(OwnFilesTest, MovedPicturesKeepTheirParts) {
  make_pets("pets");
  const Arguments line =
      "train --model lenet --width 0.25 --dataset flat --image-size 12x10 --steps 4 --batch-size 8 --threads 1 --float "
      "--validation 12 --out run";
  fs::rename(path("pets/train"), path("flat"));
  expect_success(run(line));
  EXPECT_EQ(json("run/summary.json")["pictures"], (nlohmann::json{{"training", 48}, {"validation", 12}, {"test", 12}}));
  const auto accuracy = [&](const std::string& dataset) {
    const Outcome outcome = expect_success(run({"eval", "--run", "run", "--dataset", dataset}));
    return outcome.out.substr(outcome.out.find("accuracy"));
  };
  const std::string before = accuracy("flat");
  fs::copy(path("flat"), path("copy"), fs::copy_options::recursive);
  // The run's own are there: the copy is foreign, and all of it test pictures.
  expect_text(accuracy("copy"), {"of 72)"});
  fs::rename(path("flat"), path("moved"));
  EXPECT_EQ(accuracy("moved"), before);
  expect_success(run("calibrate --run run --dataset moved --out bytes --threads 1"));
  EXPECT_EQ(json("bytes/config.json")["validation"], 12);
  EXPECT_EQ(json("bytes/summary.json")["pictures"], json("run/summary.json")["pictures"]);
  expect_success(run("eval --run bytes --split validation"));

  fs::remove(path("copy/dog/r1.jpg"));
  expect_text(accuracy("copy"), {"of 71)"});
  const Outcome fewer = run("calibrate --run run --dataset copy --out other --threads 1");
  EXPECT_EQ(fewer.status, 0) << fewer.err;
  expect_text((fewer.err + fewer.out), {"validation part of 12 pictures is not held out"});
  EXPECT_EQ(json("other/config.json")["validation"], 0);
  // Commands without --dataset show the way that they have; other pictures make another run.
  for (const Arguments& without : {Arguments("quantize run --out q"), {"train", "--resume", "--out", "run"}})
    expect_error(run(without), 1, {path("flat").string(), "not there", "put a link where it was"});
  fs::rename(path("copy"), path("flat"));
  expect_error(run("train --resume --out run"), 1, {"has changed since the run began", "11 test pictures now"});
}

TEST_F(OwnFilesTest, AResumedRunRefusesClassesThatChangePlaces) {
  make_pets("pets");
  train({"--float"}, "run");
  for (const char* part : {"pets/train", "pets/test"}) fs::rename(path(part) / "bird", path(part) / "wolf");
  expect_error(run("train --resume --out run --epochs 100"), 1,
               {"pets has changed since the run began", "its classes are cat, dog, wolf now, not bird, cat, dog"});
}

TEST_F(OwnFilesTest, AnUnfinishedRunKnowsItsClasses) {
  make_pets("pets");
  train({"--weight-bits", "4"}, "run");
  const std::string accuracy = run("eval run --threads 1").out;
  const std::string scores = run("predict run pets/test/cat/e1.jpg").out;
  expect_text(scores, {"cat"});
  fs::remove(path("run/summary.json"));
  const auto unfinished = [&](const Arguments& line) {
    const Outcome outcome = run(line);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    expect_text(outcome.err, {"is unfinished"});
    return outcome.out;
  };
  EXPECT_EQ(unfinished({"eval", "run", "--threads", "1"}), accuracy);
  EXPECT_EQ(unfinished({"predict", "run", "pets/test/cat/e1.jpg"}), scores);
  // Without the data, the grid of the pictures is known as well.
  fs::rename(path("pets"), path("gone"));
  unfinished({"export", "run", "--out", "run.json"});
  EXPECT_EQ(json("run.json")["class_names"], (nlohmann::json{"bird", "cat", "dog"}));
}

TEST_F(OwnFilesTest, OnlyTestPicturesAreNeededOfOthers) {
  make_pets("pets");
  train({"--float"}, "run");
  make_pets("others", {1, 2});
  fs::remove_all(path("others/train"));
  expect_text(expect_success(run("eval --run run --dataset others")).out, {"of 16)"});
  expect_error(run("eval --run run --dataset others --split train"), 2, {"no training pictures"});
  expect_error(run("train --model lenet --dataset others --out r"), 1, {"has test/ but no train/"});
  expect_error(run("train --model lenet --dataset petz --out r"), 2,
               {"unknown data set \"petz\"", "the path of your own files", "no folder of that name"});
}

TEST_F(OwnFilesTest, AValidationFolderDecides) {
  make_pets("pets");
  fs::copy(path("pets/test"), path("pets/val"), fs::copy_options::recursive);
  const Arguments line =
      "train --model lenet --width 0.25 --dataset pets --image-size 12x10 --steps 9 --batch-size 8 --threads 1 --float "
      "--learning-rate 0.02 --out run";
  expect_text(expect_success(run(line)).out, {"72 training, 24 validation and 24 test pictures"});
  expect_text(expect_success(elsewhere({"eval", "--run", "../run", "--split", "validation"})).out, {"of 24)"});
  Arguments twice = line;
  twice.back() = "second";
  twice.insert(twice.end(), {"--validation", "10"});
  expect_error(run(twice), 2, {"--validation 10", "validation part of its own"});
  expect_text(
      expect_success(elsewhere({"quantize", "--run", "../run", "--epochs", "1", "--out", "q", "--threads", "1"})).out,
      {"the validation pictures of the data, 8 of each of 3 classes, decide"});
}

TEST_F(OwnFilesTest, APathThatIsNotThereIsNamed) {
  expect_error(run("train --model lenet --dataset ./nothing --out run"), 1, {"there is no", "nothing"});
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(OwnFilesTest, ALabelThatNoPictureHasIsNoted) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += concat(1 + i % 2, ",", i, ",1,2,3\n");
  place_.write("from_one.csv", text);
  const Outcome outcome =
      run("train --model lenet --width 0.1 --dataset from_one.csv --float --image-size 8 --steps 2 --batch-size 4 "
          "--threads 1 --out r");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_text((outcome.err + outcome.out), {"no training picture has the label 0, 1 of 3 classes"});
  text = {};
  for (int i = 0; i < 40; ++i) text += concat(i == 0 ? 4 : i % 2, ",", i, ",1,2,3\n");
  place_.write("from_one.csv", text);
  const Outcome more =
      run("train --model lenet --width 0.1 --dataset from_one.csv --float --image-size 8 --steps 2 --batch-size 4 "
          "--threads 1 --out s");
  EXPECT_EQ(more.status, 0) << more.err;
  expect_text((more.err + more.out), {"no training picture has the label 2 or 3, 2 of 5 classes",
                                      "no test picture has the label 2 or 3 or 4, 3 of 5 classes"});
}

/// The icons of Debian's tango-icon-theme: 850 PNG files of 32 x 32 with transparent pixels, in folders by purpose.
/// Many are links to others, so that some test pictures are training pictures, too.
TEST_F(OwnFilesTest, RealIconsAreLearned) {
  const fs::path icons = "/usr/share/icons/Tango/32x32";
  if (!fs::exists(icons)) GTEST_SKIP() << "no tango-icon-theme (scripts/install-deps --ci)";
  const Outcome trained =
      run("train --model lenet5 --image-size 32 --float --learning-rate 0.01 --epochs 12 --batch-size 32 --out run" +
          Arguments{"--dataset", icons.string()});
  // Few icons are animations: perhaps none of them is a test picture, which is noted.
  EXPECT_EQ(trained.status, 0) << trained.err;
  const nlohmann::json summary = json("run/summary.json");
  EXPECT_EQ(summary["class_names"][0], "actions");
  EXPECT_EQ(summary["class_names"].size(), 10u);
  // A third of all are actions.
  EXPECT_GT(summary["test_accuracy"].get<double>(), 0.6);
  expect_success(run("calibrate --run run --out bytes"));
  expect_success(run("export --run bytes --format c --out icons.c"));
}

}  // namespace
}  // namespace miniqat::own_files_test
