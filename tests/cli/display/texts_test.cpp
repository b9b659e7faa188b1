// Tables, lines of progress and wrapped text.

#include <gtest/gtest.h>

#include <vector>

#include "cli/display/run_display.h"
#include "cli/display/terminal.h"
#include "tests/cli/program.h"

namespace miniqat::cli::texts_test {
namespace {

using Steps = std::vector<std::int64_t>;

/// The steps that get a line in a run whose steps take so long.
Steps printed(std::int64_t total, std::int64_t steps_per_epoch, std::chrono::milliseconds a_step) {
  StepLines lines;
  Steps steps;
  for (std::int64_t step = 1; step <= total; ++step)
    if (lines.is_due(step, total, steps_per_epoch, StepLines::Time(a_step * step))) steps.push_back(step);
  return steps;
}

TEST(StepLines, ALongRunHasFourAnEpoch) {
  EXPECT_EQ(printed(16, 8, std::chrono::seconds(2)), (Steps{2, 4, 6, 8, 10, 12, 14, 16}));
  EXPECT_EQ(printed(14, 7, std::chrono::seconds(2)), (Steps{2, 4, 6, 8, 10, 12, 14}));
  EXPECT_EQ(printed(3, 1, std::chrono::seconds(2)), (Steps{1, 2, 3}));
}

TEST(StepLines, AShortRunHasOneASecondAndTheLast) {
  EXPECT_EQ(printed(5000, 8, std::chrono::milliseconds(1)), (Steps{2, 1002, 2002, 3002, 4002, 5000}));
  EXPECT_EQ(printed(12, 1, std::chrono::milliseconds(1)), (Steps{1, 12}));
}

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

using testing::expect_text;

const training::StepReport kReport = {
    .step = 469, .total_steps = 4690, .epoch = 1, .loss = 0.12345, .images_per_second = 12345.4, .seconds_left = 65};

TEST(TrainProgress, AWideTerminalShowsAll) {
  EXPECT_EQ(progress_text(kReport, 200),
            "[##......................] 469/4690  epoch 1.00  loss 0.1235  12345 images/s  1:05 left");
}

TEST(TrainProgress, WithLessRoomTheBarIsShorterAndThenLessIsSaid) {
  EXPECT_EQ(progress_text(kReport, 79),
            "[#...............] 469/4690  epoch 1.00  loss 0.1235  12345 images/s  1:05 left");
  EXPECT_EQ(progress_text(kReport, 59), "[#...........] 469/4690  epoch 1.00  loss 0.1235  1:05 left");
  EXPECT_EQ(progress_text(kReport, 50), "[#..............] 469/4690  loss 0.1235  1:05 left");
  EXPECT_EQ(progress_text(kReport, 40), "469/4690  loss 0.1235  1:05 left");
  EXPECT_EQ(progress_text(kReport, 20), "469/4690  1:05 left");
}

TEST(TrainProgress, FitsFromTheWidthOfStepsAndTimeOn) {
  training::StepReport large = kReport;
  large.step = large.total_steps = 123'456'789;
  large.epoch = 12345.678;
  large.loss = 1e9;
  large.seconds_left = 1e6;
  for (std::size_t columns = 40; columns < 200; ++columns)
    for (const training::StepReport& report : {kReport, large}) {
      const std::string text = progress_text(report, columns);
      EXPECT_LE(text.size(), columns) << text;
      expect_text(text, {" left"});
    }
}

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
}  // namespace miniqat::cli::texts_test
