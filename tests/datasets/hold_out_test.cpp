#include "datasets/hold_out.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>

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

TEST(HoldOut, SpreadsItsExamplesOverTheTrainingSet) {
  const Splits all{.train = numbered(7), .test = numbered(2)};
  const Splits splits = hold_out(all, 3);
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
  const Splits splits = hold_out(all, 2);
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
  for (int n = 1; n < 50; ++n) {
    const Splits splits = hold_out(all, n);
    const std::vector<int> held = labels_of(*splits.validation), left = labels_of(splits.train);
    ASSERT_EQ(held.size(), n);
    std::vector<int> both;
    std::ranges::merge(held, left, std::back_inserter(both));
    EXPECT_EQ(both, labels_of(all.train)) << n;
    for (int i = 0; i < n; ++i) EXPECT_EQ(held[i], i * 50 / n);
  }
}

TEST(HoldOut, RefusesMoreThanThereIs) {
  const Splits all{.train = numbered(5), .test = numbered(1)};
  for (const std::int64_t n : {-1, 5, 6})
    EXPECT_TRUE(testing::mentions(testing::error_of([&] { hold_out(all, n); }), {std::to_string(n), "of 5", "0 to 4"}));
}

}  // namespace
}  // namespace miniqat::datasets::hold_out_test
