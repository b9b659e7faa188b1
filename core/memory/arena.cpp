#include "core/memory/arena.h"

#include <algorithm>
#include <numeric>

#include "core/memory/aligned_memory.h"

namespace miniqat {
namespace {

std::size_t aligned(std::size_t bytes) { return aligned_size(std::max<std::size_t>(bytes, 1)); }

}  // namespace

ArenaLayout place_in_arena(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::size_t> by_size(lifetimes.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::ranges::stable_sort(by_size, std::greater{}, [&](std::size_t i) { return lifetimes[i].bytes; });

  ArenaLayout layout;
  layout.offsets.resize(lifetimes.size());
  std::vector<std::size_t> by_offset;
  for (const std::size_t i : by_size) {
    const Lifetime& life = lifetimes[i];
    std::size_t offset = 0;
    for (const std::size_t other : by_offset) {
      const Lifetime& taken = lifetimes[other];
      if (taken.last < life.first || life.last < taken.first) continue;
      if (layout.offsets[other] >= offset + aligned(life.bytes)) break;
      offset = std::max(offset, layout.offsets[other] + aligned(taken.bytes));
    }
    layout.offsets[i] = offset;
    layout.bytes = std::max(layout.bytes, offset + aligned(life.bytes));
    by_offset.insert(std::ranges::upper_bound(by_offset, offset, {}, [&](std::size_t k) { return layout.offsets[k]; }),
                     i);
  }
  return layout;
}

}  // namespace miniqat
