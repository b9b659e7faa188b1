#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/error.h"
#include "tests/cli/in_process.h"
#include "tests/cli/tiny_task.h"

// Tables of command lines that are refused: a line each, with what the error says. `''` is an empty word, `a|b` stands
// for either, in the error `$` for the one that was taken, and ` ... ` for any text.

namespace miniqat::testing::refusals_test {

inline std::vector<std::string> split(const std::string& text, std::string_view mark) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(mark, begin)) != std::string::npos; begin = end + mark.size())
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

struct Case {
  std::string words;
  std::string error;
};

/// Those of a line of a table: one for each alternative.
inline std::vector<Case> cases_of(const std::string& line) {
  const std::vector<std::string> sides = split(line, " => ");
  if (sides.size() != 2) throw Error("not WORDS => ERROR: " + line);
  const std::size_t bar = std::min(sides[0].find('|'), sides[0].size());
  const std::size_t begin = sides[0].rfind(' ', bar) + 1, end = std::min(sides[0].find(' ', bar), sides[0].size());
  if (bar == sides[0].size()) return {{sides[0], sides[1]}};
  std::vector<Case> cases;
  for (const std::string& word : split(sides[0].substr(begin, end - begin), "|")) {
    std::string error;
    for (const char c : sides[1]) error += c == '$' ? word : std::string(1, c);
    for (const Case& one : cases_of(sides[0].substr(0, begin) + word + sides[0].substr(end) + " => " + error))
      cases.push_back(one);
  }
  return cases;
}

class RefusalsTest : public TinyTaskTest {
 protected:
  /// All lines of the table, with `before` in front of their words.
  void refuses(const std::string& before, const std::string& table) const {
    const std::set<std::filesystem::path> files = all_files();
    for (const std::string& line : split(table, "\n")) {
      if (line.empty()) continue;
      for (const Case& one : cases_of(line)) {
        SCOPED_TRACE(before + " " + one.words);
        Arguments words = before + " " + one.words;
        for (std::string& word : words)
          if (word == "''") word.clear();
        const Outcome outcome = in_process(words, place_.path());
        expect_error(outcome, 2, split(one.error, " ... "));
        EXPECT_EQ(outcome.out, "") << "nothing is announced that does not come";
        ASSERT_EQ(all_files(), files);
      }
    }
  }
  /// Of `train --config c.json` with each line's JSON in the file.
  void refuses_config(const std::string& table) const {
    for (const std::string& line : split(table, "\n")) {
      if (line.empty()) continue;
      SCOPED_TRACE(line);
      const std::size_t arrow = line.find(" => ");
      place_.write("c.json", line.substr(0, arrow));
      refuses("train --config c.json", line.substr(arrow));
    }
  }

 private:
  std::set<std::filesystem::path> all_files() const {
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place_.path())) files.insert(entry.path());
    return files;
  }
};

}  // namespace miniqat::testing::refusals_test
