#pragma once

#include <cstdio>
#include <string>

#include "cli/with_flags.h"
#include "core/text/quote.h"

namespace miniqat::cli {

/// Prints a note on stderr, unless it is "". A command that fails prints only the error: notes come after the steps
/// that may fail.
inline void print_note(const std::string& note) {
  if (!note.empty()) std::fprintf(stderr, "%s\n", printable(with_flags(note)).c_str());
}

}  // namespace miniqat::cli
