#include "tests/distributed/mpirun.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace miniqat::testing {
namespace {

namespace fs = std::filesystem;

/// "" if there is none.
std::string mpirun_path() {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::exists(fs::path(folder) / "mpirun")) return fs::path(folder) / "mpirun";
  return "";
}

}  // namespace

bool has_mpirun() {
  const fs::path build = fs::path(program_path()).parent_path().parent_path();
  return !mpirun_path().empty() && fs::exists(build / "miniqat_mpi.so");
}

Arguments mpirun_line(int ranks, const Arguments& line) {
  // What OpenMPI wants to be told; MPICH does so by itself.
  for (const char* const setting : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                                    "OMPI_MCA_rmaps_base_oversubscribe", "OMPI_MCA_mpi_yield_when_idle"})
    setenv(setting, "1", 1);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
  // OpenMPI 5 starts ranks by PRRTE, which wants to be told in other words.
  setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 1);
  setenv("PRTE_MCA_hwloc_default_binding_policy", "none", 1);
  return Arguments{mpirun_path(), "-np", std::to_string(ranks)} + line;
}

Program mpirun(int ranks, const Arguments& line, const fs::path& directory) {
  return Program(Program::Line{mpirun_line(ranks, line)}, directory);
}

}  // namespace miniqat::testing
