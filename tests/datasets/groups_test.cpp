#include "datasets/groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "datasets/hold_out.h"
#include "datasets/known_datasets.h"
#include "tests/datasets/dataset_files.h"
#include "tests/datasets/numbers/described.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::datasets::groups_test {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::mentions;
using testing::words_of;

using Texts = std::vector<std::string>;

/// Example i is the number i; its group and, if there are some, its label are given.
Dataset grouped(const std::vector<std::int32_t>& groups, const std::vector<std::int32_t>& labels = {}) {
  const auto size = std::ssize(groups);
  Dataset set{.name = "some"};
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < size; ++i) numbers.push_back(static_cast<float>(i));
  set.images = Tensor::from<float>({size, 1}, numbers);
  set.groups = Tensor::from<std::int32_t>({size}, groups);
  if (!labels.empty()) set.labels = Tensor::from<std::int32_t>({size}, labels);
  return set;
}

/// `count` groups of `size` examples, in turns.
std::vector<std::int32_t> in_turns(int count, int size) {
  std::vector<std::int32_t> groups;
  for (int i = 0; i < count * size; ++i) groups.push_back(i % count);
  return groups;
}

std::set<std::int32_t> groups_in(const Dataset& set) {
  set.check();
  const auto groups = set.groups.values<std::int32_t>();
  return {groups.begin(), groups.end()};
}

TEST(Groups, FilesHaveThemInTheirPaths) {
  const Texts files = {"0/ann_1.wav", "1/ann_2.wav", "1/ben_1.wav"};
  EXPECT_EQ(groups_of_files(files, "/(\\w+)_"), (Texts{"ann", "ann", "ben"}));
  EXPECT_EQ(groups_of_files(files, "[a-z]+_\\d"), (Texts{"ann_1", "ann_2", "ben_1"})) << "without a capture";
  EXPECT_TRUE(mentions(error_of([&] { groups_of_files(files, "(ann)_"); }),
                       {"\"(ann)_\" finds no group in the path \"1/ben_1.wav\""}));
  EXPECT_TRUE(mentions(error_of([&] { groups_of_files(files, "x?(y?)"); }), {"finds no group"}));
  EXPECT_TRUE(mentions(error_of([&] { groups_of_files(files, "(ann"); }), {"\"(ann\" is no regular expression"}));
}

TEST(Groups, AFileWithoutTheCaptureIsOfTheClassOther) {
  const Texts files = {"a/7_ann.wav", "a/5_ann_7.wav", "a/8_ben.wav"};
  EXPECT_EQ(classes_of_files(files, "/(\\d)_"), (Texts{"7", "5", "8"}));
  EXPECT_EQ(classes_of_files(files, "/(7|8)_|$"), (Texts{"7", "other", "8"}));
  EXPECT_EQ(classes_of_files(files, "/(7)_|/(8)_|$"), (Texts{"7", "other", "8"})) << "either capture";
  EXPECT_EQ(classes_of_files(files, "ann|ben"), (Texts{"ann", "ann", "ben"})) << "without a capture";
  EXPECT_TRUE(mentions(error_of([&] { classes_of_files(files, "/(7)_"); }),
                       {"\"/(7)_\" finds no class in the path \"a/5_ann_7.wav\"", "|$", "other"}));
  EXPECT_TRUE(mentions(error_of([&] { groups_of_files(files, "/(7)_|$"); }), {"finds no group in the path"}));
}

TEST(Groups, AreNumberedInTheirOrderOverAllParts) {
  Dataset train = grouped({0, 0, 0}), test = grouped({0});
  const Texts of_train = {"10", "9", "10"}, of_test = {"11"}, wrong = {"9"};
  const GroupedPart parts[] = {{&train, &of_train}, {&test, &of_test}};
  number_groups(parts);
  EXPECT_EQ(train.group_names, (Texts{"9", "10", "11"}));
  EXPECT_EQ(test.group_names, train.group_names);
  EXPECT_EQ(words_of<std::int32_t>(train.groups), "1 0 1");
  EXPECT_EQ(words_of<std::int32_t>(test.groups), "2");
  const GroupedPart shared[] = {{&train, &of_train}, {&test, &wrong}};
  EXPECT_TRUE(mentions(error_of([&] { number_groups(shared); }), {"some", "\"9\"", "two of the parts"}));
}

TEST(Groups, TheLastOfEverySixIsATestGroup) {
  const Splits splits = split_off_test(grouped(in_turns(13, 3)));
  EXPECT_EQ(groups_in(splits.test), (std::set<std::int32_t>{5, 11}));
  EXPECT_EQ(splits.test.size(), 6);
  EXPECT_EQ(splits.train.size(), 33);
  // Of each class where a group has one only: groups 0 to 6 have class 0, the others class 1.
  std::vector<std::int32_t> labels;
  for (const std::int32_t group : in_turns(13, 3)) labels.push_back(group < 7 ? 0 : 1);
  EXPECT_EQ(groups_in(split_off_test(grouped(in_turns(13, 3), labels)).test), (std::set<std::int32_t>{5, 12}));
  labels[0] = 1;
  EXPECT_EQ(groups_in(split_off_test(grouped(in_turns(13, 3), labels)).test), (std::set<std::int32_t>{5, 11}));
}

