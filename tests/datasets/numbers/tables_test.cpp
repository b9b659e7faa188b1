// Tables and recordings as text: small files in words, and what they give.

#include <gtest/gtest.h>

#include <chrono>

#include "datasets/known_datasets.h"
#include "tests/datasets/dataset_files.h"
#include "tests/datasets/numbers/described.h"
#include "tests/errors.h"

namespace miniqat::datasets::number_tables_test {
namespace {

using testing::described_parts;
using testing::mentions;

struct Case {
  const char* files;
  const char* gives;
  NumberOptions options = {};
  bool whole_as_test = false;
};

/// The folder, or train.csv if there is nothing else, with numbers as the files have them.
void expect(const Case& one) {
  SCOPED_TRACE(one.files);
  const testing::TempDir place;
  testing::write_files(place, one.files);
  LoadOptions options{.numbers = one.options, .whole_as_test = one.whole_as_test};
  options.numbers.standardise = false;
  const std::string given = described_parts([&] { return load(place.path().string(), {}, options); });
  if (std::string gives = one.gives; gives.starts_with("error: "))
    EXPECT_TRUE(mentions(given, {"error: ", gives.substr(7)}));
  else
    EXPECT_EQ(given, gives);
}

const Case kCases[] = {
    // Texts are classes, and so are few whole numbers; others are to be predicted.
    {"== train.csv\na,b,Label\n1,2.5,sun\n3,4,fog\n== test.csv\na,b,Label\n-1,1e3,fog",
     "train [2,2] 1 2.5 3 4, classes fog sun: 1 0 | test [1,2] -1 1000, classes fog sun: 0"},
    {"== train.csv\nlabel,a\n2,0.5\n3,1.5\n2,2.5\n== test.csv\nlabel,a\n3.0,3.5",
     "train [3,1] 0.5 1.5 2.5, classes 2 3: 0 1 0 | test [1,1] 3.5, classes 2 3: 1"},
    {"== train.csv\ntarget,a\n10,0.5\n9,1.5\n10,2.5\n== test.csv\ntarget,a\n9,3.5",
     "train [3,1] 0.5 1.5 2.5, classes 9 10: 1 0 1 | test [1,1] 3.5, classes 9 10: 0"},
    {"== train.csv\na,target\n1.5,-1\n2.5,1\n1,-1\n== test.csv\na,target\n3,1",
     "train [3,1] 1.5 2.5 1, 1 targets target: -1 1 -1 | test [1,1] 3, 1 targets target: 1"},
    {"== train.csv\na,target\n1.5,1\n2.5,2\n== test.csv\na,target\n3,3",
     "train [2,1] 1.5 2.5, 1 targets target: 1 2 | test [1,1] 3, 1 targets target: 3"},
    {"== train.csv\na,target\n1.5,0.5\n2.5,1\n== test.csv\na,target\n3,1",
     "train [2,1] 1.5 2.5, 1 targets target: 0.5 1 | test [1,1] 3, 1 targets target: 1"},
    {"== train.csv\na,target\n1,0.5\n2,1\n3,x\n",
     "error: train.csv\" line 4, column target: \"x\" is no number, but "
     "\"0.5\" in line 2 is one"},
    {"== train.csv\na,target\n1.5,1\n2.5,1\n== test.csv\na,target\n3,1",
     "train [2,1] 1.5 2.5, 1 targets target: 1 1 | test [1,1] 3, 1 targets target: 1",
     {.answers = Answers::kTargets}},
    {"== train.csv\na,target\n1.5,1\n2.5,2\n== test.csv\na,target\n3,1",
     "train [2,1] 1.5 2.5, classes 1 2: 0 1 | test [1,1] 3, classes 1 2: 0",
     {.answers = Answers::kClasses}},
    // "inf" is a word among words, and no number to predict among numbers.
    {"== train.csv\na,target\n1.5,inf\n2,b\n3,Infinity\n== test.csv\na,target\n4,inf",
     "train [3,1] 1.5 2 3, classes Infinity b inf: 2 1 0 | test [1,1] 4, classes Infinity b inf: 2"},
    {"== train.csv\na,target\n1.5,0\n2,b\n3,-inf\n== test.csv\na,target\n4,0",
     "train [3,1] 1.5 2 3, classes -inf 0 b: 1 2 0 | test [1,1] 4, classes -inf 0 b: 1"},
    {"== train.csv\na,target\n1.5,0\n2,0\n3,1\n4,1\n5,inf\n6,inf",
     "error: train.csv\" line 6, column target: \"inf\" is no finite number of 32 bits"},
    {"== train.csv\na,target\n1.5,0.5\n2,-inf", "error: line 3, column target: \"-inf\" is no finite number of 32"},
    {"== train.csv\na,target\n1.5,b\n2,nan", "error: line 3, column target: a value is missing (\"nan\")"},
    {"== train.csv\na,target\n1.5,inf\n2,1\n== test.csv\na,target\n3,1",
     "train [2,1] 1.5 2, classes 1 inf: 1 0 | test [1,1] 3, classes 1 inf: 0",
     {.answers = Answers::kClasses}},
    // A number is no word because it is out of range.
    {"== train.csv\na,target\n1.5,1\n2,1\n3,1e999",
     "error: train.csv\" line 4, column target: \"1e999\" is out of the range of numbers"},
    {"== train.csv\na,target\n1.5,b\n2,-1e-999", "error: line 3, column target: \"-1e-999\" is out of the range"},
    {"== train.csv\na,target\n1.5,1\n2,1e999",
     "error: line 3, column target: \"1e999\" is out of the range of numbers",
     {.answers = Answers::kTargets}},
    {"== train.csv\na,target\n1.5,b\n2,1e999\n== test.csv\na,target\n3,b",
     "train [2,1] 1.5 2, classes 1e999 b: 1 0 | test [1,1] 3, classes 1e999 b: 1",
     {.answers = Answers::kClasses}},
    {"== train.csv\na,b,label\n1,1e999,x", "error: line 2, column b: \"1e999\" is out of the range of numbers"},
    // Columns that are asked for.
    {"== train.csv\na,\" b\",c\n1,2,3.5\n4,5,6.5\n== test.csv\n a , b,c\n7,8,9.5",
     "train [2,1] 3.5 6.5, 2 targets a b: 1 2 4 5 | test [1,1] 9.5, 2 targets a b: 7 8",
     {.target = {"a", " b"}}},
    {"== train.csv\n1,2\n3,4.5\n== test.csv\n5,6",
     "train [2,1] 2 4.5, 1 targets 0: 1 3 | test [1,1] 6, 1 targets 0: 5",
     {.target = {" 0 "}}},
    {"== train.csv\na,b,c\n1,2,3.5\n4,5,6.5\n== test.csv\na,b,c\n7,8,9.5",
     "train [2,1] 2 5, 2 targets c a: 3.5 1 6.5 4 | test [1,1] 8, 2 targets c a: 9.5 7",
     {.target = {"c", "a"}}},
    {"== train.csv\n1,2,3.5\n4,5,6.5\n== test.csv\n7,8,9.5",
     "train [2,2] 1 2 4 5, 1 targets 2: 3.5 6.5 | test [1,2] 7 8, 1 targets 2: 9.5",
     {.target = {"2"}}},
    {"== train.csv\n0,1,label\n4.5,5,x\n1,2,y\n== test.csv\n0,1,label\n4,5,x",
     "train [2,2] 4.5 5 1 2, classes x y: 0 1 | test [1,2] 4 5, classes x y: 0"},
    {"== train.csv\na,b,c\n1,2,3.5",
     "error: has no column \"cc\"; its columns are a, b, c; did you mean \"c\"?",
     {.target = {"cc"}}},
    {"== train.csv\na,b,\"b \"\n1,2,3.5",
     "error: has several columns \"b\"; give the number of one",
     {.target = {"b"}}},
    {"== train.csv\nb,c,b\n1,2,3.5", "error: has several columns \"b\"", {.target = {"c"}, .group_by = "b"}},
    {"== train.csv\na,b,b\n1,2,3.5\n2,3,4.5\n== test.csv\na,b,b\n3,4,5",
     "train [2,2] 1 3.5 2 4.5, 1 targets b: 2 3 | test [1,2] 3 5, 1 targets b: 4",
     {.target = {"1"}, .answers = Answers::kTargets}},
    // Names in Latin-1.
    {"== train.csv\na,gr\xf6\xdf\x65,b\n1,2,3.5",
     "error: has no column \"größe\"; its columns are a, gr\\xf6\\xdfe, b, not all of them in UTF-8: save the table as that",
     {.target = {"größe"}}},
    {"== train.csv\n\xe4,kind,b\n1,2,3.5",
     "error: has no column \"kimd\"; its columns are \\xe4, kind, b; did you mean \"kind\"?",
     {.target = {"kimd"}}},
    {"== train.csv\n\xe4,gr\xf6\xdf\x65\n1,2\n3,4.5\n== test.csv\n\xe4,gr\xf6\xdf\x65\n5,6",
     "train [2,1] 1 3, 1 targets gr\\xf6\\xdfe: 2 4.5 | test [1,1] 5, 1 targets gr\\xf6\\xdfe: 6",
     {.target = {"1"}}},
    {"== train.csv\na,b,c\n1,2,3.5", "error: the column \"2\" is asked for twice", {.target = {"c", "2"}}},
    {"== train.csv\nclass,b,label\n1,2.5,3", "error: has the columns \"class\" and \"label\"; say which"},
    {"== train.csv\na,b\n1,2.5\n3,4\n== test.csv\na,b\n5,6", "train [2,2] 1 2.5 3 4 | test [1,2] 5 6"},
    {"== train.csv\na,b\n1,2.5\n3,4\n== test.csv\na,b,label\n5,6,x\n7,8,y",
     "train [2,2] 1 2.5 3 4 | test [2,2] 5 6 7 8, classes x y: 0 1"},
    // The text: quotation marks, other separators, empty lines, an index.
    {"== train.csv\n\"a\" , \"b, c\",label\n \"1.5\", 2 ,\"x, \"\"y\"\"\"\n\n3,4,z\n== test.csv\na,\"b, c\",label\n5,6,z",
     "train [2,2] 1.5 2 3 4, classes x, \"y\" z: 0 1 | test [1,2] 5 6, classes x, \"y\" z: 1"},
    {"== train.csv\n\ta\tlabel\n0\t1.5\tx\n1\t2\ty\n== test.csv\n\ta\tlabel\r\n0\t3\ty\r",
     "train [2,1] 1.5 2, classes x y: 0 1 | test [1,1] 3, classes x y: 1"},
    {"== train.csv\na;label\n1.5;x\n2;y\n== test.csv\na\tlabel\n3\ty",
     "train [2,1] 1.5 2, classes x y: 0 1 | test [1,1] 3, classes x y: 1"},
    {"== train.csv\n,a,label\n0,1.5,x\n1,+2,y\n== test.csv\n,a,label\n0,3,y",
     "train [2,1] 1.5 2, classes x y: 0 1 | test [1,1] 3, classes x y: 1"},
    // Pictures stay pictures, unless numbers are asked for.
    {"== train.csv\nlabel,a,b,c,d\n0,1,2,3,4\n1,5,6,7,8\n== test.csv\nlabel,a,b,c,d\n1,9,9,9,9",
     "train bytes [2,2,2,1] 1 2 3 4 5 6 7 8, classes: 0 1 | test bytes [1,2,2,1] 9 9 9 9, classes: 1"},
    {"== train.csv\nlabel,a,b,c,d\n0,1,2,3,4\n1,5,6,7,8\n1,5,6,7,8\n== test.csv\nlabel,a,b,c,d\n1,9,9,9,9",
     "train [3,4] 1 2 3 4 5 6 7 8 5 6 7 8, classes 0 1: 0 1 1 | test [1,4] 9 9 9 9, classes 0 1: 1",
     {.inputs = Inputs::kNumbers}},
    {"== train.csv\nlabel,a,b,c,d\n30,1,2,3,4\n60,5,6,7,8\n== test.csv\nlabel,a,b,c,d\n31,9,9,9,9",
     "train bytes [2,2,2,1] 1 2 3 4 5 6 7 8, 1 targets: 30 60 | test bytes [1,2,2,1] 9 9 9 9, 1 targets: 31",
     {.answers = Answers::kTargets}},
    {"== train.csv\nlabel,a\nx,1.5", "error: \"x\" is not a number", {.inputs = Inputs::kPictures}},
    // Of a network that is there already, arrays alone need to be told.
    {"== train.csv\nlabel,a\nx,1.5\ny,2\n== test.csv\nlabel,a\ny,3",
     "train [2,1] 1.5 2, classes x y: 0 1 | test [1,1] 3, classes x y: 1",
     {.trained_on = Inputs::kPictures}},
    {"== train/labels.csv\nfile,label\na.csv,p\nb.csv,q\n== train/a.csv\n1\n2\n== train/b.csv\n3\n4\n"
     "== test/labels.csv\nfile,label\na.csv,q\n== test/a.csv\n5\n6",
     "train [2,2,1] 1 2 3 4, classes p q: 0 1 | test [1,2,1] 5 6, classes p q: 1",
     {.trained_on = Inputs::kPictures}},
    {"== train.csv\n0,1.5\n1,2.5", "error: \"1.5\" is not a whole number in [0, 255]"},
    // Groups by a column, which is no feature.
    {"== train.csv\na,label,who\n1.5,x,ann\n2,y,ben\n3,x,ann\n4,y,cat",
     "train [3,1] 1.5 3 4, classes x y: 0 0 1, groups 0 0 2 | test [1,1] 2, classes x y: 1, groups 1",
     {.group_by = "who", .test_groups = {"ben"}}},
    {"== train.csv\na,label,who\n1.5,x,ann\n2,y,ben\n3,x,cat\n",
     "train [1,1] 3, classes x y: 0, groups 2 | test [2,1] 1.5 2, classes x y: 0 1, groups 0 1",
     {.group_by = "who", .test_groups = {"ann", " ben"}}},
    {"== train.csv\na,label,who\n1.5,x,ann\n2,y,ben\n",
     "error: there is no group \"bem\"; the groups are ann, ben; did "
     "you mean \"ben\"?",
     {.group_by = "who", .test_groups = {"bem"}}},
    {"== train.csv\na,label,who\n1.5,x,ann\n2,y,ben\n",
     "error: all of its groups are test groups",
     {.group_by = "who", .test_groups = {"ann", "ben"}}},
    {"== train.csv\na,label,who\n1.5,x,ann\n2,y,ben\n", "error: 2 groups are too few", {.group_by = "who"}},
    {"== train.csv\na,label,who\n1.5,x,ann\n2,y,ben\n== test.csv\na,label,who\n1,x,ann",
     "error: the group \"ann\" stands in two of the parts",
     {.group_by = "who"}},
    {"== train.csv\na,label,who\n1.5,x,ann\n2,y,ben\n== test.csv\na,label,who\n1,x,cat",
     "error: has a test part of its own",
     {.group_by = "who", .test_groups = {"cat"}}},
    {"== train.csv\na,label\n1.5,x\n2,y", "error: has no column \"who\"", {.group_by = "who"}},
    {"== train.csv\na,label\n1.5,x\n2,y", "error: the column \"label\" is to be predicted", {.group_by = "label"}},
    {"== labels.csv\nfile,label\na.csv,x\n== a.csv\n1,2",
     "error: the column \"label\" is to be predicted",
     {.group_by = "label"}},
    {"== train.csv\na,label\n1.5,x\n2,y", "error: there are test groups, but nothing says", {.test_groups = {"who"}}},
    {"== train.csv\na,label,who\n1.5,x,ann\n2,y,ben\n",
     "test [2,1] 1.5 2, classes x y: 0 1, groups 0 1",
     {.group_by = "who"},
     true},
    {"== train.csv\na,label\n1.5,x\n2,y\n", "test [2,1] 1.5 2, classes x y: 0 1", {.group_by = "who"}, true},
    // What is wrong, with its place.
    {"== train.csv\na,b,label\n1,2.5,x\n1,,y", "error: train.csv\" line 3, column b: a value is missing (nothing"},
    {"== train.csv\na,b,label\n1,2.5,x\n1,?,y", "error: line 3, column b: a value is missing (\"?\")"},
    {"== train.csv\na,b,label\n1,2.5,x\n\n1,NaN,y", "error: line 4, column b: a value is missing (\"NaN\")"},
    {"== train.csv\na,b,label\n1,2.5,x\n1,3,", "error: line 3, column label: a value is missing"},
    {"== train.csv\na,b,label\n1,2.5,x\n1,3,?", "error: line 3, column label: a value is missing"},
    {"== train.csv\na,b,label\n1,inf,x", "error: line 2, column b: \"inf\" is no finite number of 32 bits"},
    {"== train.csv\na,b,label\n1,1e39,x", "error: line 2, column b: \"1e39\" is no finite number of 32 bits"},
    {"== train.csv\na,b,label\n1,2.5 kg,x", "error: line 2, column b: \"2.5 kg\" is not a number"},
    {"== train.csv\na,b,label\n1,2.5,x\n1,2.5", "error: line 3 has 2 fields, the first line 3"},
    {"== train.csv\na,b,label\n1,2.5,x,", "error: line 2 has 4 fields, the first line 3"},
    {"== train.csv\na,b,label\n1,2.5,\"x", "error: line 2 has a quotation mark that is not closed"},
    {"== train.csv\na,b,label\n\"1\"5,2.5,x",
     "error: line 2 has text between a field in quotation marks and the separator"},
    {"== train.csv\n\"a\"1,b,label\n1,2.5,x",
     "error: line 1 has text between a field in quotation marks and the separator"},
    {"== train.csv\na\tb\tlabel\n\t\"2.5\"\tx", "error: line 2, column a: a value is missing"},
    {"== train.csv\na,b,label\n", "error: holds no row of numbers"},
    {"== train.csv\nlabel\nx\ny", "error: has no column of features"},
    {"== train.csv\na,b,label\n1,2.5,x\n2,3,y\n== test.csv\nb,a,label\n1,2.5,x",
     "error: test.csv\" has the features b, a, "},
};

TEST(NumberTables, GiveWhatTheTableSays) {
  for (const Case& one : kCases) expect(one);
}

TEST(NumberTables, RecordingsAreATableEach) {
  const std::string steps = "\n== a.csv\nx,y\n1,2\n3,4\n== sub/b.csv\nx,y\n5,6\n7,8.5";
  const auto one = [&](const std::string& labels, const char* gives, const NumberOptions& options = {}) {
    const std::string files = "== labels.csv\n" + labels + steps;
    expect({files.c_str(), gives, options, true});
  };
  one("file,label\na.csv,run\nsub/b.csv,sit", "test [2,2,2] 1 2 3 4 5 6 7 8.5, classes run sit: 0 1");
  one("label,file\nrun,sub/b.csv\nsit,a.csv", "test [2,2,2] 5 6 7 8.5 1 2 3 4, classes run sit: 0 1");
  one("file,fat,water\na.csv,1,2\nsub/b.csv,3,4", "test [2,2,2] 1 2 3 4 5 6 7 8.5, 2 targets fat water: 1 2 3 4");
  one("file,fat,who\na.csv,0.5,ann\nsub/b.csv,1,ben", "test [2,2,2] 1 2 3 4 5 6 7 8.5, 1 targets fat: 0.5 1",
      {.target = {"fat"}});
  one("file\na.csv", "test [1,2,2] 1 2 3 4");
  one("file,label\na.csv,run\nc.csv,sit", "error: labels.csv\" line 3, column file: there is no file \"c.csv\"");
  one("file,label\na.csv,run\n../labels.csv,sit", "error: there is no file \"../labels.csv\"");
  one("file,label\na.csv,run\nsub,sit", "error: sub");
  one("a.csv,run\nsub/b.csv,sit",
      "error: its first line must have the names of the columns, but names the file \"a.csv\"");
  one("a.csv,0.5\nsub/b.csv,1.5", "test [2,2,2] 1 2 3 4 5 6 7 8.5, 1 targets 1: 0.5 1.5");
  one("it,label\na.csv,run\nsub/b.csv,sit", "test [2,2,2] 1 2 3 4 5 6 7 8.5, classes run sit: 0 1");

  const std::string labels = "== labels.csv\nfile,label\na.csv,0\nb.csv,1\n== a.csv\n1,2\n3,4\n";
  expect({(labels + "== b.csv\n5,6").c_str(), "error: b.csv\" has 1 step, ", {}, true});
  expect({(labels + "== b.csv\n5,6").c_str(),
          "test [2,3,2] 1 2 3 4 0 0 5 6 0 0 0 0, 1 targets label: 0 1",
          {.pad_to = 3},
          true});
  expect({(labels + "== b.csv\n5,6").c_str(), "error: a.csv\" has 2 steps, more than the 1", {.pad_to = 1}, true});
  expect({(labels + "== b.csv\n5,6\n1,x").c_str(), "error: b.csv\" line 2, column 1: \"x\" is not a number", {}, true});
  expect({(labels + "== b.csv\nx,y\n5,6\n7,8").c_str(), "error: b.csv\" has the channels x, y, ", {}, true});

  expect({(labels + "== b.csv\n,x,y\n0,5,6\n1,7,8").c_str(), "error: b.csv\" has the channels x, y, ", {}, true});
  expect({"== labels.csv\nfile,label\na.csv,p\nb.csv,q\n== a.csv\n,x\n0,1.5\n1,2\n== b.csv\n,x\n0,3\n1,4",
          "test [2,2,1] 1.5 2 3 4, classes p q: 0 1",
          {},
          true});
  expect({"== labels.csv\nfile,label\na.csv,p\nb.csv,q\n== a.csv\n\"\"\n1\n",
          "error: a.csv\" has no column with a name",
          {},
          true});

  expect(
      {"== train/labels.csv\nfile,label\na.csv,p\nb.csv,q\n== train/a.csv\n1\n2\n== train/b.csv\n3\n4\n"
       "== test/labels.csv\nfile,label\na.csv,q\n== test/a.csv\n5\n6",
       "train [2,2,1] 1 2 3 4, classes p q: 0 1 | test [1,2,1] 5 6, classes p q: 1"});
  expect(
      {"== labels.csv\nfile,label\nann-1.csv,0\nann-2.csv,1\nben-1.csv,0\nben-2.csv,1\n== ann-1.csv\n1\n== ann-2.csv\n2\n"
       "== ben-1.csv\n3\n== ben-2.csv\n4",
       "train [2,1,1] 1 2, classes 0 1: 0 1, groups 0 0 | test [2,1,1] 3 4, classes 0 1: 0 1, groups 1 1",
       {.group_by = "^(\\w+)-", .test_groups = {"ben"}}});
}

TEST(NumberTables, PartsOfRecordingsHaveTheSameColumns) {
  const std::string train =
      "== train/labels.csv\nfile,a,b\na.csv,1,2\nb.csv,3,4\n== train/a.csv\n1\n2\n== train/b.csv\n3\n4\n";
  const auto one = [&](const std::string& test, const char* gives) {
    const std::string files = train + test;
    expect({files.c_str(), gives});
  };
  const std::string steps = "\n== test/a.csv\n5\n6";
  one("== test/labels.csv\nfile,a,b\na.csv,5,6" + steps,
      "train [2,2,1] 1 2 3 4, 2 targets a b: 1 2 3 4 | test [1,2,1] 5 6, 2 targets a b: 5 6");
  one("== test/labels.csv\nfile,b,a\na.csv,6,5" + steps,
      "error: test/labels.csv\" has the columns b, a to predict, in this order, ");
  one("== test/labels.csv\nfile,a\na.csv,5" + steps,
      "error: test/labels.csv\" has the columns a to predict, in this order, ");
  one("== test/a.csv\n5\n6", "error: test\" was taken for the test part, but holds no labels.csv with recordings");
}

/// What is filled up counts in no mean.
TEST(NumberTables, FilledUpSeriesAreStandardisedByTheirSteps) {
  const testing::TempDir place;
  testing::write_files(place,
                       "== train/labels.csv\nfile\na.csv\nb.csv\n== train/a.csv\n2\n2\n6\n== train/b.csv\n6\n"
                       "== test/labels.csv\nfile\na.csv\n== test/a.csv\n8\n");
  const LoadOptions options{.numbers = {.pad_to = 3}};
  EXPECT_EQ(described_parts([&] { return load(place.path().string(), {}, options); }),
            "train [2,3,1] -1 -1 1 1 0 0 | test [1,3,1] 2 0 0");
}

std::string notes(const std::string& files, const LoadOptions& options = {}) {
  const testing::TempDir place;
  testing::write_files(place, files);
  return joined(load(place.path().string(), {}, options).remarks().notes, "|");
}

TEST(NumberTables, NotesSayWhatTheColumnsAre) {
  EXPECT_TRUE(mentions(
      notes("== train.csv\na,Species\n1.5,b\n2,a\n== test.csv\na,Species\n3,a", {.numbers = {.target = {"Species"}}}),
      {"note: ", "train.csv: column Species has 2 classes: a, b"}));
  EXPECT_TRUE(mentions(notes("== train.csv\na,label\n1.5,4\n2,5\n2,5\n== test.csv\na,label\n3,4"),
                       {"column label has 2 classes, few whole numbers: 4, 5",
                        "read as numbers [3,1], no pictures: ", "\"1.5\" is not a whole number"}));
  EXPECT_TRUE(mentions(notes("== train.csv\na,label\n1.5,4\n2,inf\n== test.csv\na,label\n3,4",
                             {.numbers = {.answers = Answers::kClasses}}),
                       {"column label has 2 classes: 4, inf"}));
  EXPECT_TRUE(mentions(notes("== train.csv\na,label\n1.5,-4\n2,5.5\n== test.csv\na,label\n3,4"),
                       {"column label has numbers, no classes, from -4 to 5.5"}));
  EXPECT_TRUE(mentions(notes("== train.csv\na,up,on\n1.5,0,1\n2,1,1\n== test.csv\na,up,on\n3,1,0",
                             {.numbers = {.target = {"up", "on"}}}),
                       {"columns up, on have labels, 0 or 1"}));
  EXPECT_TRUE(mentions(notes("== train.csv\na,b\n1.5,4\n2,5\n== test.csv\na,b\n3,4"),
                       {"is named (--target): all of them are features"}));
  EXPECT_TRUE(mentions(notes("== train.csv\n,a,b\n0,1.5,4\n1,2,5\n== test.csv\n,a,b\n0,3,4"),
                       {"left out column 0, which has no name"}));
  EXPECT_TRUE(
      mentions(notes("== train.csv\na,label,g\n1.5,x,1\n2,y,2\n", {.numbers = {.group_by = "g", .test_groups = {"2"}}}),
               {"2 groups; the test part has 2"}));
  EXPECT_TRUE(mentions(notes("== labels.csv\nfile,label\na.csv,x\nb.csv,y\n== a.csv\n1\n== b.csv\n1\n== c.csv\n1",
                             {.whole_as_test = true}),
                       {"left out 1 table that labels.csv does not list"}));
  EXPECT_TRUE(mentions(notes("== labels.csv\nfile,label\na.csv,x\nb.csv,y\n== a.csv\n,u\n0,1\n== b.csv\n,u\n0,1",
                             {.whole_as_test = true}),
                       {"left out the columns of recordings that have no name"}));
}

TEST(NumberTables, ANoteSaysWhatRoundingToFloatsLoses) {
  const std::string lost = " are rounded by up to 43 to floats of 32 bits, 14% of their range: subtract an offset";
  const std::string table = "a,t,u,y\n1.5,1700000000,1e9,-2\n2,1700000299,1000000001,3.5\n";
  const LoadOptions options{.numbers = {.target = {"y"}}};
  EXPECT_TRUE(mentions(notes("== train.csv\n" + table + "== test.csv\n" + table, options),
                       {concat("train.csv: column t: numbers from 1.7e+09 to 1700000299", lost),
                        "; 1 other column loses much, too", "test.csv: column t: numbers from "}));
  EXPECT_TRUE(mentions(notes("== train.csv\na,y\n1.5,1700000000.5\n2,1700000299\n== test.csv\na,y\n3,4", options),
                       {concat("train.csv: column y: numbers from 1700000000.5 to 1700000299", lost)}));
  EXPECT_TRUE(mentions(notes("== train.csv\na,y\n1000000000,1.5\n1000000001,2.5\n== test.csv\na,y\n3,4", options),
                       {"column a: numbers from 1e+09 to 1000000001 are rounded by up to 1 to", "all of their range"}));
  EXPECT_TRUE(mentions(notes("== labels.csv\nfile,label\na.csv,x\nb.csv,y\n== a.csv\nu,t\n1,1700000000\n== b.csv\n"
                             "u,t\n2,1700000299",
                             {.whole_as_test = true}),
                       {"channel t: ", lost}));
  const std::string kept = notes(
      "== train.csv\na,b,c,y\n0,0.3,1700000299,1.5\n16777217,0.30000000000000004,1700000299,2.5\n1e9,0.3,1700000299,3\n"
      "== test.csv\na,b,c,y\n3,4,5,6",
      options);
  EXPECT_EQ(kept.find("rounded"), kept.npos) << "a wide range, the last digit of a double, a constant: " << kept;
}

TEST(NumberTables, ThousandsOfLinesASecond) {
  std::string text = "target";
  for (int i = 0; i < 20; ++i) text += concat(",f", i);
  constexpr int kRows = 20'000;
  for (int row = 0; row < kRows; ++row) {
    text += concat("\n", row, ".25");
    for (int i = 0; i < 20; ++i) text += concat(",", i, ".5");
  }
  const testing::TempDir place;
  const auto file = place.write("many.csv.gz", testing::gzip_bytes(text, 1));
  const auto begin = std::chrono::steady_clock::now();
  const Splits splits = load(file.string());
  EXPECT_EQ(splits.train.size() + splits.test.size(), kRows);
  // It takes a tenth of a second; a regular expression for each field would take more than ten.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace miniqat::datasets::number_tables_test
