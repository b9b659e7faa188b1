#pragma once

#include <nlohmann/json_fwd.hpp>

#include "benchmarks/suite/kernel_bench.h"
#include "benchmarks/suite/steps/bench_loaded.h"
#include "benchmarks/suite/steps/bench_steps.h"

namespace miniqat::benchmarks {

/// A row of "kernels" in the JSON of `bench`. docs/performance.md describes its keys.
nlohmann::ordered_json kernel_json(const KernelTime& row);

/// A row of "steps", with what disturbed its model.
nlohmann::ordered_json step_json(const StepTime& row, const Disturbance& disturbance);

/// A row of "loaded".
nlohmann::ordered_json loaded_json(const LoadedSpeed& row);

}  // namespace miniqat::benchmarks