TEST(Groups, TestGroupsMayBeNamed) {
  Dataset data = grouped(in_turns(3, 2));
  EXPECT_EQ(groups_in(split_off_test(data, {"2", "0"}).test), (std::set<std::int32_t>{0, 2})) << "by their numbers";
  data.group_names = {"ann", "ben", "cat"};
  EXPECT_EQ(groups_in(split_off_test(data, {"ben"}).test), std::set<std::int32_t>{1});
  EXPECT_TRUE(
      mentions(error_of([&] { split_off_test(data, {"bem"}); }), {"no group \"bem\"", "did you mean \"ben\"?"}));
  // Part of a data set: group 0 is elsewhere, and takes no turn.
  std::vector<std::int32_t> later = in_turns(6, 1);
  for (std::int32_t& group : later) ++group;
  EXPECT_EQ(groups_in(split_off_test(grouped(later)).test), std::set<std::int32_t>{6});
}

TEST(Groups, AValidationPartHasWholeOnes) {
  const Splits all{.train = grouped(in_turns(10, 20)), .test = grouped({99})};
  std::set<std::int32_t> before;
  for (const std::int64_t n : {1, 19, 31, 60, 95, 199})
    for (const HoldOut method : {HoldOut::kByClass, HoldOut::kStride}) {
      const Splits splits = hold_out(all, n, method);
      const std::set<std::int32_t> held = groups_in(*splits.validation), left = groups_in(splits.train);
      EXPECT_EQ(held.size() + left.size(), 10u) << n;
      EXPECT_EQ(splits.validation->size(), std::clamp((n + 10) / 20 * 20, std::int64_t{20}, std::int64_t{180})) << n;
      EXPECT_TRUE(std::ranges::includes(held, before)) << "a smaller part lies in a greater one";
      before = held;
    }
  EXPECT_EQ(hold_out(all, 0).train.size(), 200);
  EXPECT_TRUE(mentions(error_of([&] {
                         hold_out({.train = grouped({4, 4, 4}), .test = {}}, 1);
                       }),
                       {"some", "all are of one group"}));
}

TEST(Groups, AValidationPartDependsOnTheExamplesAlone) {
  const Dataset data = grouped(in_turns(10, 20));
  std::vector<std::int64_t> backwards;
  for (std::int64_t i = data.size(); i-- > 0;) backwards.push_back(i);
  Dataset other = examples_at(data, backwards);
  for (std::int32_t& group : other.groups.values<std::int32_t>()) group = 9 - group;
  const auto numbers = [](const Splits& splits) {
    const auto values = splits.validation->images.values<float>();
    return std::set<float>(values.begin(), values.end());
  };
  EXPECT_EQ(numbers(hold_out({.train = data, .test = {}}, 60)), numbers(hold_out({.train = other, .test = {}}, 60)));
}

TEST(Groups, AValidationPartHasItsShareOfEachClass) {
  std::vector<std::int32_t> labels;
  for (const std::int32_t group : in_turns(40, 5)) labels.push_back(group < 30 ? 0 : 1);
  const Splits splits = hold_out({.train = grouped(in_turns(40, 5), labels), .test = {}}, 100);
  EXPECT_EQ(std::ranges::count(splits.validation->labels.values<std::int32_t>(), 0), 75);
  EXPECT_EQ(std::ranges::count(splits.validation->labels.values<std::int32_t>(), 1), 25);
}

TEST(Groups, FoldersOfPicturesHaveThemInTheNamesOfFiles) {
  const testing::TempDir place;
  setenv("MINIQAT_CACHE_DIR", (place.path() / "cache").c_str(), 1);
  for (const char* name : {"a/ann_1", "a/ann_2", "a/ben_1", "b/ann_3", "b/ben_2", "b/cat_1"}) {
    fs::create_directories((place.path() / "set" / name).parent_path());
    place.write(concat("set/", name, ".png"), testing::png_bytes(testing::make_picture(2, 2, 1)));
  }
  LoadOptions options;
  options.numbers.group_by = "/(\\w+)_";
  options.numbers.test_groups = {"ben"};
  const Splits splits = load((place.path() / "set").string(), {}, options);
  unsetenv("MINIQAT_CACHE_DIR");
  EXPECT_EQ(*splits.test.files, (Texts{"a/ben_1.png", "b/ben_2.png"}));
  EXPECT_EQ(words_of<std::int32_t>(splits.train.groups), "0 0 0 2");
  EXPECT_TRUE(mentions(joined(splits.remarks().notes), {"3 groups; the test part has ben"}));
}

TEST(Groups, DataWithoutFilesAndTablesHaveNone) {
  const testing::TempDir place;
  testing::write_npy_folder(place.path() / "npy", load("synthetic", {}, {.train_size = 20, .test_size = 10}));
  LoadOptions options;
  options.numbers.group_by = "x";
  EXPECT_TRUE(mentions(error_of([&] { load((place.path() / "npy").string(), {}, options); }), {"here are neither"}));
}

TEST(Groups, GoWithTheirExamples) {
  const Dataset data = grouped({3, 1, 2});
  EXPECT_EQ(words_of<std::int32_t>(first_examples(data, 2).groups), "3 1");
  EXPECT_EQ(words_of<std::int32_t>(examples_at(data, std::vector<std::int64_t>{2, 0}).groups), "2 3");
  Dataset wrong = data;
  wrong.groups = Tensor(Shape{2}, DType::kInt32);
  EXPECT_TRUE(mentions(error_of([&] { wrong.check(); }), {"3 examples, but 2 groups"}));
  wrong.groups = Tensor(Shape{3});
  EXPECT_TRUE(mentions(error_of([&] { wrong.check(); }), {"groups must be int32"}));
}

}  // namespace
}  // namespace miniqat::datasets::groups_test
