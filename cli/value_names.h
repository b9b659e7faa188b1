#pragma once

#include <optional>
#include <string>
#include <vector>

namespace miniqat::cli {

/// Names that a shell offers for the value of a flag which takes other texts as well.
struct ValueNames {
  std::vector<std::string> names;
  /// A file may stand in place of a name.
  bool or_file = false;
  /// Several names, separated by commas.
  bool is_list = false;
};

/// Models, data sets, optimizers, schedules, kernels and the like, from the tables that the commands ask; none for
/// flags of other values. `flag` with its dashes.
std::optional<ValueNames> value_names(const std::string& command, const std::string& flag);

}  // namespace miniqat::cli
