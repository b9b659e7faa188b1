#include "cli/display/text_table.h"

#include <algorithm>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/utf8.h"

namespace miniqat::cli {

std::string name_cell(std::string_view name) {
  constexpr std::size_t kMostColumns = 40;
  return utf8::fitted(printable(name), kMostColumns);
}

std::string aligned(const std::vector<TableLine>& lines, std::size_t left) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const TableLine& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], utf8::columns(line[i]));
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
