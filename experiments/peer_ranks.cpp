// Our side of experiments/bench-ddp: the ranks of a training, of which the first waits for its turns. Started by that
// script:
//
//   mpirun -np N --bind-to core peer_ranks MODEL BATCH SIDE float|single
//
// One thread a rank, a slice of BATCH pictures each. Talks as experiments/serve.h has it. Exit status 1, and a line on
// standard error, when something is wrong.

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/noise_training.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "distributed/launch.h"
#include "distributed/rank_exchange.h"
#include "experiments/serve.h"

namespace miniqat::benchmarks {
namespace {

using distributed::Communicator;
using distributed::RankExchange;

std::optional<quantize::RewriteOptions> rewrite_of_ranks(const std::string& name) {
  if (name == "float") return {};
  if (name == "single") return quantize::RewriteOptions{.bn_fold = quantize::BnFold::kSingle};
  fail("unknown arithmetic \"", name, "\"");
}

/// The leader's word, on all ranks. Who waits for longer than a step's beginning takes sleeps: it is the other
/// program's turn.
bool agreed(Communicator& ranks, bool more) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::byte> all(ranks.size());
  const std::byte own{more};
  const std::unique_ptr<distributed::Transfer> transfer = ranks.all_gather({&own, 1}, all);
  const Clock::time_point patience = Clock::now() + std::chrono::milliseconds(1);
  while (!transfer->done())
    if (Clock::now() > patience) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return all.front() == std::byte{1};
}

int train_in_turns(Communicator& ranks, const std::vector<std::string>& arguments) {
  const std::string& model = arguments[0];
  const bench::NoiseWorkload workload = {.model = model,
                                         .batch = std::stol(arguments[1]),
                                         .side = std::stol(arguments[2]),
                                         .learning_rate = model.starts_with("lenet") ? 0.005 : 0.02,
                                         .rewrite = rewrite_of_ranks(arguments[3])};
  set_thread_count(1);
  RankExchange exchange(ranks, ranks.size());
  bench::NoiseTraining training(workload);
  training.session().set_shards({.exchange = exchange});
  constexpr int kWarmUp = 10;
  training.warm_up(kWarmUp);
  if (!exchange.leads()) {
    while (agreed(ranks, true)) training.step();
    return 0;
  }
  const int status = serve({.items = workload.batch * ranks.size(), .repeat = [&] {
                              agreed(ranks, true);
                              training.step();
                            }});
  agreed(ranks, false);
  return status;
}

int run_ranks(const std::vector<std::string>& arguments) {
  Communicator& ranks = distributed::open_ranks();
  if (ranks.size() == 1 || arguments.size() != 4) {
    std::fprintf(stderr, "usage: mpirun -np N peer_ranks MODEL BATCH SIDE float|single\n");
    return 2;
  }
  const int status = train_in_turns(ranks, arguments);
  ranks.close();
  return status;
}

}  // namespace
}  // namespace miniqat::benchmarks

int main(int argc, char** argv) {
  const int status = miniqat::benchmarks::run_peer("peer_ranks", argc, argv, miniqat::benchmarks::run_ranks);
  if (status != 0) miniqat::distributed::end_ranks(status);
  return status;
}
