// The course (docs/course) holds together: its pages lead to each other, to headings and to code that there is, its
// terms are in the glossary, its figures are shown, and its numbers are in the output of a command.
// experiments/course-figures --check runs the commands.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/source_dir.h"

namespace {

namespace fs = std::filesystem;

const fs::path kCourse = miniqat::source_dir() / "docs/course";

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> files(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ending) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

/// The pages with a number, in their order.
std::vector<fs::path> numbered_pages() {
  std::vector<fs::path> pages = files(kCourse, ".md");
  std::erase_if(pages, [](const fs::path& page) { return std::isdigit(page.filename().string()[0]) == 0; });
  return pages;
}

/// All matches of a pattern: their first group, or with two groups both, joined by a blank.
std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), expression); match != std::sregex_iterator(); ++match)
    found.push_back((*match)[1].str() + (match->size() > 2 ? " " + (*match)[2].str() : ""));
  return found;
}

/// A page in two parts: what is said, and what is typed and printed.
struct Parts {
  std::string prose, blocks;
};

Parts parts_of(const fs::path& page) {
  Parts parts;
  std::istringstream lines(text_of(page));
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```"))
      inside = !inside;
    else
      (inside ? parts.blocks : parts.prose) += line + '\n';
  }
  EXPECT_FALSE(inside) << page << " has a block without an end";
  return parts;
}

bool has_word(const std::string& text, const std::string& word) {
  return std::regex_search(text, std::regex("\\b" + word + "\\b"));
}

TEST(Course, PagesLeadFromFrontToBack) {
  const std::vector<fs::path> pages = numbered_pages();
  ASSERT_EQ(pages.size(), 8u);
  const std::string contents = text_of(kCourse / "README.md");
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const std::string name = pages[i].filename();
    EXPECT_EQ(name.front(), static_cast<char>('1' + i));
    EXPECT_NE(contents.find("](" + name + ")"), std::string::npos) << "the contents leave out " << name;
    const std::string text = text_of(pages[i]);
    const std::string next = i + 1 < pages.size() ? pages[i + 1].filename().string() : "README.md";
    EXPECT_NE(text.rfind("](" + next + ")"), std::string::npos) << name << " does not lead to " << next;
    EXPECT_NE(text.find("](../../labs/"), std::string::npos) << name << " names no lab";
  }
}

/// The anchor that GitHub gives a heading: "## From one equation" is #from-one-equation.
std::set<std::string> anchors(const fs::path& page) {
  std::set<std::string> found;
  for (const std::string& heading : matches("\n" + parts_of(page).prose, R"(\n#+ ([^\n]+))")) {
    std::string anchor;
    for (const char c : std::regex_replace(heading, std::regex(R"(\]\([^)]*\))"), "]")) {
      const bool is_ascii = static_cast<unsigned char>(c) < 128;
      if (c == ' ')
        anchor += '-';
      else if (!is_ascii || c == '-' || c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0)
        anchor += static_cast<char>(is_ascii ? std::tolower(c) : c);
    }
    found.insert(anchor);
  }
  return found;
}

TEST(Course, LinksLeadToHeadings) {
  std::size_t checked = 0;
  for (const fs::path& page : files(kCourse, ".md"))
    for (const std::string& link : matches(text_of(page), R"(\]\(([\w./-]*#[\w-]+)\))")) {
      const std::string file = link.substr(0, link.find('#'));
      const fs::path target = file.empty() ? page : page.parent_path() / file;
      EXPECT_TRUE(anchors(target).contains(link.substr(link.find('#') + 1))) << page << " links to " << link;
      ++checked;
    }
  EXPECT_GT(checked, 15u);
}

TEST(Course, EachPageSaysWhereToLookInTheCode) {
  for (const fs::path& page : numbered_pages()) {
    const std::string text = text_of(page);
    const std::size_t section = text.find("\n## Where to look in the code\n");
    ASSERT_NE(section, std::string::npos) << page;
    EXPECT_EQ(text.find("\n## ", section + 1), std::string::npos) << page << ": it is the last section";
    const std::vector<std::string> rows = matches(text.substr(section), R"(\n\| `([^`]+)` \| `([^`]+)` \|)");
    EXPECT_GE(rows.size(), 4u) << page;
    for (const std::string& row : rows) {
      const std::string file = row.substr(0, row.find(' ')), symbol = row.substr(row.find(' ') + 1);
      EXPECT_TRUE(has_word(text_of(miniqat::source_dir() / file), symbol))
          << page << ": " << file << " has no " << symbol;
    }
  }
}

/// **Term** where it is first used: "**The accumulator** ..." and "it **oscillates**" are the glossary's "accumulator"
/// and "oscillate".
TEST(Course, TermsAreInTheGlossary) {
  const std::string glossary = text_of(kCourse / "glossary.md");
  const std::vector<std::string> rows = matches(glossary, R"(\n\| ([^|]+) \| )");
  const std::set<std::string> terms(rows.begin() + 1, rows.end());
  for (const std::string& file : matches(glossary, R"(`([\w/.]+)` \|\n)"))
    EXPECT_TRUE(fs::exists(miniqat::source_dir() / file)) << file;
  std::vector<std::string> in_order(rows.begin() + 1, rows.end());
  const auto lower = [](std::string word) {
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return word;
  };
  EXPECT_TRUE(std::ranges::is_sorted(in_order, {}, lower));
  std::set<std::string> known;
  for (const std::string& term : terms) known.insert(lower(term));
  std::size_t checked = 0;
  for (const fs::path& page : numbered_pages())
    for (std::string term : matches(parts_of(page).prose, R"(\*\*([^*]+)\*\*)")) {
      if (term.ends_with('.')) continue;  // "**Question.**" is no term.
      std::ranges::replace(term, '\n', ' ');
      term = lower(term);
      if (term.starts_with("the ")) term = term.substr(4);
      const std::string single = term.ends_with('s') ? term.substr(0, term.size() - 1) : term;
      EXPECT_TRUE(known.contains(term) || known.contains(single)) << page << ": the glossary lacks " << term;
      ++checked;
    }
  EXPECT_GT(checked, 25u);
}

TEST(Course, FiguresAreShown) {
  std::string all;
  for (const fs::path& page : numbered_pages()) {
    const std::string text = text_of(page);
    EXPECT_FALSE(matches(text, R"(\]\((figures/[\w-]+\.svg)\))").empty()) << page << " has no figure";
    all += text;
  }
  const std::vector<fs::path> figures = files(kCourse / "figures", ".svg");
  EXPECT_GE(figures.size(), 14u);
  for (const fs::path& figure : figures) {
    EXPECT_NE(all.find("](figures/" + figure.filename().string() + ")"), std::string::npos)
        << figure << " is shown nowhere";
    EXPECT_TRUE(text_of(figure).ends_with("</svg>\n")) << figure;
  }
}

/// What a page says with two or more decimals, a command of the course has printed.
TEST(Course, NumbersArePrinted) {
  std::string printed;
  std::vector<fs::path> pages = numbered_pages();
  pages.push_back(kCourse / "lecture.md");
  for (const fs::path& page : pages) printed += parts_of(page).blocks;
  for (const fs::path& figure : files(kCourse / "figures", ".svg"))
    for (const std::string& words : matches(text_of(figure), R"(<text[^>]*>([^<]*)</text>)")) printed += words + '\n';
  // The example on the board is lab 1's, whose own test computes it.
  printed += text_of(miniqat::source_dir() / "labs/01-scale-and-zero-point/README.md");
  std::size_t checked = 0;
  for (const fs::path& page : pages) {
    const std::string prose = std::regex_replace(parts_of(page).prose, std::regex(R"(\]\([^)]*\))"), "]");
    for (const std::string& number : matches(prose, R"((\d+\.\d\d+))")) {
      EXPECT_TRUE(printed.find(number) != std::string::npos)
          << page << " has " << number << ", which no command printed";
      ++checked;
    }
  }
  EXPECT_GT(checked, 20u);
}

}  // namespace
