#include "core/threads/parallel.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "core/platform/floating_point_control.h"
#include "core/platform/openmp.h"
#include "core/team/team.h"
#include "core/text/error.h"
#include "core/threads/cpu_quota.h"

namespace miniqat {
namespace {

constexpr int kMaxThreads = 1024;

/// What set_thread_count said; 0 before that.
std::atomic<int> requested_count = 0;

/// Turns the switches `wanted` on and the others off. Returns those that were on.
unsigned switch_denormals(unsigned wanted) {
  const unsigned all = floating_point_control(), before = all & kFlushDenormals;
  if (before != wanted) set_floating_point_control((all & ~kFlushDenormals) | wanted);
  return before;
}

/// The number of threads in OMP_NUM_THREADS; "4,2" asks for 4 threads in the outermost region, which is ours.
/// `otherwise` when it is not set, or is no thread count.
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

int configured_count() {
  static const int unrequested_count = default_thread_count();
  const int requested = requested_count.load(std::memory_order_relaxed);
  return requested != 0 ? requested : unrequested_count;
}

/// OpenMP keeps the thread count separately for each thread that starts parallel regions.
struct Computing {
  /// ComputeScopes that are open.
  int depth = 0;
  /// What thread_count() is in them; 0 until somebody asks.
  int count = 0;
  /// OpenMP's settings before the outermost scope.
  int omp_count = 0;
  int omp_dynamic = 0;
};

thread_local Computing computing;

/// oneDNN asks OpenMP for the thread count when it plans a primitive. Done when somebody asks us for it.
void prepare_workers(int count) {
  computing.count = count;
  if (in_team() || omp_in_parallel()) return;
  // A smaller team than promised, as OMP_DYNAMIC allows, would leave oneDNN's kernels waiting for ever for the rest.
  omp_set_dynamic(0);
  omp_set_num_threads(count);
}

void require_thread_count(int count) {
  if (count < 1 || count > kMaxThreads) fail("the number of threads must be 1 to ", kMaxThreads, ", is ", count);
  const int limit = omp_get_thread_limit();
  if (count > limit) fail(count, " threads exceed OMP_THREAD_LIMIT (", limit, ")");
}

}  // namespace

void set_thread_count(int count) {
  require_thread_count(count);
  requested_count = count;
  if (computing.count != 0) prepare_workers(count);
}

int default_thread_count() {
  const int cores = std::min({available_cores(), kMaxThreads, omp_get_thread_limit(), cores_of_quota(cpu_quota())});
  return std::min(cores, wanted_count(cores));
}

int thread_count() {
  if (computing.depth == 0) return configured_count();
  if (computing.count == 0) prepare_workers(configured_count());
  return computing.count;
}

FlushDenormals::FlushDenormals() : before_(switch_denormals(kFlushDenormals)) {}
FlushDenormals::~FlushDenormals() { switch_denormals(before_); }

ComputeScope::ComputeScope() {
  if (computing.depth++ != 0) return;
  computing.count = 0;
  computing.omp_count = omp_get_max_threads();
  computing.omp_dynamic = omp_get_dynamic();
}

ComputeScope::ComputeScope(int threads) : ComputeScope() {
  require_thread_count(threads);
  outer_count_ = thread_count();
  prepare_workers(threads);
}

ComputeScope::~ComputeScope() {
  if (outer_count_ != 0) prepare_workers(outer_count_);
  if (--computing.depth != 0 || computing.count == 0) return;
  computing.count = 0;
  if (in_team() || omp_in_parallel()) return;
  omp_set_num_threads(computing.omp_count);
  omp_set_dynamic(computing.omp_dynamic);
}

// OpenMP's count honours the affinity mask, and also an OMP_PROC_BIND that has narrowed the main thread's own mask.
void parallel_for_ranges(std::int64_t n, std::int64_t grain, RangeBody call, const void* body) {
  if (n <= 0) return;
  const std::int64_t parts = parallel_parts(n, grain);
  if (parts <= 1 || in_team() || omp_in_parallel()) {
    const FlushDenormals flushed;
    call(body, 0, n);
    return;
  }
  // Workers take the switches of the thread that calls them.
  const FlushDenormals flushed;
  const auto run_part = [&](int part) { call(body, n * part / parts, n * (part + 1) / parts); };
  run_in_team(
      static_cast<int>(parts), [](void* erased, int part) { (*static_cast<decltype(run_part)*>(erased))(part); },
      const_cast<void*>(static_cast<const void*>(&run_part)), TeamParts::kIndependent);
}

int available_cores() { return std::max(1, omp_get_num_procs()); }

}  // namespace miniqat
