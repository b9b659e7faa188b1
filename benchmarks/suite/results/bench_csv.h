#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace miniqat::benchmarks {

/// The rows of the JSON of `bench` ("kernels", "steps", "loaded"), or the cases of that of `--compare`, as CSV (RFC
/// 4180, lines end with \n): a header with every key that a row has, and a line for each row. Of the lists, both ends
/// of quartiles and intervals are columns ("seconds_quartiles_low"), and rounds are left out; a key of an object is
/// "a_seconds". Rows begin with their kind ("row"), and end with the machine and the build. "" without rows.
std::string bench_csv(const nlohmann::ordered_json& json);

}  // namespace miniqat::benchmarks
