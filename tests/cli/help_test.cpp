// `--help` of every command: its width, and what of a long list comes first.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>

#include "core/text/utf8.h"
#include "tests/cli/program.h"

namespace miniqat::testing::help_test {
namespace {

const std::vector<std::string> kCommands = {
    "train", "calibrate", "quantize", "reestimate", "sensitivity", "eval",   "predict", "import", "rewrite",
    "run",   "inspect",   "runs",     "report",     "models",      "export", "verify",  "bench",  "completion"};

std::string help_of(const Arguments& line) { return expect_success(miniqat(line)).out; }

std::set<std::string> flags_in(const std::string& help) {
  static const std::regex kFlag("^  (?:-.,)?(--[a-z0-9-]+)");
  std::set<std::string> flags;
  std::istringstream lines(help);
  std::smatch match;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_search(line, match, kFlag)) flags.insert(match[1]);
  return flags;
}

void expect_within(const std::string& help, std::size_t columns) {
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(utf8::columns(line), columns) << line;
}

class Help : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("COLUMNS"); }
};

TEST_F(Help, OfEachCommandIsNoWiderThanItsReadersHaveColumns) {
  unsetenv("COLUMNS");
  for (const std::string& command : kCommands) expect_within(help_of({command, "--help-all"}), 80);
  expect_within(help_of({"--help"}), 80);
  for (const std::size_t columns : {60, 100}) {
    setenv("COLUMNS", std::to_string(columns).c_str(), 1);
    for (const std::string command : {"train", "export", "bench"})
      expect_within(help_of({command, "--help-all"}), columns);
    expect_within(help_of({"--help"}), columns);
  }
  unsetenv("COLUMNS");
  expect_text(help_of({"--help"}), {"\n  MINIQAT_DATA_DIR            where data sets are, without --data-dir\n"});
  setenv("COLUMNS", "no number", 1);
  expect_within(help_of({"--help"}), 80);
}

TEST_F(Help, OfATrainingHasGroupsAndWhatAFirstWeekNeeds) {
  const std::string first = help_of({"train", "--help"}), all = help_of({"train", "--help-all"});
  std::size_t before = 0;
  for (const char* heading : {"\nData:\n", "\nNetwork:\n", "\nBits and ranges:\n", "\nSchedule:\n", "\nThe run:\n"}) {
    const std::size_t place = first.find(heading);
    ASSERT_NE(place, std::string::npos) << heading;
    EXPECT_LT(before, place) << heading;
    expect_text(all, {heading});
    before = place;
  }
  const std::set<std::string> few = flags_in(first), many = flags_in(all);
  // Twenty, --help and --help-all.
  EXPECT_EQ(few.size(), 22u) << first;
  EXPECT_GT(many.size(), 60u);
  EXPECT_TRUE(std::ranges::includes(many, few));
  for (const char* flag : {"--dataset", "--model", "--weight-bits", "--epochs", "--out", "--resume"})
    EXPECT_TRUE(few.contains(flag)) << flag;
  for (const char* flag : {"--ema-decay", "--profile", "--nesterov", "--stop-at"}) {
    EXPECT_FALSE(few.contains(flag)) << flag;
    EXPECT_TRUE(many.contains(flag)) << flag;
  }
  expect_text(first, {std::to_string(many.size() - few.size()) + " more flags: miniqat train --help-all"});
  EXPECT_EQ(all.find(" more flags"), std::string::npos);
  EXPECT_LT(std::ranges::count(first, '\n'), 60);
}

TEST_F(Help, OfShortListsIsWhole) {
  for (const std::string command : {"eval", "runs", "models"}) {
    const std::string first = help_of({command, "--help"});
    EXPECT_EQ(help_of({command, "--help-all"}), first);
    EXPECT_EQ(first.find("--help-all"), std::string::npos) << first;
  }
}

TEST_F(Help, TheVersionHasAShortFlag) {
  const std::string version = help_of({"--version"});
  EXPECT_TRUE(version.starts_with("miniqat ")) << version;
  EXPECT_EQ(help_of({"-V"}), version);
}

}  // namespace
}  // namespace miniqat::testing::help_test
