#pragma once

#include <cstddef>
#include <vector>

namespace miniqat {

/// One stretch of memory and the first and last step (both included) in which it is alive.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct ArenaLayout {
  /// One per lifetime, multiples of kMemoryAlignment.
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
};

/// Places the stretches so that no two that are alive in the same step overlap: largest first, each at the lowest
/// offset that is free during its life (greedy by size, Pisarchyk and Lee 2020, section 5.2).
ArenaLayout place_in_arena(const std::vector<Lifetime>& lifetimes);

}  // namespace miniqat
