#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "benchmarks/suite/kernel_bench.h"
#include "benchmarks/suite/steps/bench_loaded.h"

namespace miniqat::benchmarks {

/// A row of "kernels" in the JSON of `bench`, with what disturbed its size. docs/performance.md describes its keys.
nlohmann::ordered_json kernel_json(const KernelTime& row, const Disturbance& disturbance);

/// A row of "loaded".
nlohmann::ordered_json loaded_json(const LoadedSpeed& row);

/// Two numbers around a median, as JSON has them.
nlohmann::ordered_json quartiles_json(const Spread& spread);

}  // namespace miniqat::benchmarks
