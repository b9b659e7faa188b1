#pragma once

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "benchmarks/machine.h"
#include "core/threads/parallel.h"

namespace miniqat::benchmarks {

/// Something that can be done again and again.
struct Peer {
  /// Images or elements of one repetition.
  std::int64_t items = 0;
  std::function<void()> repeat;
};

/// Warms the peer up and prints "ready ITEMS"; then, for each line "go N" on standard input, a line with the seconds
/// that N repetitions took: so that it can take turns with another program. Returns 0 at the end of its input.
inline int serve(const Peer& peer) {
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

/// The main() of a program `name`: what `run` returns for the command line's arguments, or 1 when it throws, and why on
/// standard error.
inline int run_peer(const char* name, int argc, char** argv, int (*run)(const std::vector<std::string>& arguments)) {
  const ComputeScope computing;
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace miniqat::benchmarks
