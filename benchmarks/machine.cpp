#include "benchmarks/machine.h"

#include <cstdio>
#include <cstdlib>

#include "core/kernels/instruction_set.h"
#include "core/platform/system.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"

namespace miniqat::benchmarks {
namespace {

/// Runs that were waiting for a processor, on average over the last minute, before we began.
double load_before_us() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

bool faulty = false;

void add_context() {
  constexpr double kQuiet = 0.5;
  const double load = load_before_us();
  benchmark::AddCustomContext("cpu", cpu_name());
  benchmark::AddCustomContext("cores_available", std::to_string(available_cores()));
  benchmark::AddCustomContext("instruction_set", std::string(name_of(isa_level())));
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  benchmark::AddCustomContext("omp_wait_policy", policy == nullptr ? "default" : policy);
  benchmark::AddCustomContext("quiet", load > kQuiet ? "no" : "yes");
  if (load > kQuiet)
    std::fprintf(stderr, "This machine is not quiet (load %.1f): trust the ratios (x_..., vs_...) only.\n", load);
}

}  // namespace

void give_up(benchmark::State& state, const std::string& fault) {
  faulty = true;
  state.SkipWithError(fault.c_str());
}

int run_benchmarks(int argc, char** argv, void (*register_all)()) {
  const ComputeScope computing;
  try {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    add_context();
    if (register_all != nullptr) register_all();
    benchmark::RunSpecifiedBenchmarks();
    return faulty ? 1 : 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace miniqat::benchmarks
