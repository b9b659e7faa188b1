#include "distributed/launch.h"

#include <dlfcn.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/concat.h"
#include "core/error.h"
#include "distributed/mpi_communicator.h"

namespace miniqat::distributed {
namespace {

namespace fs = std::filesystem;

std::optional<int> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  int number = 0;
  const auto [end, failure] = std::from_chars(digits.begin(), digits.end(), number);
  if (failure != std::errc() || end != digits.end() || number < 1) return std::nullopt;
  return number;
}

/// Installed, the module lies in the library folder of the prefix that the program is in.
fs::path module_path() {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const fs::path installed = program.parent_path().parent_path() / MINIQAT_MPI_FOLDER / "miniqat_mpi.so";
  return fs::exists(installed) ? installed : fs::path(MINIQAT_MPI_MODULE);
}

constexpr const char* kInterfaces = "give srun --mpi=pmix for OpenMPI, --mpi=pmi2 for MPICH";

using OpenFunction = Communicator* (*)();

OpenFunction open_function(int ranks) {
  const fs::path file = module_path();
  if (!fs::exists(file))
    fail("a launcher started ", ranks, " ranks of this program, but it was built without MPI (there is no ",
         file.string(), "): install libopenmpi-dev or libmpich-dev and build again, or start it alone");
  // MPI libraries load parts of their own, which look for their symbols among all.
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) fail("cannot load MPI: ", dlerror());
  const auto* const version = static_cast<const int*>(dlsym(handle, "miniqat_mpi_version"));
  if (version == nullptr || *version != kMpiModuleVersion)
    fail(file.string(), ": belongs to another version of this program; install both anew");
  return reinterpret_cast<OpenFunction>(dlsym(handle, "miniqat_mpi_open"));
}

/// What open_ranks() opened, for end_ranks(); kept to the end of the program.
std::shared_ptr<Communicator> opened;

}  // namespace

int launched_rank() {
  for (const char* const variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"})
    if (const char* const text = std::getenv(variable)) return std::atoi(text);
  return 0;
}

void end_ranks(int status) {
  if (opened != nullptr) opened->abort(status);
}

int launched_ranks() {
  for (const char* const variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const auto number = number_in(variable)) return *number;
  // srun has the size of its step beside the variables of the interface that MPI uses.
  const int tasks = number_in("SLURM_STEP_NUM_TASKS").value_or(1);
  if (tasks > 1 && std::getenv("PMIX_RANK") == nullptr && std::getenv("PMI_RANK") == nullptr)
    fail("srun started ", tasks,
         " tasks without an interface for MPI, so each would be a run of its own: ", kInterfaces,
         " (`srun --mpi=list` shows what there is)");
  return tasks;
}

std::shared_ptr<Communicator> open_ranks() {
  const int ranks = launched_ranks();
  if (ranks == 1) return nullptr;
  std::shared_ptr<Communicator> communicator(open_function(ranks)());
  if (communicator->size() != ranks)
    fail("the launcher started ", ranks, " ranks, but MPI sees ", communicator->size(),
         ": the launcher belongs to another MPI than this program was built with",
         std::getenv("SLURM_PROCID") == nullptr ? "" : concat("; ", kInterfaces));
  opened = communicator;
  return communicator;
}

}  // namespace miniqat::distributed
