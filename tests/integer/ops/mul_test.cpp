// Mul of inputs of two shapes: factors of a squeeze-and-excitation, and whatever else can be stretched.

#include <gtest/gtest.h>

#include "core/tensors/tensor.h"
#include "integer/model.h"
#include "integer/reference/engine.h"
#include "tests/errors.h"

namespace miniqat::integer::mul_test {
namespace {

using testing::error_of;
using testing::mentions;

/// The first number of each channel of x, [2, 2, 3], times all of x, on grids whose scales are 1.
Model channels_times_image() {
  const Grid from{.zero_point = 1}, to{.zero_point = 0};
  Model model{.name = "gate"};
  model.tensors = {{.name = "x", .shape = {2, 2, 3}, .grid = from},
                   {.name = "factors", .shape = {1, 1, 3}, .grid = from},
                   {.name = "y", .shape = {2, 2, 3}, .grid = to}};
  model.operations = {
      {.name = "cut", .action = Slice{.starts = {0, 0, 0}, .steps = {1, 1, 1}}, .inputs = {0}, .output = 1},
      {.name = "mul", .action = Mul{multiplier_for(1)}, .inputs = {1, 0}, .output = 2}};
  for (Operation& operation : model.operations) operation.clamp = {.min = 0, .max = 255};
  model.output = 2;
  return model;
}

TEST(StretchedMul, TheReferenceGivesEveryPixelItsChannelsFactor) {
  const Model model = channels_times_image();
  model.check();
  const std::vector<std::uint8_t> x = {2, 3, 4, 11, 12, 13, 21, 22, 23, 31, 32, 33};
  const std::vector<std::uint8_t> expected = {1, 4, 9, 10, 22, 36, 20, 42, 66, 30, 62, 96};
  Tensor images({1, 2, 2, 3}, DType::kUInt8);
  std::ranges::copy(x, images.values<std::uint8_t>().begin());
  EXPECT_TRUE(std::ranges::equal(reference::run(model, images)[2].values<std::uint8_t>(), expected));
}

TEST(StretchedMul, NeighbouringAxesThatBehaveAlikeAreOne) {
  const StretchedPair channels = stretched_pair({5, 7, 3}, {1, 1, 3});
  EXPECT_EQ(channels.extents, (std::vector<std::int64_t>{35, 3}));
  EXPECT_EQ(channels.rows().size(), 35u);
  EXPECT_EQ(channels.rows().back().a, 34 * 3);
  EXPECT_EQ(channels.rows().back().b, 0);
  EXPECT_EQ(stretched_pair({5, 7, 3}, {5, 7, 3}).extents, (std::vector<std::int64_t>{105}));
  EXPECT_EQ(stretched_pair({5, 7, 1}, {1, 1, 1}).extents, (std::vector<std::int64_t>{35}));
  EXPECT_EQ(stretched_pair({1, 1}, {1, 1}).extents, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(stretched_pair({5, 1, 3}, {1, 7, 3}).extents, (std::vector<std::int64_t>{5, 7, 3}));
}

TEST(StretchedMul, ShapesThatDoNotFitAreRefused) {
  const auto refusal = [](const Shape& factors, const Shape& y) {
    Model model = channels_times_image();
    model.operations.erase(model.operations.begin());
    model.tensors[1] = {.name = "factors", .shape = factors, .grid = {}};
    model.operations.insert(
        model.operations.begin(),
        {.name = "cut", .action = Reshape{}, .inputs = {0}, .output = 1, .clamp = {.min = 0, .max = 255}});
    model.tensors[0] = {.name = "x", .shape = {2, 2, 3}, .grid = {}};
    model.tensors[2].shape = y;
    return error_of([&] { model.check(); });
  };
  EXPECT_TRUE(mentions(refusal({3, 4, 1}, {3, 4, 3}), {"[Mul \"mul\"]", "[3,4,1]", "[2,2,3]", "stretched"}));
  EXPECT_TRUE(mentions(refusal({12}, {2, 2, 12}), {"[Mul \"mul\"]", "[12]", "stretched"}));
  EXPECT_TRUE(mentions(refusal({2, 2, 3}, {2, 2, 1}), {"[Mul \"mul\"]", "stretched", "[2,2,1]"}));
}

}  // namespace
}  // namespace miniqat::integer::mul_test
