#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "bench/measure/rounds.h"

namespace miniqat::benchmarks {

using bench::seconds_of;

/// main() of a benchmark: Google Benchmark's flags, `register_all` (may be null: the BENCHMARK macros did it), and in
/// the context, which --benchmark_format=json and --benchmark_out take over, "cpu", "cores_available",
/// "instruction_set", "omp_wait_policy" and "quiet" ("no" when others were using the machine, which stderr says, too).
/// Returns the exit status: 1 when a benchmark gave up or threw, 2 for an unknown flag.
int run_benchmarks(int argc, char** argv, void (*register_all)());

/// Ends a benchmark that has found something wrong before timing it.
void give_up(benchmark::State& state, const std::string& fault);

/// The median of at least one value.
inline double median(const std::vector<double>& values) { return bench::spread_of(values).median; }

}  // namespace miniqat::benchmarks
