// House rules of style: how long a file or a function may get, how a comment begins, where a text may be cut.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "tests/house_files.h"

namespace miniqat::house_test {
namespace {

namespace fs = std::filesystem;

/// Whether a type begins at the margin of `line`, as clang-format lays it out.
bool begins_type(const std::string& line) {
  return line.ends_with("{") && (line.starts_with("class ") || line.starts_with("struct "));
}

/// The class of a line at the margin that begins a member function: "Graph" of `Node& Graph::add(`; "" of other lines.
std::string class_of_member(const std::string& line) {
  static const std::regex member(R"((?:[^ /(][^(]*[ &*])?(\w+)::~?\w+\(.*)");
  std::smatch found;
  return std::regex_match(line, found, member) ? found[1].str() : "";
}

/// Whether the lines are those of one class: it begins here, and no other, or most functions are members of one that
/// begins in a header.
bool is_one_class(const std::vector<std::string>& lines) {
  if (const auto types = std::ranges::count_if(lines, begins_type); types > 0) return types == 1;
  std::map<std::string, std::size_t> members;
  std::size_t functions = 0, most = 0;
  for (const FunctionLines& function : functions_of(lines)) {
    if (lines[function.begin].starts_with(' ')) continue;  // A block in a function.
    ++functions;
    if (const std::string name = class_of_member(lines[function.begin]); !name.empty())
      most = std::max(most, ++members[name]);
  }
  return 2 * most > functions;
}

TEST(House, OneClassIsSeen) {
  const std::vector<std::string> type = {"struct S {", "  int a;", "};"}, member = {"int& S::f(int a) {", "}"},
                                 function = {"std::string g() {", "}", "int a = S::b(1);"};
  const auto joined = [](const std::vector<std::vector<std::string>>& parts) {
    std::vector<std::string> lines;
    for (const auto& part : parts) lines.insert(lines.end(), part.begin(), part.end());
    return lines;
  };
  EXPECT_TRUE(is_one_class(joined({type, function, function})));
  EXPECT_TRUE(is_one_class(joined({member, function, member})));
  EXPECT_FALSE(is_one_class(joined({type, type})));
  EXPECT_FALSE(is_one_class(joined({member, function})));
  EXPECT_FALSE(is_one_class(function)) << "a collection of functions";
}

TEST(House, FilesStaySmall) {
  // One class may be longer than a collection. The whole of it in one file is one file.
  constexpr std::size_t kLongest = 400, kLongestClass = 600, kLongestWhole = 450;
  for (const fs::path& file : all_sources()) {
    const std::vector<std::string> lines = lines_of(file);
    if (lines.size() <= kLongest) continue;
    const bool whole = file.stem() == "microqat";
    EXPECT_LE(lines.size(), whole ? kLongestWhole : is_one_class(lines) ? kLongestClass : kLongest) << file;
  }
}

/// The lines at which functions begin that have more than `longest` lines in their braces.
std::vector<std::size_t> long_functions(const std::vector<std::string>& lines, std::size_t longest) {
  std::vector<std::size_t> found;
  for (const FunctionLines& function : functions_of(lines))
    if (function.end - function.brace - 1 > longest) found.push_back(function.begin);
  return found;
}

TEST(House, LongFunctionsAreSeen) {
  const std::vector<std::string> lines = {"int f(int a,", "      int b) {",  "  a;",   "  b;", "}",  "struct S {",
                                          "  S(int a)",   "      : a_(a) {", "    a;", "  }",  "};", "TEST(A, B) {",
                                          "  if (a) {",   "    b;",          "  }",    "}"};
  EXPECT_EQ(long_functions(lines, 0), (std::vector<std::size_t>{0, 6, 11, 12}));
  EXPECT_EQ(long_functions(lines, 1), (std::vector<std::size_t>{0, 11}));
  EXPECT_EQ(long_functions(lines, 2), std::vector<std::size_t>{11});
  EXPECT_TRUE(long_functions(lines, 3).empty());
}

/// A longer one says why in a comment that also tells clang-tidy: // NOLINTNEXTLINE(readability-function-size): ...
TEST(House, FunctionsStayShort) {
  constexpr std::size_t kLongest = 60;
  for (const fs::path& file : all_sources()) {
    const std::vector<std::string> lines = lines_of(file);
    for (const std::size_t begin : long_functions(lines, kLongest)) {
      bool says_why = false;
      for (std::size_t above = begin; above-- > 0 && !lines[above].empty();)
        says_why = says_why || lines[above].find("NOLINTNEXTLINE(readability-function-size): ") != std::string::npos;
      EXPECT_TRUE(says_why) << file << ":" << begin + 1 << " begins a function of more than " << kLongest << " lines";
    }
  }
}

/// Whether a line of comment begins with a word for something that stands elsewhere: "Of all calls.", "Those of it."
bool leans_on_something_else(const std::string& line) {
  static const std::vector<std::string> kWords = {
      "Of", "Those", "That", "Likewise", "Ditto", "As above", "See above", "By", "In which", "With whom", "From those"};
  const std::string text = without_indent(line);
  const std::size_t slashes = text.starts_with("/// ") ? 4 : text.starts_with("// ") ? 3 : 0;
  if (slashes == 0) return false;
  const std::string comment = text.substr(slashes) + " ";
  return std::ranges::any_of(kWords, [&](const std::string& word) {
    return comment.starts_with(word) && std::string_view(" ,.:;").find(comment[word.size()]) != std::string_view::npos;
  });
}

/// A declaration is read without what stands around it: its comment says what it is, from the first word on.
TEST(House, CommentsNameTheirSubject) {
  EXPECT_TRUE(leans_on_something_else("  /// Of a layer: real."));
  EXPECT_TRUE(leans_on_something_else("// That of the graph."));
  EXPECT_TRUE(leans_on_something_else("/// By whom: a name."));
  EXPECT_FALSE(leans_on_something_else("/// Often asked."));
  for (const fs::path& file : all_sources()) {
    if (fs::relative(file, source_dir()).string().starts_with("tests/")) continue;
    const std::vector<std::string> lines = lines_of(file);
    for (std::size_t i = 0; i < lines.size(); ++i)
      EXPECT_FALSE(leans_on_something_else(lines[i])) << file << ":" << i + 1 << " must name its subject: " << lines[i];
  }
}

/// Whether a line ends within a text that goes on in the next one. A line break, which people see, too, may part a text
/// in two literals, and so may anything without letters, as drawn digits have.
bool cuts_text(const std::string& line, const std::string& next) {
  const auto is_letter = [](unsigned char byte) { return std::isalpha(byte) != 0; };
  return line.ends_with('"') && !line.ends_with("\\n\"") && !line.starts_with('#') &&
         without_indent(next).starts_with('"') && std::ranges::any_of(line, is_letter);
}

/// A search for words of a text finds them.
TEST(House, TextsAreWhole) {
  EXPECT_TRUE(cuts_text("  fail(\"one \"", "  \"text\");"));
  EXPECT_TRUE(cuts_text("  fail(\"one\"", "  \" text\");"));
  EXPECT_FALSE(cuts_text("  fail(\"one\\n\"", "  \"text\");"));
  EXPECT_FALSE(cuts_text("  fail(\"one\",", "  \"text\");"));
  EXPECT_FALSE(cuts_text("  \"0110\"", "  \"1001\""));
  for (const fs::path& file : all_sources()) {
    if (fs::relative(file, source_dir()).string().starts_with("tests/")) continue;
    const std::vector<std::string> lines = lines_of(file);
    for (std::size_t i = 0; i + 1 < lines.size(); ++i)
      EXPECT_FALSE(cuts_text(lines[i], lines[i + 1])) << file << ":" << i + 1 << " cuts a text: " << lines[i];
  }
}

}  // namespace
}  // namespace miniqat::house_test
