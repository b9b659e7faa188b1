#include <gtest/gtest.h>

#include "core/tensors/random.h"
#include "integer/model.h"
#include "tests/errors.h"

namespace miniqat::integer::packing_test {
namespace {

TEST(Packing, GivesBackWhatWentIn) {
  Random random(1);
  for (int bits = 1; bits <= 8; ++bits)
    for (const std::int64_t count : {0, 1, 2, 7, 8, 9, 1001}) {
      std::vector<std::uint8_t> values(count);
      for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random.below(1u << bits));
      const std::vector<std::uint8_t> bytes = pack(values, bits);
      EXPECT_EQ(static_cast<std::int64_t>(bytes.size()), (count * bits + 7) / 8);
      EXPECT_EQ(unpack(bytes, count, bits), values) << bits << " bits, " << count;
    }
}

TEST(Packing, TheFirstValueIsInTheLowestBits) {
  EXPECT_EQ(pack(std::vector<std::uint8_t>{1, 15, 7}, 4), (std::vector<std::uint8_t>{0xf1, 0x07}));
  EXPECT_EQ(pack(std::vector<std::uint8_t>{1, 2, 3, 0, 3}, 2), (std::vector<std::uint8_t>{0x39, 0x03}));
  EXPECT_EQ(pack(std::vector<std::uint8_t>{7, 0, 6}, 3), (std::vector<std::uint8_t>{0x87, 0x01}));
}

TEST(Packing, RefusesAnotherNumberOfBytes) {
  const std::vector<std::uint8_t> bytes(3);
  EXPECT_TRUE(testing::mentions(testing::error_of([&] { unpack(bytes, 5, 4 + 1); }),
                                {"5 integers of 5 bits take 4 bytes, not 3"}));
}

TEST(Transpose, RowsBecomeColumns) {
  const std::vector<std::uint8_t> matrix = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(transpose(matrix, 2), (std::vector<std::uint8_t>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(transpose(transpose(matrix, 2), 3), matrix);
  EXPECT_EQ(transpose(matrix, 6), matrix);
}

}  // namespace
}  // namespace miniqat::integer::packing_test
