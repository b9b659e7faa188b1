#pragma once

#include <string>
#include <vector>

#include "distributed/communicator.h"

namespace miniqat::distributed {

/// How many ranks a launcher (mpirun, mpiexec, srun) started this program as; 1 without one. Looks at the environment
/// only. Throws Error if srun started several tasks without an interface for MPI.
int launched_ranks();

/// The place among them; 0 without a launcher.
int launched_rank();

/// Ends all ranks that open_ranks() has opened, at once, with this exit status. Returns if there are none.
void end_ranks(int status);

/// Whether all ranks run on the machine of rank 0.
bool on_one_machine(Communicator& ranks);

/// Throws Error unless all ranks run the same build of this program with the same oneDNN and the same instruction set:
/// only then do they compute the same bits. Returns what makes them slow, one text each: a rank has more threads than
/// cores that it is bound to, the ranks of a machine have more together than cores, or not all ranks have the same
/// number.
std::vector<std::string> require_same_build(Communicator& ranks, int threads);

/// The ranks of this run over MPI, until the program ends, or alone() if there is one rank only: then no MPI library is
/// loaded. Loads miniqat_mpi.so, which lies beside the program's libraries. Throws Error, which says what to do, if
/// this program was built without MPI or if the launcher belongs to another MPI.
Communicator& open_ranks();

}  // namespace miniqat::distributed
