#include <gtest/gtest.h>

#include "cli/display/terminal.h"

namespace miniqat::cli::text_table_test {
namespace {

TEST(TextTable, CellsAreAlignedByTheColumnsOfATerminal) {
  EXPECT_EQ(aligned({{"class", "pictures"}, {"Käfer", "1"}, {"甲虫", "20"}, {"🐞x", "3"}, {"e\u0301", "4"}}, 1),
            "class  pictures\n"
            "Käfer         1\n"
            "甲虫         20\n"
            "🐞x           3\n"
            "e\u0301             4\n");
}

TEST(TextTable, ALongNameLosesItsMiddle) {
  EXPECT_EQ(name_cell("Käfer"), "Käfer");
  EXPECT_EQ(name_cell(std::string(40, 'x')), std::string(40, 'x'));
  EXPECT_EQ(name_cell("a" + std::string(198, 'x') + "z"),
            "a" + std::string(18, 'x') + "..." + std::string(17, 'x') + "z");
  EXPECT_EQ(name_cell("\x1b[31m"), "\\x1b[31m");
}

}  // namespace
}  // namespace miniqat::cli::text_table_test
