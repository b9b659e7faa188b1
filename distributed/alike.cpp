#include <unistd.h>

#include <dnnl.hpp>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/kernels/instruction_set.h"
#include "core/random.h"
#include "distributed/launch.h"

namespace miniqat::distributed {
namespace {

/// What a rank says of itself.
struct Introduction {
  std::uint64_t build = 0;
  std::uint64_t onednn = 0;
  InstructionSet set = InstructionSet::kBaseline;
  std::uint64_t host = 0;
  int threads = 0;
  int cores = 0;
};

std::uint64_t hash_of_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return hash_text(bytes.str());
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
  const Introduction own{.build = hash_of_program(),
                         .onednn = hash_of_onednn(),
                         .set = instruction_set(),
                         .host = hash_of_host(),
                         .threads = threads,
                         .cores = static_cast<int>(std::thread::hardware_concurrency())};
  std::vector<Introduction> all(static_cast<std::size_t>(ranks.size()));
  gather(ranks, std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace

std::string require_alike(Communicator& ranks, int threads) {
  const std::vector<Introduction> all = introduce(ranks, threads);
  const Introduction& first = all.front();
  std::string warning;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Introduction& other = all[rank];
    const auto both = concat("ranks 0 and ", rank);
    if (other.build != first.build) fail(both, " run different builds of this program: install the same everywhere");
    if (other.onednn != first.onednn) fail(both, " have different versions of oneDNN: install the same everywhere");
    if (other.set != first.set)
      fail(both, " use different instruction sets, ", name_of(first.set), " and ", name_of(other.set),
           ", and would not compute the same bits: set MINIQAT_MAX_ISA=", name_of(std::min(first.set, other.set)),
           " for all");
    int together = 0, count = 0;
    for (const Introduction& one : all) {
      if (one.host != other.host) continue;
      together += one.threads;
      ++count;
    }
    if (together > other.cores && warning.empty())
      warning = concat("warning: ", count, " ranks on one machine have ", together, " threads together, but it has ",
                       other.cores, " cores: they will wait for one another");
  }
  return warning;
}

}  // namespace miniqat::distributed
