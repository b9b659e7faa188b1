#pragma once

#include <cstdio>
#include <string>

#include "cli/with_flags.h"
#include "core/text/quote.h"
#include "datasets/dataset.h"

namespace miniqat::cli {

/// Prints a note on stderr, unless it is "". A command that fails prints only the error: notes come after the steps
/// that may fail.
inline void print_note(const std::string& note) {
  if (!note.empty()) std::fprintf(stderr, "%s\n", printable(with_flags(note)).c_str());
}

/// The same for what the readers of the data left out or changed.
inline void print_file_notes(const datasets::FileRemarks& remarks) {
  for (const std::string& note : remarks.notes) print_note(note);
}

}  // namespace miniqat::cli
