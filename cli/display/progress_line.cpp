#include "cli/display/progress_line.h"

#include <unistd.h>

#include <algorithm>

#include "cli/display/terminal_width.h"
#include "core/text/utf8.h"

namespace miniqat::cli {

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

}  // namespace miniqat::cli
