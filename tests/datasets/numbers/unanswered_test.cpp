// Examples whose answers nobody knows, for a network that is asked for them.

#include <gtest/gtest.h>

#include <memory>

#include "datasets/known_datasets.h"
#include "tests/datasets/dataset_files.h"
#include "tests/datasets/numbers/described.h"
#include "tests/errors.h"

namespace miniqat::datasets::unanswered_test {
namespace {

using testing::described_parts;
using testing::mentions;

struct Case {
  /// X.csv and the like is the data set, other files are those of the folder.
  const char* files;
  const char* gives;
  NumberOptions numbers = {};
  std::vector<std::string> class_names = {};
  /// What it gives to others; "": the same.
  const char* others_get = "error: ";
};

const std::vector<std::string> kFogSun = {"fog", "sun"};

const Case kCases[] = {
    // The column to be predicted is not there.
    {"== X.csv\na,b\n1,2.5\n3,4", "test [2,2] 1 2.5 3 4", {.target = {"sum"}}},
    {"== X.csv\na,b\n1,2.5\n3,4", "test [2,2] 1 2.5 3 4", {.target = {"sum", "more"}}},
    {"== X.csv\na,b\n1,2.5\n3,4", "test [2,2] 1 2.5 3 4", {}, kFogSun, ""},
    // One of several is no feature, and no answer alone.
    {"== X.csv\na,b,up\n1,2.5,x\n3,4,?", "test [2,2] 1 2.5 3 4", {.target = {"right", "up"}}},
    // Columns by number: without the one to be predicted the others move up.
    {"== X.csv\n1,2.5\n3,4", "test [2,2] 1 2.5 3 4", {.target = {"2"}, .channels = 2}},
    {"== X.csv\n1,2.5\n3,4",
     "test [2,2] 1 2.5 3 4",
     {.target = {"0"}, .channels = 2},
     {},
     "test [2,1] 2.5 4, 1 targets 0: 1 3"},
    {"== X.csv\n7,1,2.5\n9,3,4",
     "test [2,2] 1 2.5 3 4, 1 targets 0: 7 9",
     {.target = {"0"}, .answers = Answers::kTargets, .channels = 2},
     {},
     ""},
    {"== X.csv\na,b\n1,2.5\n3,4",
     "test [2,2] 1 2.5 3 4",
     {.target = {"0"}, .features = {"a", "b"}},
     {},
     "error: has the features b; the network was trained on a, b, in this order"},
    // It is there, and some or all of it is missing.
    {"== X.csv\na,label\n1,0.5\n2,?\n3,", "test [3,1] 1 2 3, 1 targets label: 0.5 nan nan"},
    {"== X.csv\na,label\n1.5,sun\n2,?", "test [2,1] 1.5 2, classes fog sun: 1 -1", {}, kFogSun},
    {"== X.csv\na,label\n1.5,\n2,?", "test [2,1] 1.5 2", {}, kFogSun},
    {"== X.csv\na,b,up\n1,0.5,\n2,?,1", "test [2,1] 1 2, 2 targets b up: 0.5 nan nan 1", {.target = {"b", "up"}}},
    {"== X.csv\na,label\n1.5,sun\n,fog", "error: line 3, column a: a value is missing", {}, kFogSun},
    // Series, and recordings.
    {"== X.ts\n@classLabel true fog sun\n@data\n1,2:sun\n3,4:?",
     "test [2,2,1] 1 2 3 4, classes fog sun: 1 -1",
     {},
     kFogSun},
    {"== X.ts\n@targetLabel true\n@data\n1,2:0.5\n3,4:?", "test [2,2,1] 1 2 3 4, 1 targets: 0.5 nan"},
    {"== X.ts\n@data\n1,2\n3,4", "test [2,2,1] 1 2 3 4", {}, kFogSun, ""},
    {"== labels.csv\nfile\na.csv\nb.csv\n== a.csv\nx,y\n1,2\n== b.csv\nx,y\n3,4",
     "test [2,1,2] 1 2 3 4",
     {.target = {"fat"}}},
    {"== labels.csv\nfile,who\na.csv,ann\n== a.csv\nx,y\n1,2", "test [1,1,2] 1 2", {.target = {"fat"}}},
    // Columns are those of the network.
    {"== X.csv\nb,a,sum\n1,2.5,3",
     "error: X.csv\" has the features b, a; the network was trained on a, b, in this order",
     {.target = {"sum"}, .features = {"a", "b"}}},
    {"== X.csv\na,b,Sum\n1,2.5,3",
     "error: has the features a, b, Sum; the network was trained on a, b, in this order",
     {.target = {"sum"}, .features = {"a", "b"}}},
    {"== X.csv\n1,2.5,3", "test [1,2] 1 2.5, 1 targets 2: 3", {.target = {"2"}, .features = {"a", "b"}}, {}, ""},
    {"== labels.csv\nfile\na.csv\n== a.csv\ny,x\n1,2",
     "error: a.csv\" has the channels y, x; the network was trained on x, y",
     {.features = {"x", "y"}}},
};

std::string described(const Case& one, bool answers_optional) {
  const testing::TempDir place;
  testing::write_files(place, one.files);
  LoadOptions options{.numbers = one.numbers,
                      .least_classes = static_cast<int>(one.class_names.size()),
                      .class_names = one.class_names,
                      .train_optional = true,
                      .whole_as_test = true,
                      .answers_optional = answers_optional};
  options.numbers.standardise = false;
  std::string path = place.path().string();
  for (const char* name : {"/X.csv", "/X.ts"})
    if (std::filesystem::exists(path + name)) path += name;
  return described_parts([&] { return load(path, {}, options); });
}

void expect(const std::string& given, const std::string& gives) {
  if (gives.starts_with("error: "))
    EXPECT_TRUE(mentions(given, {"error: ", gives.substr(7)}));
  else
    EXPECT_EQ(given, gives);
}

TEST(Unanswered, AreReadForANetworkThatIsAskedAlone) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.files);
    expect(described(one, true), one.gives);
    expect(described(one, false), std::string(one.others_get).empty() ? one.gives : one.others_get);
  }
}

