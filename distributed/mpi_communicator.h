#pragma once

#include "distributed/communicator.h"

namespace miniqat::distributed {

/// The version of the functions below and of Communicator; a module of another version is not loaded.
inline constexpr int kMpiModuleVersion = 2;

}  // namespace miniqat::distributed

/// What miniqat_mpi.so, the only part that knows MPI, has for distributed/launch.cpp.
extern "C" {
extern const int miniqat_mpi_version;
/// Starts MPI. The caller owns the result. Throws miniqat::Error.
miniqat::distributed::Communicator* miniqat_mpi_open();
}
