#pragma once

#include <string>
#include <vector>

#include "bench/kernel_bench.h"
#include "bench/training_steps.h"
#include "core/text/json.h"

namespace miniqat::bench {

/// A row of "kernels" in the JSON of `bench`. docs/bench.md describes its keys.
nlohmann::ordered_json kernel_json(const KernelTime& row);

/// A row of "steps", with what disturbed its model.
nlohmann::ordered_json step_json(const StepTime& row, const Disturbance& disturbance);

/// A row of "loaded".
nlohmann::ordered_json loaded_json(const LoadedSpeed& row);

/// The rows of the JSON of `bench` ("kernels", "steps", "loaded"), or the cases of that of `--compare`, as CSV (RFC
/// 4180, lines end with \n): a header with every key that a row has, and a line for each row. Of the lists, both ends
/// of quartiles and intervals are columns ("seconds_quartiles_low"), and rounds are left out; a key of an object is
/// "a_seconds". Rows begin with their kind ("row"), and end with the machine and the build. "" without rows.
std::string bench_csv(const nlohmann::ordered_json& json);

/// A row of the JSON of `bench`, as far as a comparison needs it.
struct BenchRecord {
  /// The case: "forward, per tensor, 8 bits, 1000000 elements, 2 threads", or "lenet5, W8A8, batch 128, 2 threads", of
  /// --loaded "lenet5, W8A8, neighbours: own sessions, batch 128, 2 threads".
  std::string what;
  /// The one measured: "miniqat", the name of a kernel.
  std::string by;
  std::vector<double> rounds;
  /// Whether the machine was quiet and the rounds steady.
  bool quiet = true;
  /// Elements and threads; empty for steps.
  std::string size;
  bool is_memcpy = false;
  /// The keys of the file that name the case: "kernel", "layout", "bits" and so on.
  nlohmann::ordered_json keys = {};
};

struct BenchFile {
  /// "0.1 (907277a), 2026-11-24T08:00:00Z, AMD EPYC, avx512, g++ 12.2.0".
  std::string about;
  std::string cpu;
  std::vector<BenchRecord> records;
  /// The flags of the compiler; "" where the file does not say.
  std::string flags = {};
  nlohmann::ordered_json machine = {};
};

/// Throws Error naming the file, the place and the fault: no JSON, not of `bench`, a key that is missing or of another
/// kind, a repeated row.
BenchFile read_bench_file(const std::string& path);

}  // namespace miniqat::bench
