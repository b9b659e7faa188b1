#include "cli/display/progress_line.h"

#include <unistd.h>

namespace miniqat::cli {

ProgressLine::ProgressLine(std::FILE* file) : file_(file), terminal_(isatty(fileno(file)) != 0) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(const std::string& text) {
  if (!terminal_) return;
  std::fprintf(file_, "\r%s\x1b[K", text.c_str());
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
