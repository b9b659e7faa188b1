// The program on a terminal: lines that are written over, as wide as it is now.

#include "tests/cli/terminal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "tests/cli/tiny_task.h"

namespace miniqat::testing::terminal_test {
namespace {

class TerminalTest : public TinyTaskTest {};

/// The bars that were drawn from `begin` on, each in a line; the lines on epochs between them stay on the terminal.
std::string bars(const std::string& drawn, std::size_t begin) {
  std::string found;
  for (std::size_t at = drawn.find("\r[", begin); at != std::string::npos; at = drawn.find("\r[", at + 1)) {
    const std::size_t end = drawn.find_first_of("\r\n", at + 1);
    // The last one may not be whole yet.
    if (end != std::string::npos) found += drawn.substr(at + 1, end - at - 1) + "\n";
  }
  return found;
}

/// Whether three bars were drawn from `begin` on.
bool has_bars(const std::string& drawn, std::size_t begin) { return std::ranges::count(bars(drawn, begin), '\n') > 2; }

TEST_F(TerminalTest, TheProgressFitsAlsoWhenTheTerminalIsResized) {
  Arguments line = train_command("run");
  line.insert(line.end(), {"--steps", "1000000", "--log-every", "1000000"});
  ProgramOnTerminal program(line, place_.path(), 100);
  const auto drawn_at = [&](int columns) {
    program.resize(columns);
    // The drawing that is under way may have the width of before.
    const std::size_t from = program.wait_for([](const std::string&) { return true; }).size();
    const std::size_t settled = program.wait_for([&](const std::string& all) { return has_bars(all, from); }).size();
    const std::string& all = program.wait_for([&](const std::string& now) { return has_bars(now, settled); });
    return bars(all, settled);
  };
  const std::string wide = drawn_at(100), usual = drawn_at(80), narrow = drawn_at(60);
  EXPECT_GT(widest_drawing(wide), 79u) << wide;
  EXPECT_LT(widest_drawing(usual), 80u) << usual;
  expect_text(usual, {"  epoch "});
  EXPECT_LT(widest_drawing(narrow), 60u) << narrow;
  expect_text(narrow, {" left"});
  EXPECT_EQ(narrow.find(" images/s"), std::string::npos) << narrow;
  program.send(SIGINT);
  program.wait();
}

TEST_F(TerminalTest, LongNamesInALineThatIsWrittenOverLoseTheirMiddle) {
  expect_success(train("float", "--float"));
  ProgramOnTerminal program("sensitivity float --out table --threads 1", place_.path(), 30);
  const std::string drawn = program.wait();
  const std::size_t first = drawn.find("\revaluation "), last = drawn.rfind("\revaluation ");
  ASSERT_NE(first, last) << drawn;
  EXPECT_LT(widest_drawing(drawn.substr(first, last - first)), 30u) << drawn;
}

TEST_F(TerminalTest, NothingIsWrittenOverWhereThereIsNoTerminal) {
  for (const Outcome& outcome : {train("float", "--float"), program("sensitivity float --out table --threads 1"),
                                 program("report float --out page.html")}) {
    expect_success(outcome);
    EXPECT_EQ(outcome.out.find_first_of("\r\x1b"), std::string::npos) << outcome.out;
  }
}

TEST_F(TerminalTest, HelpIsAsWideAsTheTerminal) {
  for (const int columns : {60, 80, 120}) {
    for (const Arguments& line : {Arguments("--help"), {"train", "--help-all"}, {"quantize", "--help"}}) {
      const std::string drawn = ProgramOnTerminal(line, place_.path(), columns).wait();
      EXPECT_LE(widest_drawing(drawn), static_cast<std::size_t>(columns)) << drawn;
      EXPECT_GT(widest_drawing(drawn), static_cast<std::size_t>(columns) * 4 / 5) << drawn;
    }
  }
}

TEST_F(TerminalTest, TablesOfTheFirstDayFit) {
  const std::string models = ProgramOnTerminal({"models"}, place_.path(), 80).wait();
  EXPECT_LE(widest_drawing(models), 80u) << models;
  EXPECT_NE(models.find("LeNet-5 with"), std::string::npos);
  const Outcome inspected = program({"inspect", "tiny.json"});
  expect_success(inspected);
  EXPECT_EQ(inspected.out.find(" \n"), std::string::npos) << "blanks that a narrow terminal shows as lines";
}

}  // namespace
}  // namespace miniqat::testing::terminal_test
