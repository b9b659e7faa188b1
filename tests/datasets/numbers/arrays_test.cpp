// Arrays of numbers, with whatever they are to be answered with.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <sstream>

#include "datasets/arrays/array_numbers.h"
#include "datasets/known_datasets.h"
#include "tests/datasets/dataset_files.h"
#include "tests/datasets/numbers/described.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::datasets::number_arrays_test {
namespace {

using testing::described_parts;
using testing::mentions;

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// One element of a type of NumPy's.
std::string element(const std::string& type, const std::string& word) {
  if (type.starts_with("<U")) {
    std::string text(4 * std::stoul(type.substr(2)), '\0');
    for (std::size_t i = 0; i < word.size(); ++i) text[4 * i] = word[i];
    return text;
  }
  const double value = word == "nan" ? std::nan("") : word == "inf" ? INFINITY : std::stod(word);
  if (type == "<f8") return bytes_of(value);
  if (type == "<f4") return bytes_of(static_cast<float>(value));
  if (type == "<u8") return bytes_of(static_cast<std::uint64_t>(value));
  if (type == "<i8") return bytes_of(static_cast<std::int64_t>(value));
  if (type == "<i2") return bytes_of(static_cast<std::int16_t>(value));
  return bytes_of(static_cast<std::uint8_t>(value));
}

/// A folder with a .npy file of each line "NAME TYPE SHAPE: ELEMENT ...".
std::filesystem::path npy_folder(const testing::TempDir& place, const std::string& words) {
  std::istringstream lines(words);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    std::string name, type, shape, elements;
    parts >> name >> type >> shape;
    for (std::string word; parts >> word;) elements += element(type, word);
    shape.back() = ',';
    place.write(name + ".npy", testing::npy_bytes(type, shape, elements));
  }
  return place.path();
}

LoadOptions as_the_files_have_it() {
  LoadOptions options;
  options.numbers.standardise = false;
  return options;
}

struct Case {
  const char* words;
  const char* gives;
  Inputs inputs = Inputs::kAuto;
  Answers answers = Answers::kAuto;
};

