#include "core/parallel.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>

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

/// What OMP_NUM_THREADS asks for; "4,2" asks for 4 threads in the outermost region, which is ours. `otherwise` when it
/// is not set, or is no thread count.
int wanted_count(int otherwise) {
  const char* variable = std::getenv("OMP_NUM_THREADS");
  if (variable == nullptr) return otherwise;
  std::string_view text = variable;
  text = text.substr(0, text.find(','));
  // OpenMP allows for spaces around each number.
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  text = text.substr(0, text.find_last_not_of(" \t") + 1);
  int wanted = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), wanted);
  return error == std::errc() && stop == text.data() + text.size() && wanted >= 1 ? wanted : otherwise;
}

/// OpenMP keeps the thread count and the pool of workers, and the processor its denormal switches, separately for each
/// thread that starts parallel regions. So every such thread (main, data loader, ...) comes through here.
void prepare_calling_thread(int count) {
  flush_denormals();
  if (omp_in_parallel()) return;
  // A smaller team than promised, as OMP_DYNAMIC allows, would leave oneDNN's kernels waiting for ever for the rest.
  omp_set_dynamic(0);
  omp_set_num_threads(count);
  // New workers inherit the switches from this thread, those that exist already must be told.
#pragma omp parallel num_threads(count)
  flush_denormals();
}

}  // namespace

void set_thread_count(int count) {
  if (count < 1 || count > kMaxThreads) fail("the number of threads must be 1 to ", kMaxThreads, ", is ", count);
  const int limit = omp_get_thread_limit();
  if (count > limit) fail("OMP_THREAD_LIMIT allows for ", limit, " threads, ", count, " are wanted");
  requested_count = count;
  thread_count();
}

int default_thread_count() {
  const int cores = std::min({available_cores(), kMaxThreads, omp_get_thread_limit()});
  return std::min(cores, wanted_count(cores));
}

int thread_count() {
  static const int unrequested_count = default_thread_count();
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
