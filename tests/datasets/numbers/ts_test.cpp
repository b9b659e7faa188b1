// Series in the .ts format of the UCR/UEA archives: small ones in words, and five real ones.

#include <gtest/gtest.h>

#include <cstdlib>

#include "datasets/known_datasets.h"
#include "tests/datasets/dataset_files.h"
#include "tests/datasets/numbers/described.h"
#include "tests/errors.h"
#include "tests/source_dir.h"

namespace miniqat::datasets::ts_test {
namespace {

namespace fs = std::filesystem;
using testing::described_parts;
using testing::mentions;

/// All of X.ts is the test part, with numbers as the file has them.
void expect(const std::string& text, const std::string& gives, std::int64_t pad_to = 0,
            Answers answers = Answers::kAuto) {
  SCOPED_TRACE(text);
  const testing::TempDir place;
  LoadOptions options{.numbers = {.answers = answers, .standardise = false, .pad_to = pad_to}, .whole_as_test = true};
  const fs::path file = place.write("X.ts", text);
  const std::string given = described_parts([&] { return load(file.string(), {}, options); });
  if (gives.starts_with("error: "))
    EXPECT_TRUE(mentions(given, {"error: ", "X.ts", gives.substr(7)}));
  else
    EXPECT_EQ(given, "test " + gives);
}

TEST(Ts, GivesWhatTheTableSays) {
  const std::string classes = "@classLabel true b a\n@data\n";
  expect(classes + "1,2:b\n3,4.5:a", "[2,2,1] 1 2 3 4.5, classes a b: 1 0");
  expect(classes + "1,2:3,4:b\n5,6:7,8:a\n", "[2,2,2] 1 3 2 4 5 7 6 8, classes a b: 1 0");
  expect(
      "# text\n@problemName X\n@timeStamps false\n@missing false\n@univariate false\n@dimensions 2\n"
      "@equalLength true\n@seriesLength 2\n" +
          classes + "1,2:3,4:a\r\n\n # more\n5,6:7,8:a",
      "[2,2,2] 1 3 2 4 5 7 6 8, classes a b: 0 0");
  expect("@classLabel true inf nan\n@data\n1:nan\n2:inf", "[2,1,1] 1 2, classes inf nan: 1 0");
  expect("@targetLabel true\n@data\n1:2\n2:inf", "error: line 4, the number to predict: \"inf\" is no finite number");
  expect("@classLabel true 10 9\n@data\n1:10\n2:9", "[2,1,1] 1 2, classes 9 10: 1 0");
  expect("@targetLabel true\n@data\n1,2:-3.5\n3,4:8", "[2,2,1] 1 2 3 4, 1 targets: -3.5 8");
  expect("@classLabel false\n@data\n1,2\n3,4", "[2,2,1] 1 2 3 4");
  expect("@data\n1,2:5,6\n3,4:7,8", "[2,2,2] 1 5 2 6 3 7 4 8");
  expect("@equalLength false\n@classLabel true b a\n@data\n1:b\n2,3:a", "[2,3,1] 1 0 0 2 3 0, classes a b: 1 0", 3);

  // Whatever the header calls them.
  const std::string ages = "@classLabel true 9 10\n@data\n1:9\n2:10", numbers = "@targetLabel true\n@data\n1:3\n2:2.5";
  expect(ages, "[2,1,1] 1 2, 1 targets: 9 10", 0, Answers::kTargets);
  expect(ages, "[2,1,1] 1 2, classes 9 10: 0 1", 0, Answers::kClasses);
  expect(numbers, "[2,1,1] 1 2, 1 targets: 3 2.5", 0, Answers::kTargets);
  expect(numbers, "[2,1,1] 1 2, classes 2.5 3: 1 0", 0, Answers::kClasses);
  expect("@data\n1\n2", "[2,1,1] 1 2", 0, Answers::kTargets);
  expect(classes + "1:b", "error: line 3, the number to predict: \"b\" is not a number", 0, Answers::kTargets);

  expect("@timestamps true\n" + classes + "(0,1):b", "error: line 1: series with time stamps");
  expect("@missing true\n" + classes + "1,?:b", "error: line 4, dimension 1, step 2: a value is missing (\"?\")");
  expect(classes + "1,2:3,:b", "error: line 3, dimension 2, step 2: a value is missing (nothing");
  expect(classes + "1,x:b", "error: line 3, dimension 1, step 2: \"x\" is not a number");
  expect(classes + "1,1e99:b", "error: \"1e99\" is no finite number");
  expect(classes + "1,2:c", "error: line 3 has the class \"c\"; @classLabel has b, a");
  expect("@classLabel true\n@data\n1,2:", "error: line 3 has no class");
  expect(classes + "1,2", "error: line 3 has no class behind a ':'");
  expect(classes + "1,2:b\n1:a", "error: line 4 has 1 step, ");
  expect(classes + "1,2:3:b", "error: line 3: dimension 1 has 2 steps, dimension 2 has 1");
  expect(classes + "1,2:b\n1,2:3,4:a", "error: line 4 has 2 channels, ");
  expect("@dimensions 2\n" + classes + "1,2:b",
         "error: line 4 has 1 dimension, counted without the answer; the header announces 2");
  expect("@univariate true\n" + classes + "1,2:3,4:b", "error: line 4 has 2 dimensions");
  expect("@seriesLength 3\n" + classes + "1,2:b", "error: line 4 has 2 steps; @seriesLength announces 3");
  expect("@seriesLength 999999999999999999999\n" + classes, "error: line 1: behind @seriesLength stands no number");
  expect("@dimensions -1\n" + classes, "error: line 1: behind @dimensions stands no number");
  expect("@univariate maybe\n" + classes, "error: line 1: behind @univariate stands neither true nor false");
  expect("@targetLabel true\n" + classes, "error: line 2: the series have either classes or numbers");
  expect("@targetLabel true\n@data\n1,2:x", "error: line 3, the number to predict: \"x\" is not a number");
  expect("1,2:b\n" + classes, "error: line 1 stands before @data");
  expect("@classLabel true a b\n", "error: holds no series: it has no @data");
  expect(classes, "error: holds no series");
  expect("", "error: holds no series");
}

/// Any beginning of a file is read, or refused in a line.
TEST(Ts, CutFilesAreReadOrRefused) {
  const testing::TempDir place;
  const std::string text = "@univariate false\n@dimensions 2\n@classLabel true b a\n@data\n1,2:3,4:a\n5,6:7,8:b\n";
  LoadOptions options{.whole_as_test = true};
  const std::string whole = testing::gzip_bytes(text, 6);
  for (std::size_t size = 0; size < text.size(); ++size) {
    place.write("X.ts", text.substr(0, size));
    // Nobody sees that a whole line is missing.
    const bool whole_lines = text.substr(0, size).ends_with(":a") || text.substr(0, size).ends_with(":a\n");
    EXPECT_TRUE(mentions(described_parts([&] { return load((place.path() / "X.ts").string(), {}, options); }),
                         {whole_lines || size + 1 == text.size() ? "test " : "error: "}))
        << size;
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    place.write("X.ts.gz", whole.substr(0, size));
    EXPECT_TRUE(
        mentions(testing::error_of([&] { load((place.path() / "X.ts.gz").string(), {}, options); }), {"X.ts.gz"}))
        << size;
  }
}

/// One that is announced and has no example at all is no error.
TEST(Ts, ATestSeriesOfAClassThatTheTrainingPartLacksIsRefused) {
  const std::string head = "@classLabel true 10 9 8 7\n@data\n";
  const testing::TempDir place;
  place.write("X_TEST.ts", head + "5,6:9\n5,6:8");
  const fs::path train = place.write("X_TRAIN.ts", head + "1,2:9\n3,4:10");
  EXPECT_TRUE(mentions(testing::error_of([&] { load(train.string()); }),
                       {"the test part has the class \"8\", which the training part has not; its classes are 9, 10"}));
  EXPECT_EQ(testing::error_of([&] {
              load(train.string(), {}, {.class_names = {"7", "8", "9", "10"}});
            }),
            "")
      << "a network knows it";
  place.write("X_TRAIN.ts", head + "1,2:?\n3,4:?");
  EXPECT_EQ(testing::error_of([&] { load(train.string(), {}, {.answers_optional = true}); }), "")
      << "nobody knows what the training part has";
}

TEST(Ts, ANoteSaysWhatRoundingToFloatsLoses) {
  const testing::TempDir place;
  const auto notes = [&](const std::string& text) {
    return joined(load(place.write("X.ts", text).string(), {}, {.whole_as_test = true}).remarks().notes, "|");
  };
  const std::string lost = " are rounded by up to 43 to floats of 32 bits, 14% of their range: subtract an offset";
  EXPECT_TRUE(
      mentions(notes("@targetLabel true\n@data\n1,2:1700000000,1700000299:1700000000.5\n3,4:1700000000,1700000000:"
                     "1700000299"),
               {concat("X.ts: dimension 2: numbers from 1.7e+09 to 1700000299", lost),
                concat("X.ts, the numbers to predict: numbers from 1700000000.5 to 1700000299", lost)}));
  EXPECT_EQ(notes("@data\n1,2\n16777217,1e9"), "");
}

TEST(Ts, TheTestFileBesideATrainingFileIsItsTestPart) {
  const std::string head = "@classLabel true b a c\n@data\n";
  const testing::TempDir place;
  place.write("X_TRAIN.ts", head + "1,2:b\n3,4:a");
  place.write("X_TEST.ts.gz", testing::gzip_bytes(head + "5,6:b", 6));
  const std::string given =
      "train [2,2,1] -1.34164 -0.447214 0.447214 1.34164, classes a b c: 1 0 | "
      "test [1,2,1] 2.23607 3.1305, classes a b c: 1";
  const fs::path train = place.path() / "X_TRAIN.ts";
  EXPECT_EQ(described_parts([&] { return load(train.string()); }), given);
  EXPECT_EQ(described_parts([&] { return load(place.path().string()); }), given) << "the folder";
  EXPECT_EQ(short_name(train.string()), "X");
  LoadOptions pictures;
  pictures.numbers.inputs = Inputs::kPictures;
  EXPECT_TRUE(mentions(testing::error_of([&] { load(train.string(), {}, pictures); }), {"no pictures"}));
  place.write("Y_TRAIN.ts", head);
  place.write("Y_TEST.ts", head);
  EXPECT_TRUE(
      mentions(testing::error_of([&] { load(place.path().string()); }), {"several data sets", "X_TRAIN", "Y_TRAIN"}));
  fs::remove(place.path() / "X_TEST.ts.gz");
  fs::create_symlink("nowhere", place.path() / "X_TEST.ts");
  EXPECT_NE(testing::error_of([&] { load(train.string()); }), "") << "a link to nothing is no missing file";
}

/// Real ones, beside MNIST.
fs::path series_folder() {
  std::vector<fs::path> candidates = {source_dir() / "../shared/datasets/series"};
  if (const char* given = std::getenv("MINIQAT_DATA_DIR"); given != nullptr && *given != '\0')
    candidates.insert(candidates.begin(), fs::path(given) / "series");
  for (const fs::path& folder : candidates)
    if (fs::exists(folder / "GunPoint_TRAIN.ts.gz")) return folder;
  return {};
}

TEST(Ts, RealSeriesAreRead) {
  const fs::path folder = series_folder();
  if (folder.empty()) GTEST_SKIP() << "no series, neither in $MINIQAT_DATA_DIR/series nor in ../shared/datasets/series";
  struct Set {
    const char* name;
    Shape train, test;
    /// 0: a number to predict.
    int classes;
  };
  const Set kSets[] = {{"BasicMotions", {40, 100, 6}, {40, 100, 6}, 4},
                       {"GunPoint", {50, 150, 1}, {150, 150, 1}, 2},
                       {"ItalyPowerDemand", {67, 24, 1}, {1029, 24, 1}, 2},
                       {"OSULeaf", {200, 427, 1}, {242, 427, 1}, 6},
                       {"Tecator", {172, 100, 1}, {43, 100, 1}, 0}};
  for (const Set& set : kSets) {
    SCOPED_TRACE(set.name);
    const Splits splits = load((folder / (std::string(set.name) + "_TRAIN.ts.gz")).string());
    splits.train.check();
    splits.test.check();
    EXPECT_EQ(splits.train.images.shape(), set.train);
    EXPECT_EQ(splits.test.images.shape(), set.test);
    EXPECT_EQ(splits.train.classes, set.classes);
    EXPECT_EQ(splits.test.has_classes(), set.classes > 0);
    EXPECT_EQ(splits.train.targets.defined(), set.classes == 0);
    // Standardised: the training part's numbers have mean 0.
    double sum = 0;
    for (const float value : splits.train.images.values<float>()) sum += value;
    EXPECT_NEAR(sum / static_cast<double>(splits.train.images.elements()), 0, 1e-4);
  }
  const Splits motions = load((folder / "BasicMotions_TRAIN.ts.gz").string(), {}, {.numbers = {.standardise = false}});
  EXPECT_EQ(motions.train.class_names, (std::vector<std::string>{"Badminton", "Running", "Standing", "Walking"}));
  EXPECT_EQ(motions.train.images.data<float>()[0], 0.079106f);
  EXPECT_EQ(motions.train.images.data<float>()[6], 0.079106f) << "the second step of the first dimension";
  EXPECT_EQ(motions.train.labels.data<std::int32_t>()[0], 2) << "Standing";
  const Splits meat = load((folder / "Tecator_TRAIN.ts.gz").string());
  EXPECT_NEAR(meat.train.target_standard->restored(0, meat.train.targets.data<float>()[0]), 22.5, 1e-4);
}

}  // namespace
}  // namespace miniqat::datasets::ts_test
