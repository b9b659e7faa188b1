#include "core/engine/shard_exchange.h"

#include <bit>

#include "core/text/error.h"

namespace miniqat {
namespace {

bool is_power_of_two(int number) { return number > 0 && std::has_single_bit(static_cast<unsigned>(number)); }

}  // namespace

void require_subtree(const ShardRange& range) {
  if (!is_power_of_two(range.total)) fail("the number of shards must be a power of two, is ", range.total);
  if (!is_power_of_two(range.count) || range.count > range.total)
    fail("a process must compute a power of two of the ", range.total, " shards, not ", range.count);
  if (range.first < 0 || range.first % range.count != 0 || range.first + range.count > range.total)
    fail("the first of ", range.count, " shards of ", range.total, " must be a multiple of ", range.count, ", is ",
         range.first);
}

void add_in_tree(std::span<float* const> parts, std::int64_t n) {
  for (std::size_t distance = 1; distance < parts.size(); distance *= 2)
    for (std::size_t k = 0; k + distance < parts.size(); k += 2 * distance) {
      float* left = parts[k];
      const float* right = parts[k + distance];
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) left[i] += right[i];
    }
}

}  // namespace miniqat
