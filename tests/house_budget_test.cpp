// The budget of the house: how many lines each room may have (tests/budget.txt).

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/house_files.h"
#include "tests/source_dir.h"

namespace miniqat::house_test {
namespace {

/// Lines of code by room, from lines "room lines", and "room +lines reason" for each raise; '#' begins a comment.
/// Whatever is wrong with a line becomes a failure.
std::map<std::string, std::int64_t> read_budget(const std::vector<std::string>& lines) {
  std::map<std::string, std::int64_t> budget;
  for (const std::string& line : lines) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string room, count, reason;
    words >> room >> count >> reason;
    const bool raises = count.starts_with('+');
    const bool is_number = count.find_first_not_of("0123456789", raises ? 1 : 0) == std::string::npos;
    EXPECT_TRUE(is_number && count.size() > (raises ? 1 : 0)) << "no number of lines: " << line;
    EXPECT_EQ(raises, budget.contains(room)) << "a room has one number, and raises after it: " << line;
    EXPECT_EQ(raises, !reason.empty()) << "a raise says why, a room's number does not: " << line;
    if (is_number && !count.empty()) budget[room] += std::stoll(count);
  }
  return budget;
}

TEST(Budget, RaisesSayWhy) {
  const std::map<std::string, std::int64_t> budget = read_budget({"# lines", "core 100", "core +20 a new kernel"});
  EXPECT_EQ(budget.at("core"), 120);
  EXPECT_NONFATAL_FAILURE(read_budget({"core 100", "core +20"}), "a raise says why");
  EXPECT_NONFATAL_FAILURE(read_budget({"core 100", "core 120"}), "a room has one number");
  EXPECT_NONFATAL_FAILURE(read_budget({"core lots"}), "no number of lines");
}

/// Rooms neither grow beyond their lines nor keep lines that they no longer need. (.ci/run sees numbers that rise.)
TEST(Budget, RoomsKeepTheirLines) {
  // A change that saves a few lines may leave the budget alone.
  constexpr std::int64_t kSpare = 20;
  std::map<std::string, std::int64_t> budget = read_budget(lines_of(source_dir() / "tests/budget.txt"));
  for (const std::string& room : top_entries()) {
    if (room.starts_with('.')) continue;
    for (const auto& [name, files] : {std::pair(room, sources(room)), std::pair(room + "/scripts", scripts(room))}) {
      std::int64_t lines = 0;
      for (const std::filesystem::path& file : files) lines += std::ssize(lines_of(file));
      if (lines == 0) continue;
      const std::int64_t most = budget[name];
      EXPECT_LE(lines, most) << name << " grew: make room, or raise it in tests/budget.txt by a line that says why: \""
                             << name << " +" << lines - most << " ...\"";
      EXPECT_GE(lines + kSpare, most) << name << " became smaller: lower its number in tests/budget.txt by "
                                      << most - lines;
      budget.erase(name);
    }
  }
  for (const auto& [room, lines] : budget)
    ADD_FAILURE() << "tests/budget.txt has lines for " << room << ", which has no sources";
}

}  // namespace
}  // namespace miniqat::house_test