const Case kCases[] = {
    // Shapes that pictures do not have.
    {"x_train <f4 2,3: 1 2.5 3 4 5 -6\ny_train |u1 2: 0 1\nx_test <f4 1,3: 7 8 9\ny_test |u1 1: 1",
     "train [2,3] 1 2.5 3 4 5 -6, classes: 0 1 | test [1,3] 7 8 9, classes: 1"},
    {"x_train |u1 2,2: 0 255 3 4\ny_train <i8 2,1: 1 0\nx_test |u1 1,2: 1 2\ny_test <i8 1,1: 1",
     "train [2,2] 0 255 3 4, classes: 1 0 | test [1,2] 1 2, classes: 1"},
    {"x_train |u1 2,1,2,2: 1 2 3 4 5 6 7 8\ny_train |u1 2: 0 1\nx_test |u1 1,1,2,2: 1 2 3 4\ny_test |u1 1: 0",
     "train [2,1,2,2] 1 2 3 4 5 6 7 8, classes: 0 1 | test [1,1,2,2] 1 2 3 4, classes: 0"},
    // Numbers that pixels are not, in either part.
    {"x_train <f8 2,1,2: 0 0.5 1 1.5\ny_train |u1 2: 0 1\nx_test <f8 1,1,2: 0 1\ny_test |u1 1: 0",
     "train [2,1,2] 0 0.5 1 1.5, classes: 0 1 | test [1,1,2] 0 1, classes: 0"},
    {"x_train <f8 2,1,2: 0 0.5 1 1\ny_train |u1 2: 0 1\nx_test <i2 1,1,2: -3 300\ny_test |u1 1: 0",
     "train [2,1,2] 0 0.5 1 1, classes: 0 1 | test [1,1,2] -3 300, classes: 0"},
    // Pictures stay pictures; who wants numbers has them as they are.
    {"x_train <f8 2,1,2: 0 0.2 1 1\ny_train |u1 2: 0 1\nx_test |u1 1,1,2: 3 4\ny_test |u1 1: 0",
     "train bytes [2,1,2,1] 0 51 255 255, classes: 0 1 | test bytes [1,1,2,1] 3 4, classes: 0"},
    {"x_train <f8 2,1,2: 0 0.2 1 1\ny_train |u1 2: 0 1\nx_test |u1 1,1,2: 3 4\ny_test |u1 1: 0",
     "train [2,1,2] 0 0.2 1 1, classes: 0 1 | test [1,1,2] 3 4, classes: 0", Inputs::kNumbers},
    {"x_train <f4 2,3: 1 2.5 3 4 5 -6\ny_train |u1 2: 0 1", "error: the shape [2, 3]; pictures must be",
     Inputs::kPictures},
    // Answers.
    {"x_train <f4 2,1: 1 2\ny_train <f4 2: 0.5 -2\nx_test <f4 1,1: 3\ny_test <f8 1,1: 7",
     "train [2,1] 1 2, 1 targets: 0.5 -2 | test [1,1] 3, 1 targets: 7"},
    {"x_train |u1 2,1,1: 1 2\ny_train <f4 2: 0.5 -2\nx_test |u1 1,1,1: 3\ny_test <f8 1,1: 7",
     "train bytes [2,1,1,1] 1 2, 1 targets: 0.5 -2 | test bytes [1,1,1,1] 3, 1 targets: 7"},
    {"x_train <f4 2,1: 1 2\ny_train <f4 2,2: 1 2 3 4\nx_test <f4 1,1: 3\ny_test <f4 1,2: 5 6",
     "train [2,1] 1 2, 2 targets: 1 2 3 4 | test [1,1] 3, 2 targets: 5 6"},
    {"x_train <f4 2,1: 1 2\ny_train |u1 2,3: 1 0 1 0 0 0\nx_test <f4 1,1: 3\ny_test |b1 1,3: 1 1 0",
     "train [2,1] 1 2, 3 targets: 1 0 1 0 0 0 | test [1,1] 3, 3 targets: 1 1 0"},
    {"x_train <f4 2,1: 1 2\ny_train |u1 2,2: 1 0 1 2",
     "error: (y_train) has the shape [2, 2]; labels must be integers, [n] or [n, 1]; `answers` targets makes them"},
    {"x_train <f4 2,1: 1 2\ny_train <i2 2: 1 -4",
     "error: gives example 1 the label -4; labels must be in [0, 65536); `answers` targets makes them numbers"},
    {"x_train <f4 2,1: 1 2\ny_train <i2 2,2: 1 0 -1 300\nx_test <f4 1,1: 3\ny_test <i2 1,2: 5 6",
     "train [2,1] 1 2, 2 targets: 1 0 -1 300 | test [1,1] 3, 2 targets: 5 6", Inputs::kAuto, Answers::kTargets},
    {"x_train <f4 3,1: 1 2 3\ny_train <U3 3: sun fog sun\nx_test <f4 1,1: 3\ny_test <U4 1,1: fog",
     "train [3,1] 1 2 3, classes fog sun: 1 0 1 | test [1,1] 3, classes fog sun: 0"},
    {"x_train <f4 3,1: 1 2 3\ny_train <U2 3: 10 9 10\nx_test <f4 1,1: 3\ny_test <U1 1: 9",
     "train [3,1] 1 2 3, classes 9 10: 1 0 1 | test [1,1] 3, classes 9 10: 0"},
    {"x_train <f4 2,1: 1 2\ny_train <U1 2: a b\nx_test <f4 1,1: 3\ny_test <U1 1: c",
     "error: the test part has the class \"c\", which the training part has not; its classes are a, b"},
    {"x_train <f4 2,1: 1 2\ny_train <f4 2: 0 1\nx_test <f4 1,1: 3\ny_test <f4 1: 1",
     "train [2,1] 1 2, classes: 0 1 | test [1,1] 3, classes: 1", Inputs::kAuto, Answers::kClasses},
    {"x_train <f4 2,1: 1 2\ny_train <f4 2: 0 1.5", "error: gives example 1 the label 1.5", Inputs::kAuto,
     Answers::kClasses},
    {"x_train <f4 2,1: 1 2\ny_train |u1 2: 0 7\nx_test <f4 1,1: 3\ny_test |u1 1: 1",
     "train [2,1] 1 2, 1 targets: 0 7 | test [1,1] 3, 1 targets: 1", Inputs::kAuto, Answers::kTargets},
    {"x_train <f4 2,1: 1 2\ny_train <U1 2: a b", "error: texts are no numbers to predict", Inputs::kAuto,
     Answers::kTargets},
    // No answers; or answers of the test part alone.
    {"x_train <f4 2,1: 1 2\nx_test <f4 1,1: 3", "train [2,1] 1 2 | test [1,1] 3"},
    {"x_train <f4 2,1: 1 2\nx_test <f4 2,1: 3 4\ny_test |u1 2: 0 1", "train [2,1] 1 2 | test [2,1] 3 4, classes: 0 1"},
    {"x <f4 7,1: 1 2 3 4 5 6 7", "train [6,1] 1 2 3 4 5 7 | test [1,1] 6"},
    {"x_train |u1 2,1,1: 1 2", "error: has no arrays of pictures and labels"},
    // What does not fit.
    {"x_train <f4 2,2: 1 2 nan 3\ny_train |u1 2: 0 1",
     "error: (x_train) holds nan at [1,0]; all numbers must be finite"},
    {"x_train <f4 2,2: 1 2 3 inf\ny_train |u1 2: 0 1", "error: (x_train) holds inf at [1,1]"},
    {"x_train <f8 2,1: 1 1e39\ny_train |u1 2: 0 1", "error: (x_train) holds 1e+39 at [1,0], too large"},
    {"x_train <f4 2,1: 1 2\ny_train <u8 2: 1 9223372036854775808",
     "error: (y_train) holds 9223372036854775808 at element 1; integers must be below 2^63"},
    {"x_train <f4 2,1: 1 2\ny_train <u8 2,2: 1 0 0 9223372036854775808",
     "error: (y_train) holds 9223372036854775808 at element 3"},
    {"x_train <u8 2,1,2: 1 0 0 9223372036854775808\ny_train |u1 2: 0 1",
     "error: (x_train) holds 9223372036854775808 at element 3"},
    {"x_train <f4 2,1: 1 2\ny_train <f4 2: nan 1", "error: (y_train) holds nan at [0,0]"},
    {"x_train <f4 2: 1 2\ny_train |u1 2: 0 1", "error: (x_train) has the shape [2]; numbers must be [n, features]"},
    {"x_train <f4 0,2:\ny_train |u1 0:", "error: (x_train) has the shape [0, 2]: there is no number"},
    {"x_train <U1 1,2: a b\ny_train |u1 1: 0", "error: (x_train) holds texts"},
    {"x_train <f4 2,1: 1 2\ny_train |u1 2: 0 1\nclass_names <U2 2: a\x07 b", "error: has control characters"},
    {"x_train <f4 2,1: 1 2\ny_train |u1 3: 0 1 0", "error: 2 examples, but 3 labels"},
    {"x_train <f4 2,1: 1 2\ny_train |u1 2: 0 1\nx_test <f4 1,2: 3 4\ny_test |u1 1: 1",
     "error: the training examples are [1], the test examples [2]"},
    {"x_train <f4 2,1: 1 2\ny_train |u1 2: 0 1\nx_test <f4 1,1: 3\ny_test <f4 1: 1.5",
     "error: the training part has classes, the test part 1 number to predict"},
    {"x_train <f4 2,1: 1 2\ny_train <f4 2: 0.5 1\nx_test <f4 1,1: 3\ny_test <f4 1,2: 1 2",
     "error: the training part has 1 number to predict, the test part 2 numbers to predict"},
};

