#include "cli/display/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/utf8.h"

namespace miniqat::cli {
namespace {

constexpr std::size_t kUsualColumns = 80;

/// $COLUMNS.
std::optional<std::size_t> columns_asked_for() {
  const char* const text = std::getenv("COLUMNS");
  const std::string_view all = text == nullptr ? "" : text;
  std::size_t columns = 0;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), columns);
  const bool is_number = error == std::errc() && end == all.data() + all.size();
  return is_number && columns > 0 ? std::optional(columns) : std::nullopt;
}

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

std::optional<std::size_t> terminal_columns(std::FILE* file) {
  const int stream = fileno(file);
  if (isatty(stream) == 0) return {};
  winsize size{};
  const bool told = ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return told ? size.ws_col : columns_asked_for().value_or(kUsualColumns);
}

std::size_t text_columns() {
  constexpr std::size_t kFewest = 20;
  std::optional<std::size_t> columns = columns_asked_for();
  if (!columns) columns = terminal_columns(stdout);
  if (!columns) columns = terminal_columns(stderr);
  return std::max(columns.value_or(kUsualColumns), kFewest);
}

ProgressLine::ProgressLine(std::FILE* file) : file_(file), terminal_(isatty(fileno(file)) != 0) {}

ProgressLine::~ProgressLine() { clear(); }

std::size_t ProgressLine::columns() const {
  // utf8::fitted() needs some.
  constexpr std::size_t kFewest = 6;
  return std::max(terminal_columns(file_).value_or(0), kFewest) - 1;
}

void ProgressLine::show(const std::string& text) {
  if (!terminal_) return;
  std::fprintf(file_, "\r%s\x1b[K", utf8::fitted(text, columns()).c_str());
  std::fflush(file_);
  shown_ = true;
}

void ProgressLine::clear() {
  if (!shown_) return;
  std::fprintf(file_, "\r\x1b[K");
  std::fflush(file_);
  shown_ = false;
}

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

std::string name_cell(std::string_view name) {
  constexpr std::size_t kMostColumns = 40;
  return utf8::fitted(printable(name), kMostColumns);
}

namespace {

std::vector<std::size_t> widths_of(const std::vector<TableLine>& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const TableLine& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], utf8::columns(line[i]));
  return widths;
}

}  // namespace

void fit(std::vector<TableLine>& lines, std::size_t width, std::span<const std::size_t> soft) {
  constexpr std::size_t kLeast = 8;
  std::vector<std::size_t> widths = widths_of(lines);
  std::size_t all = 2 * (widths.size() - 1);
  for (const std::size_t one : widths) all += one;
  const auto width_of = [&](std::size_t column) { return widths[column]; };
  for (; all > width; --all) {
    const std::size_t widest = *std::ranges::max_element(soft, {}, width_of);
    if (widths[widest] <= kLeast) break;
    --widths[widest];
  }
  for (TableLine& line : lines)
    for (const std::size_t column : soft) line[column] = utf8::fitted(line[column], std::max(widths[column], kLeast));
}

std::string aligned(const std::vector<TableLine>& lines, std::size_t left) {
  const std::vector<std::size_t> widths = widths_of(lines);
  std::string text;
  for (const TableLine& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      // Nothing comes after the last.
      const bool is_last = i < left && i + 1 == line.size();
      const std::string room(is_last ? 0 : widths[i] - utf8::columns(line[i]), ' ');
      text += concat(i == 0 ? "" : "  ", i < left ? line[i] + room : room + line[i]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace miniqat::cli
