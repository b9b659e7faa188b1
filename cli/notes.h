#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "core/text/quote.h"
#include "datasets/dataset.h"

namespace miniqat::cli {

/// A text of the library for a user who typed flags: settings, which the library names as `per_channel`, become
/// --per-channel. Other words in back-quotes stay.
std::string with_flags(const std::string& text);

/// Prints a note on stderr, unless it is "". A command that fails prints only the error: notes come after the steps
/// that may fail.
inline void print_note(const std::string& note) {
  if (!note.empty()) std::fprintf(stderr, "%s\n", printable(with_flags(note)).c_str());
}

/// Prints each, after the name of what they are `of` if there is more than one such thing.
inline void print_notes(const std::vector<std::string>& notes, const std::string& of = {}) {
  for (const std::string& note : notes) print_note(of.empty() || note.empty() ? note : of + ": " + note);
}

/// Prints what the readers of the data left out or changed.
inline void print_file_notes(const datasets::FileRemarks& remarks) { print_notes(remarks.notes); }

/// Prints the notes of a part of the data.
inline void print_file_notes(const datasets::Dataset& part) {
  if (part.remarks) print_file_notes(*part.remarks);
}

/// Prints "who: text" to stderr, with_flags() and without control characters: errors show what files and the command
/// line hold, none of which may reach the terminal as it is. Of several ranks that fail alike the first speaks, and its
/// end is the others'; only if it does not fail they speak, after some seconds.
void print_error(const std::string& who, const std::string& text);

}  // namespace miniqat::cli
