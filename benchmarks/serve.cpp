#include "benchmarks/serve.h"

#include <cstdio>
#include <exception>
#include <iostream>

#include "benchmarks/machine.h"
#include "core/parallel.h"

namespace miniqat::benchmarks {

int serve(const Peer& peer) {
  constexpr int kWarmUp = 2;
  for (int i = 0; i < kWarmUp; ++i) peer.repeat();
  std::printf("ready %ld\n", static_cast<long>(peer.items));
  std::fflush(stdout);
  std::string word;
  for (int times = 0; std::cin >> word >> times && word == "go";) {
    const double seconds = seconds_of([&] {
      for (int i = 0; i < times; ++i) peer.repeat();
    });
    std::printf("%.9f\n", seconds);
    std::fflush(stdout);
  }
  return 0;
}

int run_peer(const char* name, int argc, char** argv, int (*run)(const std::vector<std::string>& arguments)) {
  const ComputeScope computing;
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace miniqat::benchmarks
