#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace miniqat::benchmarks {

/// Something that can be done again and again.
struct Peer {
  /// Images or elements of one repetition.
  std::int64_t items = 0;
  std::function<void()> repeat;
};

/// Warms the peer up and prints "ready ITEMS"; then, for each line "go N" on standard input, a line with the seconds
/// that N repetitions took: so that it can take turns with another program. Returns 0 at the end of its input.
int serve(const Peer& peer);

/// The main() of a program `name`: what `run` returns for the command line's arguments, or 1 when it throws, and why on
/// standard error.
int run_peer(const char* name, int argc, char** argv, int (*run)(const std::vector<std::string>& arguments));

}  // namespace miniqat::benchmarks
