#pragma once

#include <string>

#include "cli/flags/command_line.h"

namespace miniqat::cli {

/// Completion of the program's commands, flags, choices and files as a script for bash: a function `_miniqat`,
/// registered for `miniqat`.
std::string bash_completion(const ProgramDescription& program);

/// A completion script for zsh: a file `_miniqat` of its completion folders.
std::string zsh_completion(const ProgramDescription& program);

/// A completion script for fish: a file `miniqat.fish` of its completion folders.
std::string fish_completion(const ProgramDescription& program);

}  // namespace miniqat::cli
