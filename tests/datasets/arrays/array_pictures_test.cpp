#include "datasets/arrays/array_pictures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/platform/interruption.h"
#include "datasets/class_counts.h"
#include "datasets/dataset.h"
#include "tests/errors.h"

namespace miniqat::datasets::array_pictures_test {
namespace {

using testing::error_of;
using testing::mentions;

/// [1, 16, 16] floats.
template <class Real>
NumpyArray reals(const std::vector<Real>& values) {
  NumpyArray array;
  array.kind = 'f';
  array.item = sizeof(Real);
  array.shape = {1, 16, 16};
  array.bytes.resize(values.size() * sizeof(Real));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

/// All bytes, in order, each divided `times` times by 255.
std::vector<float> divided(int times) {
  std::vector<float> values;
  for (int byte = 0; byte < 256; ++byte) {
    auto value = static_cast<float>(byte);
    for (int i = 0; i < times; ++i) value /= 255;
    values.push_back(value);
  }
  return values;
}

TEST(ArrayPicturesTest, BytesDividedOnceCostNothing) {
  std::vector<std::string> notes;
  const Tensor images = pictures_of(reals(divided(1)), "x", &notes);
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(images.data<std::uint8_t>()[byte], byte);
  EXPECT_TRUE(notes.empty()) << notes.front();
}

TEST(ArrayPicturesTest, BytesDividedTwiceSayWhatIsLeft) {
  std::vector<std::string> notes;
  const Tensor images = pictures_of(reals(divided(2)), "x", &notes);
  EXPECT_EQ(Levels(images.values<std::uint8_t>()).count, 2);
  ASSERT_EQ(notes.size(), 1u);
  // The mean distance to 0 or 1/255 of numbers spread evenly between them is a quarter of it.
  EXPECT_TRUE(mentions(notes[0], {"note: x: floats from 0 to 0.00392 become bytes", "0.00098 on average",
                                  "25% of that range", "2 of 256 levels are in use"}));
}

TEST(ArrayPicturesTest, FineFloatsSayTheirSmallCost) {
  std::vector<double> values;
  for (int i = 0; i < 256; ++i) values.push_back(std::sqrt(i / 255.0));
  std::vector<std::string> notes;
  pictures_of(reals(values), "x", &notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(mentions(notes[0], {"floats from 0 to 1 become bytes", "0.1% of that range"}));
}

TEST(ArrayPicturesTest, WholeNumbersCostNothing) {
  std::vector<std::string> notes;
  pictures_of(reals(divided(0)), "x", &notes);
  EXPECT_TRUE(notes.empty());
}

TEST(ArrayPicturesTest, NumbersThatAreRefusedHaveAllTheirDigits) {
  std::vector<float> narrow = divided(1);
  narrow[255] = std::nextafter(1.0F, 2.0F);
  EXPECT_TRUE(mentions(error_of([&] { pictures_of(reals(narrow), "x"); }), {"x holds 1.0000001 at element 255"}));
  std::vector<double> wide(256, 0.5);
  wide[3] = std::nextafter(1.0, 2.0);
  EXPECT_TRUE(mentions(error_of([&] { pictures_of(reals(wide), "x"); }), {"x holds 1.0000000000000002 at element 3"}));
  wide[3] = 7.5;
  EXPECT_TRUE(mentions(error_of([&] { pictures_of(reals(wide), "x"); }), {"x holds 7.5 at element 3"}));
}

/// A signal does not wait for millions of numbers.
TEST(ArrayPicturesTest, LargeArraysAreReadInPieces) {
  static int points = 0;
  const InterruptionScope counted([] { ++points; });
  NumpyArray array{.kind = 'i', .item = 1, .shape = {2, 1024, 1024}, .bytes = std::string(2 << 20, 7)};
  pictures_of(array, "x");
  EXPECT_EQ(points, 2);
  array = {.kind = 'f', .item = 4, .shape = {2, 1024, 1024}, .bytes = std::string(8 << 20, '\0')};
  pictures_of(array, "x");
  EXPECT_EQ(points, 2 + 4) << "once for the range, once for the bytes";
  const NumpyArray bytes{.kind = 'u', .item = 1, .shape = {1, 2, 3}, .bytes = "abcdef"};
  EXPECT_EQ(pictures_of(bytes, "x").values<std::uint8_t>().back(), 'f');
}

TEST(ArrayPicturesTest, FewLevelsInANarrowRangeAreNoted) {
  const auto note = [](std::vector<std::uint8_t> pixels) {
    Dataset set{.name = "d"};
    set.images = Tensor::from<std::uint8_t>({1, 1, static_cast<std::int64_t>(pixels.size()), 1}, pixels);
    return note_on_levels(set, "test");
  };
  EXPECT_TRUE(mentions(note({0, 5, 1, 2, 4, 3, 5}), {"note: d: the test pictures use 6 of 256 levels, from 0 to 5"}));
  EXPECT_TRUE(mentions(note({9, 9}), {"1 of 256 levels, from 9 to 9"}));
  EXPECT_EQ(note({0, 255}), "") << "black and white";
  EXPECT_EQ(note({100, 132}), "");
}

}  // namespace
}  // namespace miniqat::datasets::array_pictures_test
