#include "core/engine/shard_exchange.h"

#include <bit>
#include <utility>

#include "core/graph/op.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"

namespace miniqat {
namespace {

bool is_power_of_two(int number) { return number > 0 && std::has_single_bit(static_cast<unsigned>(number)); }

template <class T>
void scale(T* x, std::int64_t n, T factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

/// x = (x + y) * factor.
template <class T>
void add_and_scale(T* x, const T* y, std::int64_t n, T factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] = (x[i] + y[i]) * factor;
}

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

/// Division by a power of two is exact (but for denormals, which are 0).
void LoneExchange::finish(int threads) {
  const ComputeScope computing(threads);
  for (Halves& halves : std::exchange(started_, {}))
    with_float_type(halves.left, [&]<class T>(T) {
      const T share = T(1) / static_cast<T>(shards_);
      T* to = halves.left.data<T>();
      const T* more = halves.right.defined() ? halves.right.data<T>() : nullptr;
      parallel_for(halves.left.elements(), kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
        more == nullptr ? scale(to + begin, end - begin, share)
                        : add_and_scale(to + begin, more + begin, end - begin, share);
      });
    });
}

}  // namespace miniqat
