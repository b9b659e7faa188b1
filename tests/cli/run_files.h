#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/text/json.h"

namespace miniqat::testing {

nlohmann::json json_of(const std::filesystem::path& path);
/// The data in a page of `miniqat report`.
nlohmann::json report_data(const std::filesystem::path& page);
/// The objects of a metrics.jsonl.
std::vector<nlohmann::json> lines_of(const std::filesystem::path& path);
/// Loss by step, as a run's metrics.jsonl has it; a step that was logged twice fails the test.
std::map<std::int64_t, double> losses_of(const std::filesystem::path& run);
/// That of a run's checkpoint.
std::int64_t step_of(const std::filesystem::path& run);

/// All that a run left, without times and speeds: equal for runs that came to the same in different ways.
struct RunFiles {
  std::vector<std::string> names;
  std::string checkpoint;
  std::vector<nlohmann::json> metrics;
  nlohmann::json summary;
  friend bool operator==(const RunFiles&, const RunFiles&) = default;
};
RunFiles files_of(const std::filesystem::path& run);

}  // namespace miniqat::testing
