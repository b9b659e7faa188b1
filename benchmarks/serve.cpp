#include "benchmarks/serve.h"

#include <cstdio>
#include <iostream>
#include <string>

#include "benchmarks/machine.h"

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

}  // namespace miniqat::benchmarks
