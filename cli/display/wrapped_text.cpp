#include "cli/display/wrapped_text.h"

#include <algorithm>
#include <sstream>

#include "core/text/error.h"
#include "core/text/utf8.h"

namespace miniqat::cli {
namespace {

/// Adds a word to the last line, or begins another.
void add_word(std::vector<std::string>& lines, std::string_view word, std::size_t width) {
  const std::size_t used = utf8::columns(lines.back()), gap = used > 0 ? 1 : 0;
  if (used + gap + utf8::columns(word) <= width) {
    lines.back() += concat(gap > 0 ? " " : "", word);
    return;
  }
  if (utf8::columns(word) > width && used + gap + 1 < width) {
    const std::size_t comma = word.substr(0, width - used - gap).rfind(',');
    if (comma != std::string_view::npos) {
      lines.back() += concat(gap > 0 ? " " : "", word.substr(0, comma + 1));
      lines.emplace_back();
      return add_word(lines, word.substr(comma + 1), width);
    }
  }
  if (used == 0) {
    lines.back() = word;
    return;
  }
  lines.emplace_back();
  add_word(lines, word, width);
}

/// Wraps a line without breaks.
std::vector<std::string> wrapped_line(std::string_view line, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end > 0) add_word(lines, line.substr(0, end), width);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return lines;
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> all;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    // What goes on stands a little further to the right.
    const std::size_t indent = std::min(line.find_first_not_of(' '), width / 4);
    const std::size_t more = indent > 0 ? 2 : 0;
    std::size_t before = indent;
    for (const std::string& part : wrapped_line(line, width - indent - more)) {
      all.push_back(std::string(part.empty() ? 0 : before, ' ') + part);
      before = indent + more;
    }
  }
  if (all.empty()) all.emplace_back();
  return all;
}

std::string help_line(const std::string& name, const std::string& text, std::size_t width) {
  constexpr std::size_t kIndent = 2, kColumn = 30, kNarrow = 72;
  // A column of its own would leave little of a narrow terminal.
  const std::size_t column = width < kNarrow ? 3 * kIndent : kColumn;
  const std::vector<std::string> names = wrapped(name, width - 2 * kIndent);
  std::string result;
  for (const std::string& line : names)
    result += concat(result.empty() ? "" : "\n", std::string(result.empty() ? kIndent : 2 * kIndent, ' '), line);
  if (text.empty()) return result + "\n";
  const std::vector<std::string> lines = wrapped(text, width - column);
  const bool beside = width >= kNarrow && result.size() < column && names.size() == 1;
  result += beside ? std::string(column - result.size(), ' ') : "\n" + std::string(column, ' ');
  for (std::size_t i = 0; i < lines.size(); ++i)
    result += concat(i == 0 ? "" : "\n" + std::string(lines[i].empty() ? 0 : column, ' '), lines[i]);
  return result + "\n";
}

}  // namespace miniqat::cli
