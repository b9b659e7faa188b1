#include "distributed/launch.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <dnnl.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "core/kernels/instruction_set.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
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

/// What a rank says of itself.
struct Introduction {
  std::uint64_t build = 0;
  std::uint64_t onednn = 0;
  IsaLevel level = IsaLevel::kBaseline;
  std::uint64_t host = 0;
  int threads = 0;
  /// The cores that it is bound to.
  cpu_set_t cores{};
};

/// Goes by words: with debug symbols the program has hundreds of megabytes, and every rank reads its own.
std::uint64_t hash_of_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::vector<std::uint64_t> words(std::size_t{1} << 13);
  std::uint64_t hash = 0;
  while (file) {
    std::ranges::fill(words, 0);
    file.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(words.size() * sizeof words[0]));
    hash = mix(hash, static_cast<std::uint64_t>(file.gcount()));
    for (const std::uint64_t word : words) hash = mix(hash, word);
  }
  return hash;
}

std::uint64_t hash_of_onednn() {
  const dnnl_version_t* const version = dnnl::version();
  return hash_text(concat(version->major, ".", version->minor, ".", version->patch, " ", version->hash));
}

std::uint64_t hash_of_host() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return hash_text(name);
}

std::vector<Introduction> introduce(Communicator& ranks, int threads) {
  Introduction own{.build = hash_of_program(),
                   .onednn = hash_of_onednn(),
                   .level = isa_level(),
                   .host = hash_of_host(),
                   .threads = threads};
  CPU_ZERO(&own.cores);
  sched_getaffinity(0, sizeof own.cores, &own.cores);
  return gathered(ranks, own);
}

void require_same_program(const std::vector<Introduction>& all) {
  const Introduction& first = all.front();
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const Introduction& other = all[rank];
    const auto both = concat("ranks 0 and ", rank);
    if (other.build != first.build) fail(both, " run different builds of this program: install the same everywhere");
    if (other.onednn != first.onednn) fail(both, " have different versions of oneDNN: install the same everywhere");
    if (other.level != first.level)
      fail(both, " use different instruction sets, ", name_of(first.level), " and ", name_of(other.level),
           ", and would not compute the same bits: set MINIQAT_MAX_ISA=",
           name_of(common_level(first.level, other.level)), " for all");
  }
}

constexpr const char* kBinding = "mpirun --bind-to or srun --cpus-per-task give a rank its cores";

/// Ranks that share cores, where these are fewer than their threads.
std::string warning_of_cores(const std::vector<Introduction>& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Introduction& one = all[rank];
    if (const int cores = CPU_COUNT(&one.cores); one.threads > cores)
      return concat("warning: rank ", rank, " has ", one.threads, " threads, but is bound to ", counted(cores, "core"),
                    ": they will wait for one another (", kBinding, ")");
    cpu_set_t together = one.cores;
    int threads = 0, ranks = 0;
    for (const Introduction& other : all) {
      if (other.host != one.host) continue;
      CPU_OR(&together, &together, &other.cores);
      threads += other.threads;
      ++ranks;
    }
    if (const int cores = CPU_COUNT(&together); threads > cores)
      return concat("warning: ", ranks, " ranks on one machine have ", threads, " threads together, but may use ",
                    counted(cores, "core"), " only: they will wait for one another (", kBinding, ")");
  }
  return "";
}

/// The bits do not depend on it, the time does.
std::string warning_of_threads(const std::vector<Introduction>& all) {
  const auto [least, most] = std::ranges::minmax_element(all, {}, &Introduction::threads);
  if (least->threads == most->threads) return "";
  return concat("warning: rank ", least - all.begin(), " has ", counted(least->threads, "thread"), ", rank ",
                most - all.begin(), " ", most->threads, ": the slowest rank sets the pace of all");
}

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

Communicator& open_ranks() {
  const int ranks = launched_ranks();
  if (ranks == 1) return alone();
  std::shared_ptr<Communicator> communicator(open_function(ranks)());
  if (communicator->size() != ranks)
    fail("the launcher started ", ranks, " ranks, but MPI sees ", communicator->size(),
         ": the launcher belongs to another MPI than this program was built with",
         std::getenv("SLURM_PROCID") == nullptr ? "" : concat("; ", kInterfaces));
  opened = communicator;
  return *opened;
}

bool on_one_machine(Communicator& ranks) {
  const std::vector<std::uint64_t> all = gathered(ranks, hash_of_host());
  return std::ranges::all_of(all, [&](std::uint64_t one) { return one == all.front(); });
}

std::vector<std::string> require_same_build(Communicator& ranks, int threads) {
  const std::vector<Introduction> all = introduce(ranks, threads);
  require_same_program(all);
  std::vector<std::string> warnings = {warning_of_threads(all), warning_of_cores(all)};
  std::erase(warnings, "");
  return warnings;
}

}  // namespace miniqat::distributed
