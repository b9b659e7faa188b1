#include "datasets/synthetic_digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "core/threads/parallel.h"
#include "datasets/known_datasets.h"
#include "tests/errors.h"

namespace miniqat::datasets::synthetic_digits_test {
namespace {

using testing::error_of;
using testing::mentions;

constexpr int kPixels = 28 * 28;

std::vector<std::uint8_t> pixels(const Dataset& dataset) {
  const auto values = dataset.images.values<std::uint8_t>();
  return {values.begin(), values.end()};
}

std::vector<std::int32_t> labels(const Dataset& dataset) {
  const auto values = dataset.labels.values<std::int32_t>();
  return {values.begin(), values.end()};
}

std::vector<std::uint8_t> image(const Dataset& dataset, int i) {
  const std::uint8_t* first = dataset.images.data<std::uint8_t>() + i * kPixels;
  return {first, first + kPixels};
}

TEST(SyntheticDigits, HasTheDefaultSizesAndBalancedShuffledLabels) {
  const Splits splits = load("synthetic");
  EXPECT_EQ(splits.train.images.shape(), (Shape{12000, 28, 28, 1}));
  EXPECT_EQ(splits.test.images.shape(), (Shape{10000, 28, 28, 1}));
  EXPECT_EQ(splits.train.scale, 1.0f / 255);
  EXPECT_EQ(splits.train.zero_point, 0);
  for (const Dataset& dataset : {splits.train, splits.test}) {
    EXPECT_NO_THROW(dataset.check());
    std::array<int, 10> counts{};
    for (const std::int32_t label : labels(dataset)) ++counts.at(label);
    for (const int count : counts) EXPECT_EQ(count, dataset.size() / 10);
    // A few repeats of 0, 1, ..., 9 are what an unshuffled split would begin with.
    const std::vector<std::int32_t> all = labels(dataset);
    EXPECT_FALSE(std::equal(all.begin(), all.begin() + 20, all.begin() + 20));
  }
}

TEST(SyntheticDigits, AreTheSameFromTheSameSeedWhateverTheThreads) {
  const LoadOptions options{.seed = 7, .train_size = 500, .test_size = 100};
  const int threads = thread_count();
  set_thread_count(1);
  const Splits one = synthetic_digits(options);
  set_thread_count(3);
  const Splits three = synthetic_digits(options);
  set_thread_count(threads);
  EXPECT_EQ(pixels(one.train), pixels(three.train));
  EXPECT_EQ(pixels(one.test), pixels(three.test));
  EXPECT_EQ(labels(one.train), labels(three.train));
}

TEST(SyntheticDigits, SeedAndSplitChooseOtherImages) {
  const Splits one = synthetic_digits({.seed = 1, .train_size = 300, .test_size = 300});
  const Splits two = synthetic_digits({.seed = 2, .train_size = 300, .test_size = 300});
  std::set<std::vector<std::uint8_t>> seen;
  for (const Dataset& dataset : {one.train, one.test, two.train, two.test})
    for (int i = 0; i < 300; ++i) seen.insert(image(dataset, i));
  EXPECT_EQ(seen.size(), 1200u);
}

TEST(SyntheticDigits, AreDigitsNotNoise) {
  const Splits splits = synthetic_digits({.train_size = 3000, .test_size = 500});
  // A classifier by the nearest class mean gets MNIST 82% right; noise or mixed-up labels would leave it at 10%.
  std::vector<std::array<float, kPixels>> means(10);
  const std::vector<std::int32_t> train_labels = labels(splits.train), test_labels = labels(splits.test);
  const std::uint8_t* bytes = splits.train.images.data<std::uint8_t>();
  for (std::size_t i = 0; i < train_labels.size(); ++i)
    for (int k = 0; k < kPixels; ++k) means[train_labels[i]][k] += bytes[i * kPixels + k] / 300.0f;
  int right = 0;
  for (std::size_t i = 0; i < test_labels.size(); ++i) {
    const std::vector<std::uint8_t> digit = image(splits.test, static_cast<int>(i));
    const auto distance = [&](const std::array<float, kPixels>& mean) {
      float sum = 0;
      for (int k = 0; k < kPixels; ++k) sum += (digit[k] - mean[k]) * (digit[k] - mean[k]);
      return sum;
    };
    const auto nearest = std::min_element(means.begin(), means.end(),
                                          [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
    right += nearest - means.begin() == test_labels[i];
    EXPECT_GT(*std::max_element(digit.begin(), digit.end()), 60);
  }
  EXPECT_GT(right, 275);
  EXPECT_LT(right, 475);
}

TEST(SyntheticDigits, RefusesAbsurdSizes) {
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{-5}, std::int64_t{1} << 40}) {
    EXPECT_TRUE(mentions(error_of([&] { synthetic_digits({.train_size = size}); }), {"train", std::to_string(size)}));
    EXPECT_TRUE(mentions(error_of([&] { synthetic_digits({.test_size = size}); }), {"test"}));
  }
}

}  // namespace
}  // namespace miniqat::datasets::synthetic_digits_test