TEST(Unanswered, TargetsAreInTheNetworksUnits) {
  const testing::TempDir place;
  const auto file = place.write("X.csv", "a,sum\n1,10\n2,?\n");
  LoadOptions options{.numbers = {.target = {"sum"}}, .whole_as_test = true, .answers_optional = true};
  options.numbers.standard = std::make_shared<const Standard>(Standard{{1}, {2}});
  options.numbers.target_standard = std::make_shared<const Standard>(Standard{{6}, {4}});
  EXPECT_EQ(described_parts([&] { return load(file.string(), {}, options); }),
            "test [2,1] 0 0.5, 1 targets sum: 1 nan");
}

TEST(Unanswered, PicturesNeedNoLabels) {
  const testing::TempDir place;
  LoadOptions options{.least_classes = 3, .train_optional = true, .whole_as_test = true};
  set_shape(options.pictures, {1, 2, 1});
  const auto read = [&](const std::string& name, bool answers_optional) {
    options.answers_optional = answers_optional;
    return described_parts([&] { return load((place.path() / name).string(), {}, options); });
  };
  const std::string pixels = "\1\2\3\4", pictures = testing::npy_bytes("|u1", "2, 1, 2", pixels);
  place.write("x.npy", pictures);
  std::filesystem::create_directories(place.path() / "folder");
  place.write("folder/x_test.npy", pictures);
  place.write("x.csv", "left,right\n1,2\n3,4\n");
  place.write("labelled.csv", "1,1,2\n2,3,4\n");
  for (const char* name : {"x.npy", "folder", "x.csv"}) {
    EXPECT_EQ(read(name, true), "test bytes [2,1,2,1] 1 2 3 4") << name;
    // A row without a label has a pixel less.
    EXPECT_NE(read(name, false), read(name, true)) << name;
  }
  EXPECT_EQ(read("labelled.csv", true), "test bytes [2,1,2,1] 1 2 3 4, classes: 1 2");
}

TEST(Unanswered, FeaturesAreCalledAsTheFileCallsThem) {
  const testing::TempDir place;
  testing::write_files(place, "== named.csv\na,gr\xf6\xdf,label\n1.5,2,x\n3,4,y\n== bare.csv\n1.5,2,0\n3,4,1");
  const auto names = [&](const std::string& name, const NumberOptions& numbers) {
    return joined(
        load((place.path() / name).string(), {}, {.numbers = numbers, .whole_as_test = true}).test.input_names);
  };
  EXPECT_EQ(names("named.csv", {}), "a, gr\\xf6\\xdf");
  EXPECT_EQ(names("bare.csv", {.target = {"2"}}), "");
}

}  // namespace
}  // namespace miniqat::datasets::unanswered_test
