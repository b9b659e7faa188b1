#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace miniqat::cli {

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

}  // namespace miniqat::cli
