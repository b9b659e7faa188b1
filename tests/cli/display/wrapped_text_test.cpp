#include <gtest/gtest.h>

#include "cli/display/terminal.h"

namespace miniqat::cli::wrapped_text_test {
namespace {

using Lines = std::vector<std::string>;

TEST(WrappedText, LinesEndAtBlanks) {
  EXPECT_EQ(wrapped("one two three", 80), Lines{"one two three"});
  EXPECT_EQ(wrapped("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped("one two three", 6), (Lines{"one", "two", "three"}));
  EXPECT_EQ(wrapped("", 7), Lines{""});
}

TEST(WrappedText, ColumnsCountNotBytes) {
  EXPECT_EQ(wrapped("Käfer Käfer", 11), Lines{"Käfer Käfer"});
  EXPECT_EQ(wrapped("甲虫 甲虫", 8), (Lines{"甲虫", "甲虫"}));
}

TEST(WrappedText, BreaksAndIndentsOfTheTextStay) {
  EXPECT_EQ(wrapped("names:\n  first: one two three\n\nend", 20),
            (Lines{"names:", "  first: one two", "    three", "", "end"}));
}

TEST(WrappedText, ALongListIsBrokenBehindAComma) {
  EXPECT_EQ(wrapped("of TEXT:{aa,bb,cc}", 10), (Lines{"of", "TEXT:{aa,", "bb,cc}"}));
  EXPECT_EQ(wrapped("a 123456789012 b", 6), (Lines{"a", "123456789012", "b"}));
}

TEST(HelpLine, TheMeaningStandsBesideTheNameOrBelow) {
  EXPECT_EQ(help_line("--out TEXT", "one two", 80), "  --out TEXT                  one two\n");
  const std::string column(30, ' ');
  EXPECT_EQ(help_line("--out TEXT", std::string(46, 'x') + " yy zz", 80),
            "  --out TEXT                  " + std::string(46, 'x') + " yy\n" + column + "zz\n");
  EXPECT_EQ(help_line("--a-very-long-flag TEXT=value", "one", 80),
            "  --a-very-long-flag TEXT=value\n" + column + "one\n");
  EXPECT_EQ(help_line("--flag", "", 80), "  --flag\n");
}

TEST(HelpLine, ANarrowTerminalHasNoColumns) {
  EXPECT_EQ(help_line("--out TEXT", "the run directory to make", 30),
            "  --out TEXT\n      the run directory to\n      make\n");
  EXPECT_EQ(help_line("RUN", "a run", 30), "  RUN\n      a run\n");
}

}  // namespace
}  // namespace miniqat::cli::wrapped_text_test