TEST(NumberArrays, GiveWhatTheTableSays) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.words);
    const testing::TempDir place;
    LoadOptions options = as_the_files_have_it();
    options.numbers.inputs = one.inputs;
    options.numbers.answers = one.answers;
    const std::string given = described_parts([&] { return load(npy_folder(place, one.words).string(), {}, options); });
    if (std::string gives = one.gives; gives.starts_with("error: "))
      EXPECT_TRUE(mentions(given, {"error: ", gives.substr(7)}));
    else
      EXPECT_EQ(given, gives);
  }
}

TEST(NumberArrays, ANetworkDecidesOnArraysThatCouldBeBoth) {
  LoadOptions options = as_the_files_have_it();
  const auto given = [&](const std::string& words, Inputs trained_on) {
    options.numbers.trained_on = trained_on;
    const testing::TempDir place;
    return described_parts([&] { return load(npy_folder(place, words).string(), {}, options); });
  };
  const std::string rest = "\ny_train |u1 2: 0 1\nx_test |u1 1,1,2: 3 4\ny_test |u1 1: 0";
  const std::string bytes = "x_train |u1 2,1,2: 0 51 1 1" + rest, halves = "x_train <f8 2,1,2: 0 0.5 1 1.5" + rest;
  const std::string as_numbers = "train [2,1,2] 0 51 1 1, classes: 0 1 | test [1,1,2] 3 4, classes: 0";
  EXPECT_EQ(given(bytes, Inputs::kNumbers), as_numbers);
  EXPECT_EQ(given(bytes, Inputs::kPictures),
            "train bytes [2,1,2,1] 0 51 1 1, classes: 0 1 | test bytes [1,1,2,1] 3 4, classes: 0");
  EXPECT_TRUE(mentions(given(halves, Inputs::kPictures), {"error: ", "holds 1.5 at element 3"}));
  options.numbers.inputs = Inputs::kNumbers;
  EXPECT_EQ(given(bytes, Inputs::kPictures), as_numbers) << "what was asked for counts";
}

