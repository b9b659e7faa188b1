#pragma once

namespace miniqat::cli {

/// The program `miniqat`: parses the command line and runs its command. Errors go to stderr, as a line in the user's
/// words. Returns the exit status: 0, 1 after a failure, 2 where the command line is wrong.
int main_program(int argc, char** argv);

}  // namespace miniqat::cli
