#include "benchmarks/machine.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "core/error.h"
#include "core/instruction_set.h"
#include "core/parallel.h"

namespace miniqat::benchmarks {
namespace {

/// Runs that were waiting for a processor, on average over the last minute, before we began.
double load_before_us() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

/// The console's reporter, which also remembers whether a benchmark failed.
class Reporter final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) failed_ = failed_ || run.error_occurred;
    ConsoleReporter::ReportRuns(runs);
  }
  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

/// The same for --benchmark_format=json.
class JsonReporter final : public benchmark::JSONReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) failed_ = failed_ || run.error_occurred;
    JSONReporter::ReportRuns(runs);
  }
  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

template <class Reporter>
int run_reported_by(Reporter reporter) {
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return reporter.failed() ? 1 : 0;
}

/// Google Benchmark has no getter for the format that it was asked for, and takes its flags out of argv.
bool wants_json(int argc, char** argv) {
  return std::any_of(argv, argv + argc,
                     [](const char* argument) { return std::string(argument) == "--benchmark_format=json"; });
}

void add_context() {
  constexpr double kQuiet = 0.5;
  const double load = load_before_us();
  benchmark::AddCustomContext("cpu", cpu_name());
  benchmark::AddCustomContext("cores_available", std::to_string(available_cores()));
  benchmark::AddCustomContext("instruction_set", std::string(name_of(instruction_set())));
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  benchmark::AddCustomContext("omp_wait_policy", policy == nullptr ? "default" : policy);
  benchmark::AddCustomContext("quiet", load > kQuiet ? "no" : "yes");
  if (load > kQuiet)
    std::fprintf(stderr, "This machine is not quiet (load %.1f): trust the ratios (x_..., vs_...) only.\n", load);
}

}  // namespace

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

int run_benchmarks(int argc, char** argv, void (*register_all)()) {
  try {
    const bool json = wants_json(argc, argv);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    add_context();
    if (register_all != nullptr) register_all();
    return json ? run_reported_by(JsonReporter()) : run_reported_by(Reporter());
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace miniqat::benchmarks