std::string notes(const std::string& words) {
  const testing::TempDir place;
  return joined(load(npy_folder(place, words).string()).remarks().notes, "|");
}

TEST(NumberArrays, ANoteSaysWhyTheyAreNoPictures) {
  const std::string rest = "\ny_train |u1 2: 0 1\nx_test <f4 1,1,2: 0 1\ny_test |u1 1: 0";
  EXPECT_TRUE(mentions(notes("x_train <f4 2,1,2: 0 0.5 1 1.5" + rest),
                       {"note: ", ": read as numbers [2,1,2], no pictures: ", "holds 1.5 at element 3"}));
  EXPECT_EQ(notes("x_train <f4 2,1,2: 0 0 1 1" + rest), "");
  EXPECT_EQ(notes("x <f4 6,1: 1 2 3 4 5 6\n"), "") << "rows are no pictures anyway";
}

TEST(NumberArrays, ANoteSaysWhatRoundingToFloatsLoses) {
  const std::string lost = " are rounded by up to 43 to floats of 32 bits, 14% of their range: subtract an offset";
  const std::string rest = "\nx_test <f4 1,2: 0 1\ny_test <f8 1: 0";
  EXPECT_TRUE(
      mentions(notes("x_train <f8 2,2: 1700000000 1 1700000299 2\ny_train <f8 2: 1700000000.5 1700000299" + rest),
               {concat("(x_train): column 0: numbers from 1.7e+09 to 1700000299", lost),
                concat("(y_train): numbers from 1700000000.5 to 1700000299", lost)}));
  EXPECT_TRUE(
      mentions(notes("x_train <i8 1,2,2: 1 1700000000 2 1700000299\ny_train <f8 1: 1\nx_test <f4 1,2,2: 0 1 2 3\n"
                     "y_test <f8 1: 0"),
               {concat("(x_train): channel 1: numbers from 1.7e+09 to 1700000299", lost)}));
  EXPECT_EQ(notes("x_train <f8 3,2: 0 0.3 16777217 0.3 1e9 0.3\ny_train <f8 3: 1 2 3" + rest), "");
}

