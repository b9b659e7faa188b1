#include "datasets/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "datasets/loader.h"
#include "tests/errors.h"

namespace miniqat::datasets::augment_test {
namespace {

using testing::error_of;
using testing::mentions;

constexpr std::uint8_t kGround = 200;

/// n pictures [7, 6, 3], each byte by its place; kGround is none of them.
Dataset patterned(int n) {
  Dataset dataset{.name = "patterned",
                  .images = Tensor(Shape{n, 7, 6, 3}, DType::kUInt8),
                  .labels = Tensor(Shape{n}, DType::kInt32),
                  .scale = 0.25f,
                  .zero_point = kGround};
  for (std::int64_t i = 0; i < dataset.images.elements(); ++i)
    dataset.images.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 131 % 199);
  for (int i = 0; i < n; ++i) dataset.labels.data<std::int32_t>()[i] = i % 10;
  return dataset;
}

std::vector<std::uint8_t> picture(const Dataset& dataset, std::int64_t example) {
  const std::int64_t size = dataset.example_shape().elements();
  const auto bytes = dataset.images.values<std::uint8_t>().subspan(example * size, size);
  return {bytes.begin(), bytes.end()};
}

/// The definition: pad, crop, mirror, one after the other.
std::vector<std::uint8_t> padded_cropped_mirrored(const std::vector<std::uint8_t>& bytes, const Shape& shape, int pad,
                                                  const Augmentation& augmentation) {
  const std::int64_t h = shape[0], w = shape[1], c = shape[2], wide = w + 2 * pad;
  std::vector<std::uint8_t> padded((h + 2 * pad) * wide * c, kGround), result;
  for (std::int64_t y = 0; y < h; ++y)
    for (std::int64_t x = 0; x < w; ++x)
      for (std::int64_t k = 0; k < c; ++k) padded[((y + pad) * wide + x + pad) * c + k] = bytes[(y * w + x) * c + k];
  for (std::int64_t y = 0; y < h; ++y)
    for (std::int64_t x = 0; x < w; ++x)
      for (std::int64_t k = 0; k < c; ++k) {
        const std::int64_t column = augmentation.mirrored ? w - 1 - x : x;
        result.push_back(padded[((y + augmentation.top + pad) * wide + column + augmentation.left + pad) * c + k]);
      }
  return result;
}

TEST(Augment, PadsCropsAndMirrors) {
  const Dataset dataset = patterned(1);
  const std::vector<std::uint8_t> bytes = picture(dataset, 0);
  for (int top = -5; top <= 5; ++top)
    for (int left = -5; left <= 5; ++left)
      for (const bool mirrored : {false, true}) {
        const Augmentation augmentation{.top = top, .left = left, .mirrored = mirrored};
        std::vector<std::uint8_t> result(bytes.size(), 77);
        augment(augmentation, dataset.example_shape(), bytes, kGround, result);
        EXPECT_EQ(result, padded_cropped_mirrored(bytes, dataset.example_shape(), 5, augmentation))
            << top << " " << left << " " << mirrored;
      }
}

TEST(Augment, DrawsEveryCropAndFlipEquallyOften) {
  std::map<std::tuple<int, int, bool>, int> counts;
  constexpr int kDraws = 162 * 200;
  for (int i = 0; i < kDraws; ++i) {
    const Augmentation drawn = draw_augmentation(crop_and_flip(), 3, i / 128, i % 128);
    ++counts[{drawn.top, drawn.left, drawn.mirrored}];
  }
  EXPECT_EQ(counts.size(), 162u);
  for (const auto& [drawn, count] : counts) {
    EXPECT_LE(std::abs(std::get<0>(drawn)), 4);
    EXPECT_LE(std::abs(std::get<1>(drawn)), 4);
    EXPECT_NEAR(count, 200, 75) << "five standard deviations";
  }
}

TEST(Augment, DrawsOnlyWhatIsAsked) {
  std::set<int> shifts;
  std::set<bool> flips;
  for (int i = 0; i < 200; ++i) {
    const Augmentation flipped = draw_augmentation({.flip = true}, 1, 0, i);
    EXPECT_TRUE(flipped.top == 0 && flipped.left == 0);
    flips.insert(flipped.mirrored);
    const Augmentation cropped = draw_augmentation({.pad = 1}, 1, 0, i);
    EXPECT_FALSE(cropped.mirrored);
    shifts.insert({cropped.top, cropped.left});
  }
  EXPECT_EQ(flips.size(), 2u);
  EXPECT_EQ(shifts, (std::set<int>{-1, 0, 1}));
}

/// The draws for 32 positions, as numbers.
std::vector<int> draws(std::uint64_t seed, std::int64_t batch) {
  std::vector<int> all;
  for (int position = 0; position < 32; ++position) {
    const Augmentation drawn = draw_augmentation(crop_and_flip(), seed, batch, position);
    all.insert(all.end(), {drawn.top, drawn.left, drawn.mirrored});
  }
  return all;
}

TEST(Augment, SeedBatchAndPositionDecide) {
  EXPECT_EQ(draws(1, 5), draws(1, 5));
  EXPECT_NE(draws(1, 5), draws(2, 5));
  EXPECT_NE(draws(1, 5), draws(1, 6));
  EXPECT_NE(draws(1, 2), draws(2, 1));
}

/// `batches` batches one after the other, pixels and labels.
std::vector<std::vector<int>> run(const Loader::Options& options, int batches) {
  Loader loader(patterned(23), options);
  std::vector<std::vector<int>> all;
  for (int i = 0; i < batches; ++i) {
    const Batch& batch = loader.next();
    const auto pixels = batch.images.values<std::uint8_t>();
    all.emplace_back(pixels.begin(), pixels.end());
    for (const std::int32_t label : batch.labels.values<std::int32_t>()) all.back().push_back(label);
  }
  return all;
}

TEST(AugmentingLoader, EveryPictureIsItsExamplesCropOrFlip) {
  const Dataset dataset = patterned(20);
  const Shape shape = dataset.example_shape();
  Loader loader(dataset, {.batch_size = 20, .shuffle = false, .augment = {.pad = 2, .flip = true}});
  std::set<std::tuple<int, int, bool>> seen;
  for (int i = 0; i < 30; ++i) {
    const Batch& batch = loader.next();
    for (std::int64_t k = 0; k < 20; ++k) {
      ASSERT_EQ(batch.labels.data<std::int32_t>()[k], k % 10);
      const auto pixels = batch.images.values<std::uint8_t>().subspan(k * shape.elements(), shape.elements());
      const std::vector<std::uint8_t> bytes(pixels.begin(), pixels.end());
      int matches = 0;
      for (int top = -2; top <= 2; ++top)
        for (int left = -2; left <= 2; ++left)
          for (const bool mirrored : {false, true})
            if (bytes == padded_cropped_mirrored(picture(dataset, k), shape, 2, {top, left, mirrored})) {
              ++matches;
              seen.insert({top, left, mirrored});
            }
      ASSERT_EQ(matches, 1) << "batch " << i << ", picture " << k;
    }
  }
  EXPECT_EQ(seen.size(), 50u);
}

TEST(AugmentingLoader, SameSeedSameBatchesWhereverItBegins) {
  const Loader::Options options{.batch_size = 4, .seed = 9, .augment = crop_and_flip()};
  const auto whole = run(options, 20);
  EXPECT_EQ(run(options, 20), whole);
  for (const int stop : {1, 5, 12}) {
    Loader::Options later = options;
    later.first_batch = stop;
    const auto rest = run(later, 20 - stop);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + stop)) << stop;
  }
  Loader::Options other = options;
  other.seed = 10;
  EXPECT_NE(run(other, 1), run(options, 1));
}

