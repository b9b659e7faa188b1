#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/kernel_registry.h"
#include "bench/measure/perf_counters.h"
#include "bench/measure/rounds.h"
#include "bench/measure/this_machine.h"
#include "bench/roofline.h"

namespace miniqat::bench {

/// A line of the table.
struct KernelTime {
  BenchCase what;
  /// The kernel's name; "libc" for memcpy, "miniqat" for the reading pass.
  std::string by;
  /// The file of the plugin that has the kernel; "" of others.
  std::string plugin;
  int threads = 1;
  /// TimedCase::threads_used().
  int threads_used = 1;
  /// Seconds of one call, in the order of the rounds.
  std::vector<double> rounds;
  /// The speed as a multiple of memcpy's, in the same rounds.
  Spread of_memcpy;
  /// The speed as a multiple of our own kernel's in the same case; none for it and the limits, and if it is not
  /// measured.
  std::optional<Spread> of_ours;
  /// The interval of the median of these, with a confidence of 95%; none of too few rounds.
  std::optional<Interval> of_ours_interval;
  /// least_seconds() over the median. In place a kernel can be faster than memcpy, from which that time is.
  double of_roof = 0;
  /// Whether the rounds are steady and nothing disturbed them.
  bool quiet = true;
  /// Instructions and cache misses of one element.
  std::optional<PerfCounters::Counts> counts;

  double seconds() const { return spread_of(rounds).median; }
  double bytes() const { return static_cast<double>(what.elements) * traits_of(what.operation).cost.bytes(); }
  double elements_per_nanosecond() const { return static_cast<double>(what.elements) / seconds() / 1e9; }
  double nanoseconds_an_element() const { return 1e9 * seconds() / static_cast<double>(what.elements); }
};

/// All cases of one size, which took turns, and what disturbed them.
struct SizeTimes {
  std::vector<KernelTime> rows;
  Disturbance disturbance;
};

/// How cases are measured.
struct BenchPlan {
  CaseChoice choice;
  /// Our own and those of others. Their names and functions must have been checked (require_right).
  std::vector<NamedKernel> kernels;
  double seconds_a_row = 0.3;
};

/// Measures memcpy, a reading pass, and every case by every kernel that has its functions, on tensors of `elements` and
/// thread_count() threads. Throws Error when a result is not the reference's, before the rounds or, of kernels of
/// others, after them.
SizeTimes bench_kernels(const BenchPlan& plan, std::int64_t elements, const Roof& roof, const PerfCounters& counters);

}  // namespace miniqat::bench
