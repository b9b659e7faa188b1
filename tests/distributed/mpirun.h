#pragma once

#include "tests/cli/program.h"

namespace miniqat::testing {

/// Whether there is an mpirun, and this build has its module for MPI.
bool has_mpirun();

/// A program's path and arguments, started as so many ranks, even if there are fewer cores.
Program mpirun(int ranks, const Arguments& line, const std::filesystem::path& directory = {});

}  // namespace miniqat::testing