/// As in the whole batch, crops and flips included.
TEST(AugmentingLoader, PreparesSomeRowsOfABatchOnly) {
  const Dataset dataset = patterned(40);
  const Loader::Options whole{.batch_size = 8, .seed = 4, .augment = crop_and_flip()};
  Loader::Options part = whole;
  part.first_row = 4;
  part.rows = 2;
  Loader all(dataset, whole), some(dataset, part);
  for (int i = 0; i < 7; ++i) {
    const Batch &expected = all.next(), &batch = some.next();
    ASSERT_EQ(batch.images.shape(), (Shape{2, 7, 6, 3}));
    const std::size_t size = 2 * 7 * 6 * 3;
    EXPECT_TRUE(std::ranges::equal(batch.images.values<std::uint8_t>(),
                                   expected.images.values<std::uint8_t>().subspan(2 * size, size)));
    EXPECT_TRUE(
        std::ranges::equal(batch.labels.values<std::int32_t>(), expected.labels.values<std::int32_t>().subspan(4, 2)));
  }
  part.rows = 5;
  EXPECT_TRUE(mentions(error_of([&] { Loader(dataset, part); }), {"rows 4 to 9", "batch of 8"}));
}

TEST(AugmentingLoader, TheOrderOfTheExamplesIsThatWithoutAugmentation) {
  const auto plain = run({.batch_size = 4}, 12);
  const auto augmented = run({.batch_size = 4, .augment = crop_and_flip()}, 12);
  for (int i = 0; i < 12; ++i) {
    EXPECT_NE(plain[i], augmented[i]);
    EXPECT_TRUE(std::equal(plain[i].end() - 4, plain[i].end(), augmented[i].end() - 4)) << "labels of batch " << i;
  }
}

TEST(AugmentingLoader, RefusesWhatCannotBePadded) {
  const auto error = [](const Dataset& dataset, const AugmentOptions& options) {
    return error_of([&] { Loader(dataset, {.batch_size = 2, .augment = options}); });
  };
  Dataset dataset = patterned(4);
  EXPECT_EQ(error(dataset, {.pad = 5, .flip = true}), "");
  EXPECT_TRUE(mentions(error(dataset, {.pad = 6}), {"patterned", "[7,6,3]", "6 pixels"}));
  EXPECT_TRUE(mentions(error(dataset, {.pad = -1}), {"patterned", "-1 pixels"}));
  dataset.zero_point = 300;
  EXPECT_TRUE(mentions(error(dataset, {}), {"patterned", "zero point", "300"}));
}

}  // namespace
}  // namespace miniqat::datasets::augment_test
