#include "core/tensors/shape.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/errors.h"

namespace miniqat::shape_test {
namespace {

using testing::error_of;
using testing::mentions;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

std::string error_for(const std::vector<std::int64_t>& extents) {
  return error_of([&] { Shape shape(extents); });
}

TEST(ShapeTest, CountsElements) {
  const Shape image{32, 28, 28, 8};
  EXPECT_EQ(image.rank(), 4);
  EXPECT_EQ(image.elements(), 32 * 28 * 28 * 8);
  EXPECT_EQ(image.channels(), 8);
  EXPECT_EQ(image.str(), "[32,28,28,8]");
  EXPECT_EQ(image.to_vector(), (std::vector<std::int64_t>{32, 28, 28, 8}));
}

TEST(ShapeTest, AScalarHasOneElementAndOneChannel) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(scalar.channels(), 1);
  EXPECT_EQ(scalar.str(), "[]");
  EXPECT_NE(scalar, Shape{1});
}

TEST(ShapeTest, AxesCountFromEitherEnd) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[2], 5);
  EXPECT_EQ(shape[-1], 5);
  EXPECT_EQ(shape[-3], 2);
  EXPECT_TRUE(mentions(error_of([&] { shape[3]; }), {"[2,3,5]", "no axis 3"}));
  EXPECT_TRUE(mentions(error_of([&] { shape[-4]; }), {"[2,3,5]", "no axis -4"}));
  EXPECT_TRUE(mentions(error_of([] { Shape{}[0]; }), {"no axis 0"}));
}

TEST(ShapeTest, TheLargestTensorIsAllowedAndOneElementMoreIsNot) {
  EXPECT_EQ(Shape({Shape::kMaxElements}).elements(), Shape::kMaxElements);
  EXPECT_EQ(Shape({2, Shape::kMaxElements / 2, 1}).elements(), Shape::kMaxElements);
  EXPECT_TRUE(mentions(error_for({Shape::kMaxElements + 1}), {"more than 2147483648 elements"}));
  EXPECT_TRUE(mentions(error_for({1000000, 1000000}), {"[1000000,1000000]", "more than"}));
  EXPECT_TRUE(mentions(error_for({1000000000000}), {"[1000000000000]", "more than"}));
}

TEST(ShapeTest, ProductsThatOverflowAreRefused) {
  EXPECT_TRUE(mentions(error_for({kHuge, kHuge}), {"more than"}));
  // 2^16 eight times over is 2^128: zero in 64 bits.
  EXPECT_TRUE(mentions(error_for(std::vector<std::int64_t>(8, 65536)), {"more than"}));
  EXPECT_TRUE(mentions(error_for({3, kHuge / 3 + 1}), {"more than"}));
}

TEST(ShapeTest, NegativeExtentsAreRefusedAlsoBesideAZero) {
  EXPECT_TRUE(mentions(error_for({2, -1}), {"[2,-1]", "negative extent -1"}));
  EXPECT_TRUE(mentions(error_for({0, -3}), {"[0,-3]", "negative extent -3"}));
  EXPECT_TRUE(mentions(error_for({std::numeric_limits<std::int64_t>::min()}), {"negative extent"}));
}

TEST(ShapeTest, ZerosMakeAnEmptyShape) {
  EXPECT_EQ(Shape({0}).elements(), 0);
  EXPECT_EQ(Shape({4, 0, 3}).elements(), 0);
  EXPECT_EQ(Shape({4, 0, 3}).channels(), 3);
  EXPECT_NE(Shape({0, 4}), Shape({4, 0}));
}

// Strides and sums of extents are computed from empty shapes as well.
TEST(ShapeTest, AZeroDoesNotHideExtentsThatOverflow) {
  EXPECT_TRUE(mentions(error_for({0, kHuge}), {"more than"}));
  EXPECT_TRUE(mentions(error_for({kHuge, 0}), {"more than"}));
  EXPECT_TRUE(mentions(error_for({1000000, 0, 1000000}), {"more than"}));
}

TEST(ShapeTest, TheRankIsLimited) {
  EXPECT_EQ(Shape(std::vector<std::int64_t>(8, 2)).elements(), 256);
  EXPECT_TRUE(mentions(error_for(std::vector<std::int64_t>(9, 1)), {"rank 9", "highest rank 8"}));
  EXPECT_TRUE(mentions(error_for(std::vector<std::int64_t>(100000, 1)), {"rank 100000"}));
}

TEST(ShapeTest, EqualityComparesRankAndExtents) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2, 3}), Shape({2, 3, 1}));
}

}  // namespace
}  // namespace miniqat::shape_test
