#pragma once

#include "tests/cli/program.h"

namespace miniqat::testing {

/// Whether there is an mpirun, and this build has its module for MPI.
bool has_mpirun();

/// The command line that starts a program, given by its path and arguments, as so many ranks, even if there are fewer
/// cores. Sets what mpirun wants to find in the environment.
Arguments mpirun_line(int ranks, const Arguments& line);

/// A program's path and arguments, started so.
Program mpirun(int ranks, const Arguments& line, const std::filesystem::path& directory = {});

}  // namespace miniqat::testing
