#include "integer/transpose.h"

#include <gtest/gtest.h>

namespace miniqat::integer::transpose_test {
namespace {

TEST(Transpose, RowsBecomeColumns) {
  const std::vector<std::uint8_t> matrix = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(transpose(matrix, 2), (std::vector<std::uint8_t>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(transpose(transpose(matrix, 2), 3), matrix);
  EXPECT_EQ(transpose(matrix, 6), matrix);
}

}  // namespace
}  // namespace miniqat::integer::transpose_test
