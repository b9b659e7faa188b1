#pragma once

#include "cli/display/print_note.h"
#include "datasets/dataset.h"

namespace miniqat::cli {

/// Prints what the readers of the data left out or changed.
inline void print_file_notes(const datasets::FileRemarks& remarks) {
  for (const std::string& note : remarks.notes) print_note(note);
}

/// Prints the notes on the files of a part of the data.
inline void print_file_notes(const datasets::Dataset& part) {
  if (part.remarks) print_file_notes(*part.remarks);
}

}  // namespace miniqat::cli
