// The bytes of pictures on the grid of an input quantizer: what the integer model is given must be what training had.

#include <gtest/gtest.h>

#include "core/engine/session.h"
#include "tests/quantize/eval_net.h"

namespace miniqat::quantize::input_table_test {
namespace {

using integer::Grid;
using testing::EvalNet;

constexpr std::int64_t kBytes = 256;

/// The grids of MNIST's and of CIFAR-10's bytes.
const std::vector<Grid> kPictures = {{.scale = 1.0f / 255, .zero_point = 0, .bits = 8},
                                     {.scale = 1.0f / 64, .zero_point = 128, .bits = 8}};

Tensor pixels(const Grid& pictures) {
  Tensor all(Shape{kBytes, 1});
  for (int byte = 0; byte < kBytes; ++byte) all.data<float>()[byte] = integer::dequantize(pictures, byte);
  return all;
}

/// All pixels through a FakeQuant, in the order of their bytes, beside the table for the grid that conversion gives it.
void expect_table_of(const Grid& pictures, Range<float> range, FakeQuantAttributes attributes) {
  EvalNet net;
  const Output images = net.images({kBytes, 1});
  const Output y = net.quantizer("input_quant", images, range, attributes);
  const Grid input = net.convert(y).tensors.front().grid;
  ASSERT_EQ(input.bits, attributes.bits);
  Session session(net.graph);
  session.restore({.tensors = net.variables, .metadata = {}}, Session::Restore::kVariables, "test");
  const Tensor simulated = session.run({.fetches = {y}}, {{images, pixels(pictures)}}).fetched[0];
  const std::array<std::uint8_t, 256> table = integer::input_table(pictures, input);
  for (int byte = 0; byte < kBytes; ++byte)
    ASSERT_EQ(integer::dequantize(input, table[byte]), simulated.data<float>()[byte])
        << "byte " << byte << " at scale " << pictures.scale << " on [" << range.min << ", " << range.max << "], "
        << attributes.bits << " bits";
}

TEST(InputTable, HoldsTheIntegersOfTheInputsQuantizer) {
  // The whole and half of what pictures reach, where many pixels are ties; what a moving average may end at.
  std::vector<Range<float>> ranges = {{0, 1}, {0, 0.5f}, {-2, 2}, {-2, 127.0f / 64}, {-1, 1}, {0, 255.0f / 128}};
  Random random(7);
  for (int i = 0; i < 40; ++i)
    ranges.push_back({static_cast<float>(-2.5 * random.uniform()), static_cast<float>(2.5 * random.uniform())});
  for (const Grid& pictures : kPictures)
    for (const Range<float>& range : ranges)
      for (int bits = 2; bits <= 8; ++bits)
        for (const bool symmetric : {false, true}) {
          FakeQuantAttributes attributes = EvalNet::evaluating();
          attributes.bits = bits;
          attributes.symmetric = symmetric;
          expect_table_of(pictures, range, attributes);
          if (HasFatalFailure()) return;
        }
}

TEST(InputTable, LeavesBytesOnTheirOwnGridAlone) {
  for (const Grid& pictures : kPictures) {
    const std::array<std::uint8_t, 256> table = integer::input_table(pictures, pictures);
    for (int byte = 0; byte < kBytes; ++byte) EXPECT_EQ(table[byte], byte);
  }
}

TEST(InputTable, QuantizesWhatIsNoNumber) {
  const Grid grid = {.scale = 0.5f, .zero_point = 3, .bits = 4};
  EXPECT_EQ(integer::quantize(grid, std::numeric_limits<float>::quiet_NaN()), 3);
  EXPECT_EQ(integer::quantize(grid, std::numeric_limits<float>::infinity()), 15);
  EXPECT_EQ(integer::quantize(grid, -std::numeric_limits<float>::infinity()), 0);
  EXPECT_EQ(integer::quantize(grid, -1.25f), 1) << "ties upwards";
}

}  // namespace
}  // namespace miniqat::quantize::input_table_test
