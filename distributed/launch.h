#pragma once

#include <memory>

#include "distributed/communicator.h"

namespace miniqat::distributed {

/// How many ranks a launcher (mpirun, mpiexec, srun) started this program as; 1 without one. Looks at the environment
/// only. Throws Error if srun started several tasks without an interface for MPI.
int launched_ranks();

/// The ranks of this run over MPI, or null if there is one rank only: then no MPI library is loaded. Loads
/// miniqat_mpi.so, which lies beside the program's libraries. Throws Error, which says what to do, if this program was
/// built without MPI or if the launcher belongs to another MPI.
std::unique_ptr<Communicator> open_ranks();

}  // namespace miniqat::distributed
