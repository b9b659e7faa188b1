// The ways to a sum over ranks (distributed/bucket_sum.h), under mpirun:
//
//   mpirun -np 2 build/release/benchmarks/bench_ranks
//
// Every way is compared with the others, bit for bit, before it is timed. They take turns; each figure is the median
// of the rounds, in microseconds, of the slowest rank of each round. The last column is the largest deviation of a
// quartile from the median. `swap` is two ranks' exchange of as many bytes, `copy` and `add` what each rank does with
// as many in its own memory (a sum begins with a copy).

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/machine.h"
#include "core/engine/shard_exchange.h"
#include "core/platform/system.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "distributed/bucket_sum.h"
#include "distributed/launch.h"

namespace miniqat::benchmarks {
namespace {

using distributed::BucketSum;
using distributed::Communicator;
using distributed::SumWay;

constexpr SumWay kWays[] = {SumWay::kGather, SumWay::kSlices, SumWay::kHalves, SumWay::kWhole};
constexpr int kRounds = 31;

/// The seconds that `action` takes, begun by all ranks at once.
template <class Action>
double seconds_of(Communicator& ranks, const Action& action) {
  wait_for(*ranks.barrier());
  return std::ranges::max(gathered(ranks, bench::seconds_of(action)));
}

void sum(BucketSum& bucket, const std::vector<float>& part) {
  std::ranges::copy(part, bucket.values().begin());
  bucket.start(bucket.values());
  while (!bucket.done()) {
  }
}

struct Timed {
  std::string name;
  std::vector<double> seconds;
};

void print(std::int64_t floats, const Timed& timed) {
  const auto [middle, low, high] = bench::spread_of(timed.seconds);
  std::printf("%9lld %-7s %10.1f us  +- %2.0f%%\n", static_cast<long long>(4 * floats), timed.name.c_str(),
              1e6 * middle, 100 * std::max(high - middle, middle - low) / middle);
}

void compare_ways(Communicator& ranks, std::int64_t floats) {
  std::vector<float> part(floats), theirs(floats);
  Random random(ranks.rank() + 1);
  for (float& value : part) value = random.normal();
  std::vector<std::unique_ptr<BucketSum>> sums;
  std::vector<Timed> timed;
  for (const SumWay way : kWays) {
    sums.push_back(make_bucket_sum(ranks, {.floats = floats}, way));
    timed.push_back({std::string(name_of(way)), {}});
    sum(*sums.back(), part);
    const auto same = [](float a, float b) {
      return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    };
    if (!std::ranges::equal(sums.front()->values(), sums.back()->values(), same))
      fail(name_of(way), " and ", name_of(kWays[0]), " give different sums of ", floats, " numbers");
  }
  const std::size_t ways = timed.size();
  for (const char* other : {"swap", "copy", "add"}) timed.push_back({other, {}});
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t k = 0; k < sums.size(); ++k)
      timed[k].seconds.push_back(seconds_of(ranks, [&] { sum(*sums[k], part); }));
    timed[ways].seconds.push_back(seconds_of(ranks, [&] {
      wait_for(*ranks.swap(ranks.rank() ^ 1, std::as_bytes(std::span<const float>(part)),
                           std::as_writable_bytes(std::span(theirs))));
    }));
    timed[ways + 1].seconds.push_back(seconds_of(ranks, [&] { std::ranges::copy(theirs, part.begin()); }));
    timed[ways + 2].seconds.push_back(seconds_of(ranks, [&] {
      add_in_tree(std::array{part.data(), theirs.data()}, floats);
    }));
  }
  if (ranks.rank() == 0)
    for (const Timed& one : timed) print(floats, one);
}

void compare_sizes(Communicator& ranks) {
  if (ranks.rank() == 0) std::printf("%d ranks on %s; bytes, way, median\n", ranks.size(), cpu_name().c_str());
  for (const std::int64_t floats : {64, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304})
    compare_ways(ranks, floats);
}

}  // namespace
}  // namespace miniqat::benchmarks

int main() {
  try {
    miniqat::distributed::Communicator& ranks = miniqat::distributed::open_ranks();
    if (ranks.size() == 1) {
      std::fprintf(stderr, "bench_ranks: start it as several ranks: mpirun -np 2 bench_ranks\n");
      return 2;
    }
    miniqat::benchmarks::compare_sizes(ranks);
    ranks.close();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_ranks: %s\n", error.what());
    miniqat::distributed::end_ranks(1);
    return 1;
  }
}
