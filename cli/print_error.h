#pragma once

#include <string>

namespace miniqat::cli {

/// Prints "who: text" to stderr, with flags in place of settings (with_flags.h) and without control
/// characters: errors show what files and the command line hold, none of
/// which may reach the terminal as it is. Of several ranks that fail alike the first speaks, and its end is the
/// others'; only if it does not fail they speak, after some seconds.
void print_error(const std::string& who, const std::string& text);

}  // namespace miniqat::cli
