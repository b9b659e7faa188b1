#pragma once

#include <string>
#include <vector>

namespace miniqat::cli {

/// Flags under a heading of their own.
struct FlagGroup {
  std::string heading;
  /// Names of the settings that --help shows, in this order.
  std::vector<std::string> first;
  /// Those that only --help-all shows.
  std::vector<std::string> more;
};

inline constexpr const char* kRunHeading = "The run";

/// The settings of a training: data, network, bits and ranges, schedule, the run. Those that a first week needs come
/// first. Each setting of TrainSettings is in one of them.
const std::vector<FlagGroup>& groups_of_training();

}  // namespace miniqat::cli