/// Means 2 and 20, deviations 1 and 10.
constexpr const char* kNumbers = "x_train <f4 2,2: 1 10 3 30\nx_test <f4 1,2: 4 0";

TEST(Standardise, TheTrainingPartsMeansAndDeviationsAreUsed) {
  const testing::TempDir place;
  const Splits splits = load(npy_folder(place, concat(kNumbers, "\ny_train <f4 2: 5 9\ny_test <f4 1: 1")).string());
  EXPECT_EQ(described_parts([&] { return splits; }),
            "train [2,2] -1 -1 1 1, 1 targets: -1 1 | test [1,2] 2 -2, 1 targets: -3");
  EXPECT_EQ(splits.train.standard->mean, (std::vector<float>{2, 20}));
  EXPECT_EQ(splits.train.standard->deviation, (std::vector<float>{1, 10}));
  EXPECT_EQ(splits.test.standard, splits.train.standard);
  EXPECT_EQ(*splits.test.target_standard, (Standard{.mean = {7}, .deviation = {2}}));
}

TEST(Standardise, ANetworksStandardsGoFirst) {
  const testing::TempDir place;
  LoadOptions options;
  options.numbers.standard = std::make_shared<Standard>(Standard{.mean = {0, 10}, .deviation = {2, 1}});
  options.numbers.target_standard = std::make_shared<Standard>(Standard{.mean = {1}, .deviation = {4}});
  const auto path = npy_folder(place, concat(kNumbers, "\ny_train <f4 2: 1 0\ny_test <f4 1: 1"));
  const Splits splits = load(path.string(), {}, options);
  EXPECT_EQ(described_parts([&] { return splits; }),
            "train [2,2] 0.5 0 1.5 20, 1 targets: 0 -0.25 | test [1,2] 2 -10, 1 targets: 0");
  EXPECT_EQ(splits.train.standard, options.numbers.standard);
  options.numbers.standard = std::make_shared<Standard>(Standard{.mean = {0}, .deviation = {1}});
  EXPECT_TRUE(mentions(testing::error_of([&] { load(path.string(), {}, options); }), {"standardised with 1 mean"}));
}

/// A standard says that numbers are wanted, whatever they look like.
TEST(Standardise, AStandardMakesNumbersOfPictures) {
  const testing::TempDir place;
  LoadOptions options;
  options.numbers.standard = std::make_shared<Standard>(Standard{.mean = {1}, .deviation = {2}});
  const auto path =
      npy_folder(place, "x_train |u1 2,1,1: 1 3\ny_train |u1 2: 0 1\nx_test |u1 1,1,1: 5\ny_test |u1 1: 0");
  EXPECT_EQ(described_parts([&] { return load(path.string(), {}, options); }),
            "train [2,1,1] 0 1, classes: 0 1 | test [1,1,1] 2, classes: 0");
}

TEST(Standardise, ZerosAndOnesStayAndSoDoNumbersWithoutATrainingPart) {
  const testing::TempDir place;
  const auto path = npy_folder(place, concat(kNumbers, "\ny_train <f4 2: 1 0\ny_test <f4 1: 1"));
  const Splits splits = load(path.string());
  EXPECT_EQ(testing::words_of<float>(splits.train.targets), "1 0");
  EXPECT_EQ(splits.train.target_standard, nullptr);
  LoadOptions whole;
  whole.whole_as_test = true;
  const testing::TempDir other;
  const Splits test = load(npy_folder(other, "x <f4 2,2: 1 10 3 30").string(), {}, whole);
  EXPECT_EQ(testing::described(test.test), "[2,2] 1 10 3 30");
  EXPECT_EQ(test.test.standard, nullptr);
}

}  // namespace
}  // namespace miniqat::datasets::number_arrays_test
