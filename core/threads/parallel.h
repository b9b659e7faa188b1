#pragma once

#include <algorithm>
#include <cstdint>

namespace miniqat {

/// Sets the number of threads of our loops and of oneDNN, for all threads that compute: each has workers of its own, so
/// that two sessions in two threads use twice as many. Takes effect at once in the calling thread, in others when what
/// they compute has ended (ComputeScope). Throws Error unless 1 <= count <= 1024, and for more than OMP_THREAD_LIMIT
/// allows.
void set_thread_count(int count);
/// Inside a ComputeScope always the same.
int thread_count();
/// thread_count() before anyone sets it: the available cores, or fewer if a cgroup's CPU quota (rounded up;
/// core/threads/cpu_quota.h) or OMP_NUM_THREADS says so. A value of OMP_NUM_THREADS that is no thread count is ignored;
/// OpenMP's library warns of it.
int default_thread_count();
/// The cores that this process may use.
int available_cores();

/// Denormals slow convolutions down a hundredfold: while one lives, the calling thread flushes them to zero. At the end
/// its switches are as they were.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

  /// The processor's switches that were on before.
  unsigned before() const { return before_; }

 private:
  unsigned before_;
};

/// While one lives, the calling thread computes: it and its workers (core/team/team.h) flush denormals to zero,
/// thread_count() stays as it is, and OpenMP's own settings fit it. At the end all this is for the thread as it was
/// before. Every run of a session opens one; scopes nest, and an inner one costs nothing, so a program that does many
/// short runs may open one around them all. Ends in the thread in which it began.
class ComputeScope {
 public:
  ComputeScope();
  /// Meanwhile thread_count() of the calling thread is `threads`, in outer scopes what it was.
  explicit ComputeScope(int threads);
  ~ComputeScope();
  ComputeScope(const ComputeScope&) = delete;
  ComputeScope& operator=(const ComputeScope&) = delete;

 private:
  FlushDenormals flushed_;
  /// The count of the outer scope; 0 where this one has none of its own.
  int outer_count_ = 0;
};

/// parallel_for with its body behind a pointer: one parallel region for all loops, and each body compiled once.
using RangeBody = void (*)(const void* body, std::int64_t begin, std::int64_t end);
void parallel_for_ranges(std::int64_t n, std::int64_t grain, RangeBody call, const void* body);

/// Calls body(begin, end) over [0, n), cut into at most thread_count() contiguous ranges of at least `grain` elements.
/// The cut depends on n, grain and the thread count only, not on which threads come, so runs repeat bitwise. Denormals
/// are flushed meanwhile. Throws what body throws in the lowest of the ranges, after all have ended.
template <class Body>
void parallel_for(std::int64_t n, std::int64_t grain, const Body& body) {
  parallel_for_ranges(
      n, grain,
      [](const void* erased, std::int64_t begin, std::int64_t end) { (*static_cast<const Body*>(erased))(begin, end); },
      &body);
}

/// The number of ranges that parallel_for will cut, for loops that keep one partial result a range.
inline int parallel_parts(std::int64_t n, std::int64_t grain) {
  return static_cast<int>(std::max<std::int64_t>(
      1, std::min<std::int64_t>(thread_count(), (n + grain - 1) / std::max<std::int64_t>(grain, 1))));
}

/// Calls body(part, begin, end) for `parts` contiguous shares of [0, n), in parallel.
template <class Body>
void parallel_shares(std::int64_t n, std::int64_t parts, const Body& body) {
  parallel_for(parts, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t part = first; part < last; ++part) body(part, n * part / parts, n * (part + 1) / parts);
  });
}

/// A sensible grain for elementwise loops: below this a second thread costs more than it saves.
inline constexpr std::int64_t kPointwiseGrain = 16384;

}  // namespace miniqat
