#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace miniqat::cli {

/// The columns of the terminal that the stream writes to, as wide as it is now: people resize it. Of a terminal that
/// does not tell, $COLUMNS or else 80. None where the stream writes to a file or a pipe.
std::optional<std::size_t> terminal_columns(std::FILE* file);

/// The columns for text that people read, --help say: $COLUMNS, or those of stdout's terminal, or of stderr's where
/// stdout goes through a pager, or else 80. At least 20.
std::size_t text_columns();

/// The line on a terminal that says how something gets on and is written over. Nowhere else is anything written: files
/// and pipes get no lines that are out of date as soon as they are there. It never wraps, as a second line would stay:
/// the terminal is asked for its width at each drawing.
class ProgressLine {
 public:
  /// stdout or stderr.
  explicit ProgressLine(std::FILE* file);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;

  bool on_terminal() const { return terminal_; }
  /// The columns that a line may have now. Behind the last column a terminal may begin another line, so it stays free.
  std::size_t columns() const;
  /// Writes over what was shown before. A text of more than columns() is shown without its middle.
  void show(const std::string& text);
  /// Takes the line away, so that another can be printed in its place.
  void clear();

 private:
  std::FILE* const file_;
  const bool terminal_;
  bool shown_ = false;
};

/// The text in lines of at most `width` columns, broken at blanks. Line breaks of the text stay, and the blanks behind
/// them indent what the line becomes. A word that is wider than a line is broken behind a comma, and stands out where
/// it has none.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// A line of --help of at most `width` columns: a name and, in a column of its own or on the next line, what it means.
/// `width` must be at least 20.
std::string help_line(const std::string& name, const std::string& text, std::size_t width);

using TableLine = std::vector<std::string>;

/// Lines of equally many cells, two spaces apart. The first `left` columns begin at the left, the others end at the
/// right. Widths are columns of a terminal.
std::string aligned(const std::vector<TableLine>& lines, std::size_t left);

/// Takes the middle out of cells of the columns with these numbers, of the widest first, until the lines of aligned()
/// have at most `width` columns; no cell gets less than 8.
void fit(std::vector<TableLine>& lines, std::size_t width, std::span<const std::size_t> soft);

/// A name from a file: printable, of at most 40 columns, a longer one without its middle.
std::string name_cell(std::string_view name);

}  // namespace miniqat::cli
