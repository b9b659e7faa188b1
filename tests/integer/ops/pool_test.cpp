#include "integer/ops/pool.h"

#include <gtest/gtest.h>

namespace miniqat::integer::pool_test {
namespace {

bool is_global(const Window2d& window) { return AveragePool{.window = window, .multipliers = {}}.is_global(); }

TEST(GlobalWindow, IsTheWholeImageOnce) {
  const Window2d whole = {.rows = {.input = 4, .window = 4, .stride = 2}, .columns = {.input = 3, .window = 3}};
  EXPECT_TRUE(is_global(whole));
  Window2d other = whole;
  other.columns.window = 2;
  EXPECT_FALSE(is_global(other)) << "leaves a column out";
  other = whole;
  other.rows.dilation = 2;
  other.rows.pad_after = 3;
  EXPECT_FALSE(is_global(other)) << "sees every second row, and padding";
  other = whole;
  other.rows.pad_before = 1;
  EXPECT_FALSE(is_global(other)) << "begins on padding";
  other = whole;
  other.rows.output = 2;
  other.rows.pad_after = 2;
  EXPECT_FALSE(is_global(other)) << "two windows";
}

TEST(GlobalWindow, OfOnePixelHasNoDilation) {
  EXPECT_TRUE(is_global({.rows = {.dilation = 2}, .columns = {.dilation = 3}}));
}

}  // namespace
}  // namespace miniqat::integer::pool_test
