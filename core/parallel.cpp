#include "core/parallel.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace miniqat {
namespace {

constexpr int kMaxThreads = 1024;

/// What set_thread_count said; 0 before that.
std::atomic<int> requested_count = 0;

void flush_denormals() {
#if defined(__SSE__)
  constexpr unsigned kFlushToZero = 0x8000;
  constexpr unsigned kDenormalsAreZero = 0x0040;
  _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
#endif
}

/// The cores, or fewer when OMP_NUM_THREADS says so. A value that is no thread count is ignored.
int default_count() {
  int count = std::min(available_cores(), kMaxThreads);
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    int wanted = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, wanted);
    // "4,2" asks for 4 threads in the outermost region, which is ours.
    const bool whole = stop == end || *stop == ',';
    if (error == std::errc() && whole && wanted >= 1) count = std::min(count, wanted);
  }
  return count;
}

/// OpenMP keeps the thread count and the pool of workers, and the processor its denormal switches, separately for each
/// thread that starts parallel regions. So every such thread (main, data loader, ...) comes through here.
void prepare_calling_thread(int count) {
  flush_denormals();
  if (omp_in_parallel()) return;
  omp_set_num_threads(count);
  // New workers inherit the switches from this thread, those that exist already must be told.
#pragma omp parallel num_threads(count)
  flush_denormals();
}

}  // namespace

void set_thread_count(int count) {
  if (count < 1 || count > kMaxThreads) fail("the number of threads must be 1 to ", kMaxThreads, ", is ", count);
  requested_count = count;
  thread_count();
}

int thread_count() {
  static const int unrequested_count = default_count();
  thread_local int prepared_count = 0;
  const int requested = requested_count.load(std::memory_order_relaxed);
  const int count = requested != 0 ? requested : unrequested_count;
  if (prepared_count != count) {
    prepared_count = count;
    prepare_calling_thread(count);
  }
  return count;
}

// OpenMP's count honours the affinity mask, and also an OMP_PROC_BIND that has narrowed the main thread's own mask.
int available_cores() { return std::max(1, omp_get_num_procs()); }

}  // namespace miniqat
