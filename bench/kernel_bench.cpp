#include "bench/kernel_bench.h"

#include <algorithm>
#include <memory>

#include "bench/foreign_code.h"
#include "bench/timed_case.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"

namespace miniqat::bench {
namespace {

using TimedCases = std::vector<std::unique_ptr<TimedCase>>;

TimedCases timed_cases(const BenchPlan& plan, BenchTensors& tensors, std::int64_t elements) {
  TimedCases cases;
  for (const BenchCase& what : cases_of(plan.choice, elements)) {
    if (is_limit(what.operation)) {
      cases.push_back(std::make_unique<TimedCase>(tensors, what, nullptr));
      continue;
    }
    for (const NamedKernel& kernel : plan.kernels)
      if (can_do(kernel.functions, what.operation))
        cases.push_back(std::make_unique<TimedCase>(tensors, what, &kernel));
  }
  return cases;
}

std::string name_of_kernel(const TimedCase& one) {
  if (one.what().operation == Operation::kMemcpy) return "libc";
  return one.kernel() == nullptr ? kOurName : one.kernel()->name;
}

bool same_case(const BenchCase& a, const BenchCase& b) {
  return a.operation == b.operation && a.bits == b.bits && a.channels == b.channels && a.elements == b.elements;
}

/// The calls of one round more, counted.
std::optional<PerfCounters::Counts> counts_of(TimedCase& one, std::int64_t repeats, const PerfCounters& counters) {
  const auto before = counters.read();
  if (!before) return std::nullopt;
  const CrashNote note(one.text() + ", while it was counted");
  for (std::int64_t i = 0; i < repeats; ++i) one.run();
  const auto after = counters.read();
  if (!after) return std::nullopt;
  const auto elements = static_cast<double>(one.what().elements * repeats);
  return PerfCounters::Counts{(after->instructions - before->instructions) / elements,
                              (after->cache_misses - before->cache_misses) / elements};
}

void compare_with_ours(std::vector<KernelTime>& rows) {
  for (KernelTime& row : rows) {
    if (row.by == kOurName || is_limit(row.what.operation)) continue;
    const auto ours = std::ranges::find_if(
        rows, [&](const KernelTime& other) { return other.by == kOurName && same_case(other.what, row.what); });
    if (ours == rows.end()) continue;
    const std::vector<double> speeds = ratios_of(ours->rounds, row.rounds);
    row.of_ours = spread_of(speeds);
    row.of_ours_interval = median_interval(speeds, kConfidence);
  }
}

}  // namespace

SizeTimes bench_kernels(const BenchPlan& plan, std::int64_t elements, const Roof& roof, const PerfCounters& counters) {
  BenchTensors tensors(elements);
  const TimedCases cases = timed_cases(plan, tensors, elements);
  for (const auto& one : cases) one->verify();
  // A sample is long beside the clock's own cost.
  const std::int64_t repeats = std::max<std::int64_t>(1, 400'000 / elements);
  const auto round = [&](std::size_t k) {
    const CrashNote note(cases[k]->text() + ", while it was timed");
    return seconds_of([&] {
      for (std::int64_t i = 0; i < repeats; ++i) cases[k]->run();
    });
  };
  // Caches and clock are then as they will be.
  for (std::size_t k = 0; k < cases.size(); ++k) round(k);
  const QuietWatch watch;
  std::vector<std::vector<double>> times =
      measure_in_turns(cases.size(), {.seconds = plan.seconds_a_row * static_cast<double>(cases.size())}, round);
  SizeTimes result{{}, watch.since()};
  for (std::vector<double>& rounds : times)
    for (double& seconds : rounds) seconds /= static_cast<double>(repeats);
  // cases_of() begins with the limits.
  const std::vector<double> copy = times[0], read = times[1];
  result.disturbance.drift = drift_of(copy);
  const LimitTimes limits = {.copy_seconds = spread_of(copy).median,
                             .read_seconds = spread_of(read).median,
                             .threads = cases.front()->threads_used()};
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const BenchCase& what = cases[k]->what();
    KernelTime row;
    row.what = what;
    row.by = name_of_kernel(*cases[k]);
    row.plugin = cases[k]->kernel() == nullptr ? "" : cases[k]->kernel()->file;
    row.quiet = is_steady(times[k]) && result.disturbance.reasons().empty();
    row.threads = thread_count();
    row.threads_used = cases[k]->threads_used();
    row.rounds = times[k];
    row.of_memcpy = spread_of(ratios_of(copy, row.rounds));
    row.of_roof =
        least_seconds(traits_of(what.operation).cost, elements, row.threads_used, limits, roof) / row.seconds();
    row.counts = counts_of(*cases[k], repeats, counters);
    result.rows.push_back(std::move(row));
  }
  for (const auto& one : cases)
    if (one->kernel() != nullptr && one->kernel()->name != kOurName)
      one->verify(concat(", after ", counted(result.rows.front().rounds.size(), "round")));
  compare_with_ours(result.rows);
  return result;
}

}  // namespace miniqat::bench
