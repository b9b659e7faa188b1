#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/measure/perf_counters.h"
#include "bench/measure/this_machine.h"

namespace miniqat::cli {

/// The command line of `bench`.
struct BenchArguments {
  /// Numbers, 0 for the default, or "all".
  std::vector<std::string> threads;
  bool quick = false;
  bool kernels_only = false;
  bool steps_only = false;
  bool loaded = false;
  /// Operations and names of kernels.
  std::vector<std::string> kernels;
  std::vector<std::string> plugins;
  std::vector<std::int64_t> bits = {8};
  bool per_channel = false;
  bool per_tensor = false;
  std::int64_t channels = 64;
  std::vector<std::int64_t> elements;
  std::vector<std::string> models;
  std::int64_t batch_size = 0;
  std::string out;
  bool json = false;
  bool csv = false;
  std::string plot;
  std::vector<std::string> compare;
  bool fail_if_slower = false;
};

/// What the modes share.
struct BenchRun {
  const BenchArguments& arguments;
  /// One or more, each at least 1.
  std::vector<int> threads;
  /// Made before any thread, so that it counts for all.
  const bench::PerfCounters& counters;

  /// To stdout, unless that is for JSON or CSV.
  void print(const std::string& text) const;
  /// Writes to --out what is there so far, marked as "unfinished": a crash would lose it.
  void save(const nlohmann::ordered_json& result) const;
  /// For whoever waits in front of a terminal.
  void tell(const std::string& what) const;
  /// Adds what disturbed a measurement on thread_count() threads to "disturbances", with the keys `where`; and says it
  /// on stderr if the machine was not quiet.
  void note_disturbance(const bench::Disturbance& disturbance, const std::string& what,
                        const nlohmann::ordered_json& where, nlohmann::ordered_json& result) const;
};

/// Measures, prints tables, and adds what it found to the JSON.
using BenchMeasurement = std::function<void(nlohmann::ordered_json& result)>;

// The parts of `bench`. Each checks its flags, before anything is measured, and returns its measurement, for which
// `run` must stay. They throw UsageError.
BenchMeasurement prepare_kernels(const BenchRun& run);
BenchMeasurement prepare_steps(const BenchRun& run);
BenchMeasurement prepare_loaded(const BenchRun& run);

/// The names that --kernel knows, a line each, for --help.
std::string kernel_help();

/// Prints what --compare shows of two files. Throws Error afterwards if B is slower and --fail-if-slower was given.
void print_comparison(const BenchArguments& arguments);

void print_json(const nlohmann::ordered_json& json);

/// "1.03x  1.01-1.06", median and quartiles, with a ~ behind where these are far apart.
std::string ratio_text(double median, double low, double high, bool is_wide);

/// Whether stdout is a terminal that would break a line of all columns of the tables: then they have fewer.
bool is_terminal_narrow();

}  // namespace miniqat::cli
