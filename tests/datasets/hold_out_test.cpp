#include "datasets/hold_out.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>

#include "datasets/class_counts.h"
#include "tests/errors.h"

namespace miniqat::datasets::hold_out_test {
namespace {

/// Pictures of 1x2, picture i is {2i, 2i + 1} with label i.
Dataset numbered(int size) {
  Dataset dataset{.name = "numbers", .classes = 100, .scale = 0.5f, .zero_point = 3};
  std::vector<std::uint8_t> bytes(2 * size);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  std::vector<std::int32_t> labels(size);
  std::iota(labels.begin(), labels.end(), 0);
  dataset.images = Tensor::from<std::uint8_t>({size, 1, 2, 1}, bytes);
  dataset.labels = Tensor::from<std::int32_t>({size}, labels);
  return dataset;
}

std::vector<int> labels_of(const Dataset& dataset) {
  dataset.check();
  const auto labels = dataset.labels.values<std::int32_t>();
  for (std::size_t k = 0; k < labels.size(); ++k)
    for (int byte = 0; byte < 2; ++byte)
      EXPECT_EQ(dataset.images.data<std::uint8_t>()[2 * k + byte], 2 * labels[k] + byte) << "label and picture part";
  return {labels.begin(), labels.end()};
}

/// Pictures of 1x1 with the given labels; `first` is the byte of the first one, the others follow.
Dataset labelled(const std::vector<std::int32_t>& labels, int classes, int first = 0) {
  const auto size = static_cast<std::int64_t>(labels.size());
  Dataset dataset{.name = "labels", .classes = classes};
  dataset.images = Tensor({size, 1, 2, 1}, DType::kUInt8);
  for (std::int64_t i = 0; i < size; ++i) {
    dataset.images.data<std::uint8_t>()[2 * i] = static_cast<std::uint8_t>((first + i) % 256);
    dataset.images.data<std::uint8_t>()[2 * i + 1] = static_cast<std::uint8_t>((first + i) / 256);
  }
  dataset.labels = Tensor::from<std::int32_t>({size}, labels);
  return dataset;
}

std::vector<std::int32_t> in_turns(int size, int classes) {
  std::vector<std::int32_t> labels(size);
  for (int i = 0; i < size; ++i) labels[i] = i % classes;
  return labels;
}

std::set<std::vector<std::uint8_t>> pictures_of(const Dataset& dataset) {
  std::set<std::vector<std::uint8_t>> pictures;
  const auto bytes = dataset.images.values<std::uint8_t>();
  for (std::int64_t i = 0; i < dataset.size(); ++i) pictures.insert({bytes[2 * i], bytes[2 * i + 1]});
  return pictures;
}

/// A stride of 12 over three classes in turns, one of 100 over ten, met none but one class.
TEST(HoldOut, TakesEachClassInProportionWhateverTheOrder) {
  for (const auto& [size, classes, n] : {std::tuple(6000, 3, 500), {60000, 10, 600}, {60000, 10, 5000}}) {
    const Splits splits = hold_out({.train = labelled(in_turns(size, classes), classes), .test = numbered(1)}, n);
    EXPECT_EQ(splits.validation->size(), n);
    for (const std::int64_t count : class_counts(*splits.validation)) EXPECT_NEAR(count, n / classes, 1) << size;
  }
  std::vector<std::int32_t> uneven(100, 0);
  std::fill(uneven.begin() + 70, uneven.end(), 1);
  std::fill(uneven.begin() + 97, uneven.end(), 2);
  const Splits splits = hold_out({.train = labelled(uneven, 3), .test = numbered(1)}, 10);
  EXPECT_EQ(class_counts(*splits.validation), (std::vector<std::int64_t>{7, 3, 0}));
  EXPECT_EQ(classes_too_small(*splits.validation, splits.train), "2 (3 training pictures)");
}

TEST(HoldOut, TheDrawDependsOnThePicturesAlone) {
  const Dataset data = labelled(in_turns(300, 3), 3);
  std::vector<std::int64_t> order(300);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::reverse(order);
  std::ranges::rotate(order, order.begin() + 77);
  const Splits one = hold_out({.train = data, .test = numbered(1)}, 40);
  const Splits other = hold_out({.train = examples_at(data, order), .test = numbered(1)}, 40);
  EXPECT_EQ(pictures_of(*one.validation), pictures_of(*other.validation));
  const Splits more = hold_out({.train = data, .test = numbered(1)}, 90);
  const auto smaller = pictures_of(*one.validation), greater = pictures_of(*more.validation);
  EXPECT_TRUE(std::ranges::includes(greater, smaller));
  const Splits stride = hold_out({.train = data, .test = numbered(1)}, 40, HoldOut::kStride);
  EXPECT_NE(pictures_of(*one.validation), pictures_of(*stride.validation));
  // Neither the first nor the last ones: a draw.
  const auto firsts =
      std::ranges::count_if(smaller, [](const auto& picture) { return picture[0] < 150 && !picture[1]; });
  EXPECT_GT(firsts, 8);
  EXPECT_LT(firsts, 32);
}

TEST(HoldOut, ClassesKeepAPictureForTrainingWhereTheyCan) {
  const Splits all{.train = labelled({0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2}, 4), .test = numbered(1)};
  const Splits some = hold_out(all, 8);
  EXPECT_EQ(class_counts(some.train), (std::vector<std::int64_t>{1, 1, 1, 0}));
  EXPECT_EQ(class_counts(*hold_out(all, 10).validation).at(3), 0);
  EXPECT_EQ(hold_out(all, 10).train.size(), 1);
  EXPECT_EQ(classes_too_small(*some.validation, some.train), "2 (1 training picture)") << "not class 3, which is empty";
}

TEST(ClassCountsText, IsOneShortLine) {
  EXPECT_EQ(class_counts_text(labelled(in_turns(30, 3), 3)), "10 of each of 3 classes");
  EXPECT_EQ(class_counts_text(labelled(in_turns(31, 3), 3)), "10 to 11 of each of 3 classes");
  EXPECT_EQ(class_counts_text(labelled({0, 0, 1, 1, 1, 1, 2, 2, 2}, 3)), "2 to 4 of each of 3 classes");
  Dataset named = labelled({0, 0, 0, 1}, 3);
  named.class_names = {"cat", "dog", "owl"};
  EXPECT_EQ(class_counts_text(named), "3 of cat, 1 of dog, 0 of owl");
  std::vector<std::int32_t> many = in_turns(400, 100);
  many.resize(450, 7);
  EXPECT_EQ(class_counts_text(labelled(many, 100)), "4 to 54 of each of 100 classes");
}

TEST(NoteOnFirst, TellsOfDataInTheOrderOfTheirClasses) {
  const Dataset turns = labelled(in_turns(30, 3), 3);
  std::vector<std::int32_t> sorted = in_turns(30, 3);
  std::ranges::sort(sorted);
  const Dataset in_order = labelled(sorted, 3);
  EXPECT_EQ(note_on_first(first_examples(in_order, 9), in_order),
            "note: the first 9 pictures have 1 of 3 classes: the data are in an order of their classes");
  EXPECT_EQ(note_on_first(first_examples(in_order, 5), in_order), "") << "too few anyway";
  EXPECT_EQ(note_on_first(first_examples(turns, 9), turns), "");
  EXPECT_EQ(note_on_first(in_order, in_order), "");
}

/// What runs of earlier versions resume with.
TEST(HoldOut, AStrideSpreadsItsExamplesOverTheTrainingSet) {
  const Splits all{.train = numbered(7), .test = numbered(2)};
  const Splits splits = hold_out(all, 3, HoldOut::kStride);
  ASSERT_TRUE(splits.validation);
  EXPECT_EQ(labels_of(*splits.validation), (std::vector{0, 2, 4}));
  EXPECT_EQ(labels_of(splits.train), (std::vector{1, 3, 5, 6}));
  EXPECT_EQ(splits.test.images.raw(), all.test.images.raw());
  EXPECT_EQ(splits.validation->scale, 0.5f);
  EXPECT_EQ(splits.validation->zero_point, 3);
  EXPECT_EQ(splits.validation->classes, 100);
  EXPECT_EQ(labels_of(all.train), (std::vector{0, 1, 2, 3, 4, 5, 6})) << "what was split stays";
}

TEST(HoldOut, FilesStayWithTheirPictures) {
  Splits all{.train = numbered(4), .test = numbered(1)};
  all.train.files = std::make_shared<std::vector<std::string>>(std::vector<std::string>{"0", "1", "2", "3"});
  const Splits splits = hold_out(all, 2, HoldOut::kStride);
  EXPECT_EQ(*splits.validation->files, (std::vector<std::string>{"0", "2"}));
  EXPECT_EQ(*splits.train.files, (std::vector<std::string>{"1", "3"}));
  EXPECT_EQ(first_examples(splits.train, 1).file_of(0), "1");
  EXPECT_EQ(*first_examples(all.train, 2).files, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(splits.test.files, nullptr);
  EXPECT_EQ(splits.test.file_of(0), "");
}

TEST(HoldOut, TakesFromNoneToAllButOne) {
  const Splits all{.train = numbered(50), .test = numbered(1)};
  const Splits none = hold_out(all, 0);
  EXPECT_FALSE(none.validation);
  EXPECT_EQ(none.train.images.raw(), all.train.images.raw());
  for (int n = 1; n < 50; ++n)
    for (const HoldOut method : {HoldOut::kByClass, HoldOut::kStride}) {
      const Splits splits = hold_out(all, n, method);
      const std::vector<int> held = labels_of(*splits.validation), left = labels_of(splits.train);
      ASSERT_EQ(held.size(), n);
      std::vector<int> both;
      std::ranges::merge(held, left, std::back_inserter(both));
      EXPECT_EQ(both, labels_of(all.train)) << n;
      for (int i = 0; i < n && method == HoldOut::kStride; ++i) EXPECT_EQ(held[i], i * 50 / n);
    }
}

TEST(HoldOut, RefusesMoreThanThereIs) {
  const Splits all{.train = numbered(5), .test = numbered(1)};
  for (const std::int64_t n : {-1, 5, 6})
    EXPECT_TRUE(testing::mentions(testing::error_of([&] { hold_out(all, n); }), {std::to_string(n), "of 5", "0 to 4"}));
}

}  // namespace
}  // namespace miniqat::datasets::hold_out_test
